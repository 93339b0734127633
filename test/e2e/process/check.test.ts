import { execFile } from "node:child_process";
import { appendFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { buildService } from "../../support/service/build-service.js";
import { findPlantedKeys, plantKeys } from "../../support/service/planted-keys.js";
import { createOutputPath } from "../../support/service/recorded-output.js";
import { type HttpStub, startHttpStub } from "../../support/stubs/http-stub.js";

// `hop-gateway check` in a process of its own, over the local network and endpoints that are not well.

const { chains, environment } = inject("network");
const urlOf = (slug: string): string => chains[slug]?.url ?? "";

let command: string;
let silent: HttpStub;
let failing: HttpStub;
beforeAll(async () => {
  command = await buildService();
  silent = await startHttpStub(() => {});
  failing = await startHttpStub((_, response) => response.writeHead(401).end());
});
afterAll(() => Promise.all([silent.close(), failing.close()]));

interface Ended {
  readonly code: number | string | null;
  readonly stdout: string;
  readonly stderr: string;
}

function check(args: readonly string[], changes: Readonly<Record<string, string>> = {}): Promise<Ended> {
  const env = { PATH: process.env.PATH, ...plantKeys({ ...environment, ...changes }) };
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [command, "check", ...args], { env }, (_, stdout, stderr) => {
      appendFileSync(createOutputPath("check"), stdout + stderr);
      resolve({ code: child.exitCode ?? child.signalCode, stdout, stderr });
    });
  });
}

/** The row of an endpoint, by the chain and the port. */
function rowOf({ stdout }: Ended, slug: string, url: string): string {
  const { host } = new URL(url);
  return stdout.split("\n").find((line) => line.startsWith(`${slug} `) && line.includes(`${host}#`)) ?? "";
}

describe("hop-gateway check", () => {
  test("finds nothing wrong with the local network", async () => {
    const ended = await check([]);
    expect(ended.stderr).toBe("");
    for (const [slug, { chainId, url }] of Object.entries(chains)) {
      expect(rowOf(ended, slug, url)).toMatch(new RegExp(` +${chainId} +\\d+ .* +0 +\\d+ ms +50\\+ +all +ok$`));
    }
    expect(ended.stdout).toContain("9 chains, 9 endpoints: 9 ok, 0 with warnings, 0 unusable.\n");
    expect(ended.code).toBe(0);
  });

  test("tells of each endpoint what is wrong with it, and never its key", async () => {
    const urls = ["http://127.0.0.1:1", failing.url, silent.url, urlOf("optimism"), urlOf("base")];
    const ended = await check(["--timeout", "4"], { RPC_URL_OPTIMISM: urls.join(",") });
    const [dead, refusing, mute, good, other] = urls.map((url) => rowOf(ended, "optimism", url));
    expect(dead).toMatch(/ unreachable: could not be reached$/);
    expect(refusing).toMatch(/ unreachable: answered 401$/);
    expect(mute).toMatch(/ unreachable: did not answer in time$/);
    expect(other).toMatch(/ 8453 .* wrong chain: 8453, not 10$/);
    // Nor does one that never answers take the time of the others.
    expect(good).toMatch(/#[0-9a-f]{6} +10 +\d+ .* all +ok$/);
    // An endpoint of another chain would be asked, and refused, for ever.
    expect(ended.code).toBe(1);
    expect(findPlantedKeys(ended.stdout + ended.stderr)).toEqual([]);
  });

  test("fails where a chain is not served, and says which", async () => {
    const ended = await check([], { RPC_URL_NOVA: "http://127.0.0.1:1" });
    expect(ended.stdout).toContain("\nnova has no usable endpoint: add one to RPC_URL_NOVA.\n");
    expect(ended.code).toBe(1);
  });

  test("does not fail where a chain has another endpoint", async () => {
    const ended = await check([], { RPC_URL_NOVA: `http://127.0.0.1:1,${urlOf("nova")}` });
    expect(ended.stdout).toContain("9 chains, 10 endpoints: 9 ok, 0 with warnings, 1 unusable.\n");
    expect(ended.code).toBe(0);
  });

  test("says the same to machines", async () => {
    const ended = await check(["--json"], { RPC_URL_BASE: `${urlOf("base")},${urlOf("nova")}` });
    const told = JSON.parse(ended.stdout);
    expect(told).toMatchObject({ network: "mainnet", ok: false });
    expect(told.chains.map(({ chain }: { chain: string }) => chain).sort()).toEqual(Object.keys(chains).sort());
    const base = told.chains.find(({ chain }: { chain: string }) => chain === "base");
    expect(base).toEqual({
      chain: "base",
      chainId: 8453,
      usable: true,
      endpoints: [
        {
          endpoint: expect.stringMatching(/^127\.0\.0\.1:\d+#[0-9a-f]{6}$/),
          usable: true,
          problems: [],
          verdict: "ok",
          chainId: 8453,
          head: { number: expect.any(Number), ageSeconds: expect.any(Number) },
          lag: { blocks: 0, seconds: 0 },
          latencyMs: expect.any(Number),
          contracts: "together",
          batch: 50,
          logBlocks: "all",
        },
        expect.objectContaining({ usable: false, problems: ["wrong chain"], chainId: 42170 }),
      ],
    });
    expect(ended.code).toBe(1);
  });

  test("asks the other network's endpoints, and is done in its time", async () => {
    const names = Object.keys(environment).filter((name) => name.startsWith("GOERLI_RPC_URL_"));
    const mute = Object.fromEntries(names.map((name) => [name, silent.url]));
    const ended = await check(["--network", "goerli", "--timeout", "0.5"], mute);
    expect(ended.stdout.match(/ unreachable: did not answer in time\n/g)).toHaveLength(names.length);
    expect(ended.stdout).toContain(": add one to GOERLI_RPC_URL_OPTIMISM.\n");
    expect(ended.code).toBe(1);
  });

  test.each([
    [["--network", "sepolia"], {}, "--network must be one of"],
    [["--what"], {}, "Unknown option '--what'"],
    [[], { RPC_URL_OPTIMSIM: "https://typo.example" }, "RPC_URL_OPTIMSIM names no chain"],
  ])("%j with %j: 2", async (args, changes, message) => {
    const ended = await check(args, changes);
    expect(ended.stderr).toContain(message);
    expect(ended.stdout).toBe("");
    expect(ended.code).toBe(2);
  });
});
