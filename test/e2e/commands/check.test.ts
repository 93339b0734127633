import { appendFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { buildService } from "../../support/service/build-service.js";
import { findPlantedKeys, OPERATOR_KEY, plantKeys } from "../../support/service/planted-keys.js";
import { createOutputPath } from "../../support/service/recorded-output.js";
import { type EndedCommand, runCommand } from "../../support/service/run-command.js";
import { type HttpStub, startHttpStub } from "../../support/stubs/http-stub.js";

// Runs `hop-gateway check` in a child process against the local network and faulty endpoints.

const { chains, environment } = inject("network");
const getUrl = (slug: string): string => chains[slug]?.url ?? "";

let command: string;
let silent: HttpStub;
let failing: HttpStub;
beforeAll(async () => {
  command = await buildService();
  silent = await startHttpStub(() => {});
  failing = await startHttpStub((_, response) => response.writeHead(401).end());
});
afterAll(() => Promise.all([silent.close(), failing.close()]));

async function check(args: readonly string[], changes: Readonly<Record<string, string>> = {}): Promise<EndedCommand> {
  const ended = await runCommand(command, ["check", ...args], plantKeys({ ...environment, ...changes }));
  appendFileSync(createOutputPath("check"), ended.stdout + ended.stderr);
  return ended;
}

/** Returns the row of an endpoint by chain and place. */
function findRow({ stdout }: EndedCommand, slug: string, place = 1): string {
  return stdout.split("\n").find((line) => line.startsWith(`${slug} `) && line.includes(` ${slug}[${place}]#`)) ?? "";
}

describe("hop-gateway check", () => {
  test("finds no problem in the local network", async () => {
    const ended = await check([]);
    expect(ended.stderr).toBe("");
    for (const [slug, { chainId }] of Object.entries(chains)) {
      expect(findRow(ended, slug)).toMatch(new RegExp(` +${chainId} +\\d+ .* +0 +\\d+ ms +50\\+ +all +ok$`));
    }
    expect(ended.stdout).toContain("9 chains, 9 endpoints: 9 ok, 0 with warnings, 0 unusable.\n");
    expect(ended.code).toBe(0);
  });

  test("reports the problems of each endpoint and never its key", async () => {
    const hidden = `http://${OPERATOR_KEY}.invalid`;
    const urls = ["http://127.0.0.1:1", failing.url, silent.url, getUrl("optimism"), getUrl("base"), hidden];
    const ended = await check(["--timeout", "4"], { RPC_URL_OPTIMISM: urls.join(",") });
    const [dead, refusing, mute, good, other, keyInHost] = urls.map((_, index) =>
      findRow(ended, "optimism", index + 1),
    );
    expect(dead).toMatch(/ unreachable: connection refused$/);
    expect(keyInHost).toMatch(/ unreachable: (?:DNS lookup failed|did not answer in time)$/);
    expect(refusing).toMatch(/ unreachable: answered 401: the key is not accepted$/);
    expect(mute).toMatch(/ unreachable: did not answer in time$/);
    expect(other).toMatch(/ 8453 .* wrong chain: 8453, not 10$/);
    // An endpoint that never responds does not delay the others.
    expect(good).toMatch(/#[0-9a-f]{6} +10 +\d+ .* all +ok$/);
    // The service would send requests to an endpoint of another chain forever and reject each response.
    expect(ended.code).toBe(1);
    expect(findPlantedKeys(ended.stdout + ended.stderr)).toEqual([]);
  });

  test("fails when a chain has no usable endpoint and names the chain", async () => {
    const ended = await check([], { RPC_URL_NOVA: "http://127.0.0.1:1" });
    expect(ended.stdout).toContain("\nnova has no usable endpoint: add one to RPC_URL_NOVA.\n");
    expect(ended.code).toBe(1);
  });

  test("passes when a chain has another usable endpoint", async () => {
    const ended = await check([], { RPC_URL_NOVA: `http://127.0.0.1:1,${getUrl("nova")}` });
    expect(ended.stdout).toContain("9 chains, 10 endpoints: 9 ok, 0 with warnings, 1 unusable.\n");
    expect(ended.code).toBe(0);
  });

  test("tests what else the service uses, and ends with lines to copy", async () => {
    const gone = "http://127.0.0.1:1";
    const hosts = { ASSETS_URL: gone, EXPLORER_API_URL: gone, ATTESTATION_API_URL: gone, PRICE_SOURCES: "assets" };
    const ended = await check([], { ...hosts, INDEX: "sqlite:/nowhere/hop.db", SHARED_STATE: "redis://127.0.0.1:1" });
    const rows = new Map(
      [...ended.stdout.matchAll(/^(\S+(?: \S+)?) +(ok|off|failing)(?: +(.*))?$/gm)].map(([, name, ...row]) => [
        name,
        row,
      ]),
    );
    expect(rows.get("settings_mainnet")).toEqual(["failing", "connection refused"]);
    expect(rows.get("prices")).toEqual(["failing", "connection refused"]);
    expect(rows.get("chainlink_ethereum")?.[0]).toBe("off");
    expect(rows.get("explorer")).toEqual(["failing", "connection refused"]);
    expect(rows.get("attestations")).toEqual(["failing", "connection refused"]);
    expect(rows.get("index")).toEqual(["failing", "its folder is not there, or may not be written to"]);
    expect(rows.get("Redis")).toEqual(["failing", "ECONNREFUSED"]);
    expect(rows.get("open files")?.[0]).toMatch(/^ok$|^failing$/);
    expect(rows.get("clock")?.[0]).toBe("off");
    const [, lines = ""] = ended.stdout.split("\nTo copy:\n");
    expect(lines.trim().split(/\s+/)).toEqual(
      expect.arrayContaining(["ASSETS_URL=off", "EXPLORER_API_URL=off", "ATTESTATION_API_URL=off"]),
    );
    expect(ended.code).toBe(1);
  });

  test("finds the other sources of the local network", async () => {
    const { dependencies } = JSON.parse((await check(["--json"])).stdout) as { dependencies: { name: string }[] };
    const found = Object.fromEntries(dependencies.map(({ name, ...report }) => [name, report]));
    for (const name of ["settings_mainnet", "prices", "chainlink_ethereum", "chainlink_arbitrum", "attestations"])
      expect([name, found[name]]).toEqual([name, expect.objectContaining({ state: "ok" })]);
    expect(found).not.toHaveProperty("settings_goerli");
  });

  test("prints the same results as JSON", async () => {
    const ended = await check(["--json"], { RPC_URL_BASE: `${getUrl("base")},${getUrl("nova")}` });
    const report = JSON.parse(ended.stdout);
    expect(report).toMatchObject({ network: "mainnet", ok: false });
    expect(report.chains.map(({ chain }: { chain: string }) => chain).sort()).toEqual(Object.keys(chains).sort());
    const base = report.chains.find(({ chain }: { chain: string }) => chain === "base");
    expect(base).toEqual({
      chain: "base",
      chainId: 8453,
      usable: true,
      endpoints: [
        {
          endpoint: expect.stringMatching(/^base\[1\]#[0-9a-f]{6}$/),
          usable: true,
          problems: [],
          verdict: "ok",
          chainId: 8453,
          head: { number: expect.any(Number), ageSeconds: expect.any(Number) },
          lag: { blocks: 0, seconds: 0 },
          latencyMs: expect.any(Number),
          contracts: "together",
          batch: 50,
          callsAtOnce: 40,
          logBlocks: "all",
        },
        expect.objectContaining({ usable: false, problems: ["wrong chain"], chainId: 42170 }),
      ],
    });
    expect(ended.code).toBe(1);
  });

  test("checks the endpoints of the other network within the time limit", async () => {
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
    [
      [],
      { RPC_URL_OPTIMSIM: "https://typo.example" },
      "RPC_URL_OPTIMSIM is not a variable of this service: did you mean RPC_URL_OPTIMISM?",
    ],
  ])("exits with code 2 for %j and environment %j", async (args, changes, message) => {
    const ended = await check(args, changes);
    expect(ended.stderr).toContain(message);
    expect(ended.stdout).toBe("");
    expect(ended.code).toBe(2);
  });
});
