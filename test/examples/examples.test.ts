import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { findTool } from "../support/find-tool.js";
import { startGateway, type TestGateway } from "../support/service/in-process-gateway.js";
import { useTemporaryFolder } from "../support/temporary-folder.js";

// Every example of docs/clients.md prints what the service answers to the same questions over GET.

const project = fileURLToPath(new URL("../..", import.meta.url));
const page = readFileSync(join(project, "docs/clients.md"), "utf8");
const run = promisify(execFile);

let gateway: TestGateway;
/** What the service answers to the four questions. */
let answers: readonly unknown[];
/** The same as the programs tell it. */
let lines: readonly string[];

beforeAll(async () => {
  gateway = await startGateway();
  // The fee depends on the bytes of the deadline, and so on the second in which it is asked for.
  vi.useFakeTimers({ toFake: ["Date"] });
  const wish = "/v1/quote?amount=25000000&token=USDT&fromChain=polygon&slippage=0.5&toChain=";
  const hash = "0xf74083036ad84acb7efc97f2c3877659135d97d02552915b96c1cf77ad48b270";
  const ask = async (path: string) => (await gateway.get(path)).body as Record<string, unknown>;
  const routes = (await ask("/v1/available-routes?token=rETH&toChain=ethereum")) as unknown as Record<
    string,
    unknown
  >[];
  const quote = await ask(`${wish}arbitrum`);
  const transfer = await ask(`/v1/transfer-status?transferHash=${hash}`);
  const refused = await ask(`${wish}base`);
  answers = [routes, quote, transfer, refused];
  lines = [
    ...routes.map(({ token, sourceChainSlug }) => `${token} can go home from ${sourceChainSlug}`),
    `${quote.estimatedReceived} of ${quote.amountIn} arrive, ${quote.bonderFee} is the fee`,
    `${transfer.amountFormatted} ${transfer.token} to ${transfer.destinationChainSlug}: ${transfer.state}`,
    `refused: ${refused.reason}, ${refused.message}`,
  ];
});
afterAll(async () => {
  vi.useRealTimers();
  await gateway.stop();
});

test("there is something to tell", () => {
  expect(lines).toEqual([
    "rETH can go home from optimism",
    "rETH can go home from arbitrum",
    expect.stringMatching(/^24\d{6} of 25000000 arrive, \d{6} is the fee$/),
    "5000 HOP to optimism: BONDED",
    "refused: UNSUPPORTED_ROUTE, USDT cannot be sent from polygon to base on mainnet",
  ]);
});

describe("TypeScript", () => {
  /** Runs it in this process; gives what it printed. */
  async function tell(example: () => Promise<unknown>, address: string): Promise<string[]> {
    vi.resetModules();
    const print = vi.spyOn(console, "log").mockImplementation(() => {});
    const argv = process.argv;
    process.argv = [...argv.slice(0, 2), address];
    try {
      await example();
      return print.mock.calls.map(([line]) => line);
    } finally {
      process.argv = argv;
      print.mockRestore();
    }
  }

  test("over Connect", async () => {
    expect(await tell(() => import("../../examples/connect.js"), gateway.url)).toEqual(lines);
  });

  test("with fetch", async () => {
    expect(await tell(() => import("../../examples/fetch.js"), gateway.url)).toEqual(lines);
  });

  test("with fetch, which comes back when it is told to", async () => {
    const limited = await startGateway({ IP_RATE_LIMIT_REQ_PER_SEC: "3", IP_RATE_LIMIT_WINDOW_MS: "1000" });
    const asked = vi.spyOn(globalThis, "fetch");
    try {
      expect(await tell(() => import("../../examples/fetch.js"), limited.url)).toEqual(lines);
      const statuses = await Promise.all(asked.mock.results.map(async ({ value }) => (await value).status));
      expect(statuses).toContain(429);
    } finally {
      asked.mockRestore();
      await limited.stop();
    }
  });
});

/** The last commands of a section of docs/clients.md, run as they stand but for the address, in a folder of their own. */
async function follow(heading: string, place: string): Promise<{ stdout: string; code: number }> {
  const section = page.split(/^## /m).find((each) => each.startsWith(`${heading}\n`)) ?? "";
  const commands = [...section.matchAll(/```sh\n([\s\S]*?)```/g)].at(-1)?.[1];
  if (commands === undefined) throw new Error(`no commands for ${heading}`);
  for (const name of ["examples", "proto"]) {
    const link = join(place, name);
    if (!existsSync(link)) await symlink(join(project, name), link);
  }
  const { host } = new URL(gateway.url);
  // Not another Python that comes first on this machine: Debian's has Debian's gRPC.
  const env = { ...process.env, PATH: `/usr/bin:/bin:${process.env.PATH}`, PYTHONDONTWRITEBYTECODE: "1" };
  // Without --norc bash takes a socket as input for a login from afar, and its user's settings change the path again.
  const shell = ["--norc", "-e", "-c", commands.replaceAll("127.0.0.1:8000", host)];
  return run("bash", shell, { cwd: place, env }).then(
    ({ stdout }) => ({ stdout, code: 0 }),
    (error: { stdout: string; code: number; message: string }) => {
      if (error.stdout === "") throw error;
      return error;
    },
  );
}

describe("by the commands of docs/clients.md", () => {
  const place = useTemporaryFolder();
  const protoc = findTool("protobuf-compiler", "/usr/bin/protoc");

  test("curl", async () => {
    const { stdout, code } = await follow("A shell", place());
    expect(stdout.split("\n").map((line) => JSON.parse(line))).toEqual(answers);
    // The last one was refused.
    expect(code).toBe(22);
  });

  const canPython =
    protoc &&
    findTool("protobuf-compiler-grpc", "/usr/bin/grpc_python_plugin") &&
    findTool("python3-grpcio", "/usr/lib/python3/dist-packages/grpc");
  test.skipIf(!canPython)("Python (needs protobuf-compiler-grpc, python3-grpcio)", async () => {
    const { stdout, code } = await follow("Python", place());
    expect({ lines: stdout.trim().split("\n"), code }).toEqual({ lines, code: 0 });
  });

  const canCompile =
    protoc &&
    findTool("protobuf-compiler-grpc", "/usr/bin/grpc_cpp_plugin") &&
    findTool("g++", "/usr/bin/g++") &&
    findTool("pkg-config", "/usr/bin/pkg-config") &&
    findTool("libgrpc++-dev", "/usr/include/grpcpp/grpcpp.h") &&
    findTool("libprotobuf-dev", "/usr/include/google/protobuf/message.h");
  test.skipIf(!canCompile)(
    "C++ (needs g++, pkg-config, protobuf-compiler-grpc, libgrpc++-dev, libprotobuf-dev)",
    async () => {
      const { stdout, code } = await follow("C++", place());
      expect({ lines: stdout.trim().split("\n"), code }).toEqual({ lines, code: 0 });
    },
    300_000,
  );
});

const shellcheck = findTool("shellcheck", "/usr/bin/shellcheck");
test.skipIf(shellcheck === undefined)("the shell example is a clean one (needs shellcheck)", async () => {
  await run(shellcheck ?? "", [join(project, "examples/curl.sh")]);
});

test("docs/clients.md shows the examples as they are", () => {
  const shown = [...page.matchAll(/^\[examples\/(\S+)\]\(\.\.\/examples\/\1\)\n\n```\w+\n([\s\S]*?)```$/gm)];
  expect(shown.map(([, name]) => name)).toEqual(["curl.sh", "connect.ts", "fetch.ts", "grpc_client.py"]);
  for (const [, name, text] of shown) expect(text).toBe(readFileSync(join(project, "examples", name ?? ""), "utf8"));
});
