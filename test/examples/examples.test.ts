import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { utils } from "ethers";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { connectChains } from "../../devnet/chain/local-chains.js";
import { type LocalNetwork, startLocalNetwork } from "../../devnet/network.js";
import type { components } from "../../gen/openapi.js";
import { isFullEffort } from "../support/effort.js";
import { findTool } from "../support/find-tool.js";
import { startGateway, type TestGateway } from "../support/service/in-process-gateway.js";
import { waitUntilIndexed } from "../support/service/index-coverage.js";
import { mineBlocks } from "../support/service/local-transfers.js";
import { useTemporaryFolder } from "../support/temporary-folder.js";

// Every example in docs/clients.md prints what the service returns for the same requests over GET. The network is the test's
// own: answers name blocks, and other tests produce some.

type Withdrawal = components["schemas"]["GetWithdrawalResponse"];

const project = fileURLToPath(new URL("../..", import.meta.url));
const page = readFileSync(join(project, "docs/clients.md"), "utf8");
const run = promisify(execFile);
const LIST_PATH =
  "/v1/transfers?account=0x70997970c51812dc3a010c7d01b50e0d17dc79c8" +
  "&token=HOP&fromChain=arbitrum&toChain=optimism&pageSize=20";

const indexFolder = useTemporaryFolder();
let network: LocalNetwork;
let gateway: TestGateway;
/** The responses to the requests of the examples. */
let responses: readonly unknown[];
/** What the examples print for them. */
let lines: readonly string[];

beforeAll(async () => {
  network = await startLocalNetwork({ blockTimeMs: 3_600_000 });
  const chains = connectChains(network.chains);
  // Watches end when both blocks are final.
  await Promise.all(["arbitrum", "optimism"].map((slug) => mineBlocks(chains, slug, 70)));
  const index = { INDEX: `sqlite:${join(indexFolder(), "index")}`, INDEX_FROM: "2020-01-01" };
  // A fee depends on the bytes of the deadline, and so on the second of the request. Prices name the second of their reading.
  vi.useFakeTimers({ toFake: ["Date"] });
  gateway = await startGateway({ ...network.environment, ...index });
  const quotePath = "/v1/quote?amount=25000000&token=USDT&fromChain=polygon&slippage=0.5&toChain=";
  const hash = "0x2a6e5685b82b1262614ea73a4000775147af693d53e5feeeeebf33910d264ca5";
  const get = async (path: string) => (await gateway.get(path)).body as Record<string, unknown>;
  const waitFor = (path: string, body: object) =>
    vi.waitFor(async () => expect(await get(path)).toMatchObject(body), { timeout: 60_000, interval: 200 });
  await waitUntilIndexed(gateway, network.chains);
  // Delivery times are measured every ten seconds.
  await waitFor(`${quotePath}arbitrum&view=FULL`, { details: { deliveryTime: { samples: 1 } } });
  const routes = (await get("/v1/available-routes?token=rETH&toChain=ethereum")) as unknown as Record<
    string,
    unknown
  >[];
  const quote = await get(`${quotePath}arbitrum`);
  const transfer = await get(`/v1/transfer-status?transferHash=${hash}`);
  const failed = await get(`${quotePath}base`);
  const full = await get(`${quotePath}arbitrum&view=FULL`);
  const { limits } = full.details as { readonly limits: Readonly<Record<string, unknown>> };
  const batch = await get(`${quotePath.replace("quote", "quotes")}arbitrum&toChain=base`);
  const list = await get(LIST_PATH);
  const [listed] = list.transfers as readonly Record<string, unknown>[];
  responses = [routes, quote, batch, full, transfer, transfer, list, failed];
  lines = [
    ...routes.map(({ token, sourceChainSlug }) => `${token} can be sent from ${sourceChainSlug}`),
    `${quote.estimatedReceived} of ${quote.amountIn} arrive, ${quote.bonderFee} is the fee`,
    `arbitrum: ${quote.estimatedReceived}`,
    `base: ${failed.reason}`,
    `${limits.minAmount} is the least amount, ${limits.availableLiquidity} the most`,
    `${transfer.amountFormatted} ${transfer.token} to ${transfer.destinationChainSlug}: ${transfer.state}`,
    `watched: ${transfer.state}`,
    `listed: ${listed?.transferId}`,
    `error: ${failed.reason}, ${failed.message}`,
  ];
});
afterAll(async () => {
  vi.useRealTimers();
  await gateway.stop();
  await network.stop();
});

test("the service answers every request of the examples", () => {
  expect(lines).toEqual([
    "rETH can be sent from optimism",
    "rETH can be sent from arbitrum",
    expect.stringMatching(/^24\d{6} of 25000000 arrive, \d{6} is the fee$/),
    expect.stringMatching(/^arbitrum: 24\d{6}$/),
    "base: UNSUPPORTED_ROUTE",
    expect.stringMatching(/^\d{6} is the least amount, [1-9]\d+ the most$/),
    "5000 HOP to optimism: BONDED",
    "watched: BONDED",
    expect.stringMatching(/^listed: 0xe40cb233/),
    "error: UNSUPPORTED_ROUTE, USDT cannot be sent from polygon to base on mainnet",
  ]);
});

/** States of seeded transfers that somebody can pay out, or will be able to with the same call. */
const WITHDRAWALS = ["WITHDRAWABLE", "WAITING_FOR_ROOT", "REDEEMABLE"] as const;
/** States in which nothing can be sent. */
const WAITS = ["WAITING_FOR_COMMIT", "WAITING_FOR_ATTESTATION", "AUTOMATIC"] as const;

const contractAbi = new utils.Interface([
  "function withdraw(address, uint256, bytes32, uint256, uint256, uint256, bytes32, uint256, uint256, bytes32[], uint256)",
  "function receiveMessage(bytes, bytes)",
]);

/** Reads a withdrawal over GET. Returns what the examples print for it, encoded by ethers. */
async function readWithdrawal(state: (typeof WITHDRAWALS)[number]) {
  const { transferId = "" } = network.transfers.find((each) => each.expectedWithdrawalState === state) ?? {};
  const body = (await gateway.get(`/v1/withdrawal?transferId=${transferId}`)).body as Withdrawal;
  const { amount, token, recipientAddress, destinationChainId, merkleProof: proof, cctp } = body;
  const data =
    proof === undefined
      ? contractAbi.encodeFunctionData("receiveMessage", [cctp?.message, cctp?.attestation])
      : contractAbi.encodeFunctionData("withdraw", [
          ...[recipientAddress, amount, proof.transferNonce, proof.bonderFee, proof.amountOutMin, proof.deadline],
          ...[proof.rootHash, proof.transferRootTotalAmount, proof.transferIdTreeIndex, proof.siblings],
          proof.totalLeaves,
        ]);
  const to = proof?.bridgeAddress ?? cctp?.messageTransmitterAddress;
  const expected = [
    `${amount} ${token} for ${recipientAddress}: ${state}`,
    `on chain ${destinationChainId} to ${to}: ${data}`,
  ];
  return { transferId, expected };
}

describe("TypeScript", () => {
  /** Runs an example in this process and returns the lines it prints. */
  async function runExample(example: () => Promise<unknown>, ...args: readonly string[]): Promise<string[]> {
    vi.resetModules();
    const print = vi.spyOn(console, "log").mockImplementation(() => {});
    const argv = process.argv;
    process.argv = [...argv.slice(0, 2), ...args];
    try {
      await example();
      return print.mock.calls.map(([line]) => line);
    } finally {
      process.argv = argv;
      print.mockRestore();
    }
  }

  test("over Connect", async () => {
    expect(await runExample(() => import("../../examples/connect.js"), gateway.url)).toEqual(lines);
  });

  test("with fetch", async () => {
    expect(await runExample(() => import("../../examples/fetch.js"), gateway.url)).toEqual(lines);
  });

  test.each(WITHDRAWALS)("encodes what is %s", async (state) => {
    const { transferId, expected } = await readWithdrawal(state);
    const args = [gateway.url, transferId];
    expect(await runExample(() => import("../../examples/withdraw.js"), ...args)).toEqual(expected);
  });

  test.each(WAITS)("says that nothing can be sent for what is %s", async (state) => {
    const { transferId = "" } = network.transfers.find((each) => each.expectedWithdrawalState === state) ?? {};
    const output = await runExample(() => import("../../examples/withdraw.js"), gateway.url, transferId);
    expect(output).toEqual([expect.stringMatching(new RegExp(`: ${state}$`)), "there is nothing to send"]);
  });

  test("with fetch, retrying after Retry-After", async () => {
    const limits = { IP_RATE_LIMIT_REQ_PER_SEC: "3", IP_RATE_LIMIT_WINDOW_MS: "1000" };
    const limited = await startGateway({ ...network.environment, ...limits });
    const fetches = vi.spyOn(globalThis, "fetch");
    try {
      const withoutIndex = lines.map((line) =>
        line.startsWith("listed") ? expect.stringMatching("error: INDEX_REQUIRED") : line,
      );
      expect(await runExample(() => import("../../examples/fetch.js"), limited.url)).toEqual(withoutIndex);
      const statuses = await Promise.all(fetches.mock.results.map(async ({ value }) => (await value).status));
      expect(statuses).toContain(429);
    } finally {
      fetches.mockRestore();
      await limited.stop();
    }
  });
});

/** Runs the last commands of a section of docs/clients.md in a folder, unchanged except for the address. */
async function runCommands(heading: string, workingFolder: string): Promise<{ stdout: string; code: number }> {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? "";
  const commands = [...section.matchAll(/```sh\n([\s\S]*?)```/g)].at(-1)?.[1];
  if (commands === undefined) throw new Error(`no commands for ${heading}`);
  for (const name of ["examples", "proto"]) {
    const link = join(workingFolder, name);
    if (!existsSync(link)) await symlink(join(project, name), link);
  }
  const { host } = new URL(gateway.url);
  // Puts Debian's Python first, because only it has Debian's gRPC.
  const env = { ...process.env, PATH: `/usr/bin:/bin:${process.env.PATH}`, PYTHONDONTWRITEBYTECODE: "1" };
  // Without --norc, bash treats a socket as stdin as a remote login and reads the user's settings, which change the path.
  const shell = ["--norc", "-e", "-c", commands.replaceAll("127.0.0.1:8000", host)];
  return run("bash", shell, { cwd: workingFolder, env }).then(
    ({ stdout }) => ({ stdout, code: 0 }),
    (error: { stdout: string; code: number; message: string }) => {
      if (error.stdout === "") throw error;
      return error;
    },
  );
}

describe("by the commands of docs/clients.md", () => {
  const folder = useTemporaryFolder();
  const protoc = findTool("protobuf-compiler", "/usr/bin/protoc");

  test("curl", async () => {
    const { stdout, code } = await runCommands("A shell", folder());
    expect(
      stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ).toEqual(responses);
    // curl exits with 22 because the last request fails.
    expect(code).toBe(22);
  });

  const canPython =
    protoc &&
    findTool("protobuf-compiler-grpc", "/usr/bin/grpc_python_plugin") &&
    findTool("python3-grpcio", "/usr/lib/python3/dist-packages/grpc");
  test.skipIf(!canPython)("Python (needs protobuf-compiler-grpc, python3-grpcio)", async () => {
    const { stdout, code } = await runCommands("Python", folder());
    expect({ lines: stdout.trim().split("\n"), code }).toEqual({ lines, code: 0 });
  });

  const python = findTool("python3", "/usr/bin/python3");
  test.skipIf(python === undefined).each(WITHDRAWALS)("Python without packages encodes what is %s", async (state) => {
    const { transferId, expected } = await readWithdrawal(state);
    vi.stubEnv("TRANSFER_ID", transferId);
    const { stdout, code } = await runCommands("Withdrawals", folder());
    vi.unstubAllEnvs();
    expect({ lines: stdout.trim().split("\n"), code }).toEqual({ lines: expected, code: 0 });
  });

  const canCompile =
    protoc &&
    findTool("protobuf-compiler-grpc", "/usr/bin/grpc_cpp_plugin") &&
    findTool("g++", "/usr/bin/g++") &&
    findTool("pkg-config", "/usr/bin/pkg-config") &&
    findTool("libgrpc++-dev", "/usr/include/grpcpp/grpcpp.h") &&
    findTool("libprotobuf-dev", "/usr/include/google/protobuf/message.h");
  // Only in the long form: it compiles for minutes.
  test.skipIf(!canCompile || !isFullEffort)(
    "C++ (needs g++, pkg-config, protobuf-compiler-grpc, libgrpc++-dev, libprotobuf-dev)",
    async () => {
      const { stdout, code } = await runCommands("C++", folder());
      expect({ lines: stdout.trim().split("\n"), code }).toEqual({ lines, code: 0 });
    },
    300_000,
  );
});

const shellcheck = findTool("shellcheck", "/usr/bin/shellcheck");
test.skipIf(shellcheck === undefined)("the shell example passes shellcheck (needs shellcheck)", async () => {
  await run(shellcheck ?? "", [join(project, "examples/curl.sh")]);
});

test("docs/clients.md links every example of a client", () => {
  const linked = [...page.matchAll(/\]\(\.\.\/examples\/(\S+?)\)/g)].map(([, name]) => name);
  expect(linked).toEqual([
    "curl.sh",
    "connect.ts",
    "fetch.ts",
    "grpc_client.py",
    "grpc_client.cpp",
    "withdraw.ts",
    "withdraw.py",
  ]);
});
