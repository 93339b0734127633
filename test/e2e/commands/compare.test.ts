import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { beforeAll, describe, expect, inject, test } from "vitest";
import { createJsonRpc } from "../../../devnet/chain/json-rpc.js";
import { getNetwork } from "../../../src/hop/networks.js";
import { computeQuote, computeSdkQuote } from "../../../src/quotes/compare/compare-engines.js";
import type { ComparisonCase } from "../../../src/quotes/compare/comparison-case.js";
import { closeAfterTest } from "../../support/close-after-test.js";
import { readRequest, replaySources } from "../../support/reference/replay-case.js";
import { buildService } from "../../support/service/build-service.js";
import { runCommand } from "../../support/service/run-command.js";
import { type RpcProxy, startRpcProxy } from "../../support/stubs/rpc-proxy.js";
import { useTemporaryFolder } from "../../support/temporary-folder.js";

// Runs `hop-gateway compare` in a child process against the local network.

const { chains, environment } = inject("network");
const polygonUrl = chains.polygon?.url ?? "";
const mainnet = getNetwork("mainnet");
const folder = useTemporaryFolder();
const run = promisify(execFile);
const ROUTE = ["--routes", "USDT:polygon:arbitrum", "--amounts", "123456789"];

let command: string;
beforeAll(async () => {
  command = await buildService();
});

const compare = (args: readonly string[], changes = {}) =>
  runCommand(command, ["compare", ...args], { ...environment, ...changes });

/** Starts a polygon whose pool has other balances for this service, which reads through Multicall3, than for the SDK. */
async function startLyingPolygon(): Promise<RpcProxy> {
  const proxy = closeAfterTest(await startRpcProxy(polygonUrl));
  const { l2SaddleSwap } = mainnet.contracts.get("USDT")?.get("polygon") ?? {};
  const multicall = mainnet.chains.get("polygon")?.multicallAddress?.toLowerCase();
  // getTokenBalance(0)
  const call = { to: String(l2SaddleSwap), data: `0x91ceb3eb${"0".repeat(64)}` };
  const balance = (await createJsonRpc(polygonUrl)("eth_call", [call, "latest"])) as string;
  const changed = (BigInt(balance) * 2n).toString(16).padStart(64, "0");
  proxy.behaviour.override = ({ method, params: [called] }, result) => {
    const isMulticall = method === "eth_call" && (called as { to: string }).to.toLowerCase() === multicall;
    return isMulticall ? { result: String(result).replaceAll(balance.slice(2), changed) } : undefined;
  };
  return proxy;
}

describe("hop-gateway compare", () => {
  test("finds the quotes of given routes and amounts equal to the SDK's at the same blocks", async () => {
    const routes = "ETH:arbitrum:optimism,USDC:arbitrum:base,usdc.e:polygon:arbitrum,DAI:ethereum:polygon";
    const ended = await compare(["--routes", routes, "--amounts", "1,123456789,10000000000000000"]);
    const outcomes = ended.stdout.trim().split("\n");
    expect(outcomes.at(-1)).toBe("12 equal, 0 different, 0 not compared");
    expect(outcomes.slice(0, 4)).toEqual([
      expect.stringMatching(/^equal: 1 ETH, arbitrum to optimism; blocks: arbitrum \d+, optimism \d+$/),
      expect.stringMatching(/^equal: 1 USDC, arbitrum to base; /),
      expect.stringMatching(/^equal: 1 USDC\.e, polygon to arbitrum; /),
      expect.stringMatching(/^equal: 1 DAI, ethereum to polygon; /),
    ]);
    expect(ended.code).toBe(0);
  });

  test("compares as many random routes and amounts as asked for", async () => {
    const ended = await compare(["--count", "15", "--json"]);
    expect(JSON.parse(ended.stdout)).toEqual({ network: "mainnet", equal: 15, failed: [], differences: [] });
    expect(ended.code).toBe(0);
  });

  test("prints a difference with all its inputs, which becomes a test that fails", async () => {
    const { url } = await startLyingPolygon();
    const [ended, json] = await Promise.all(
      [[], ["--json"]].map((option) => compare([...ROUTE, ...option], { RPC_URL_POLYGON: url })),
    );
    if (ended === undefined || json === undefined) throw new Error("not run");
    const differences = [{ request: { token: "USDT", amount: "123456789" }, servedQuote: {}, sdkQuote: {} }];
    expect(JSON.parse(json.stdout)).toMatchObject({ equal: 0, failed: [], differences });
    expect(json.code).toBe(1);
    expect(ended.stdout).toMatch(
      /^different: 123456789 USDT, polygon to arbitrum; blocks: polygon \d+, arbitrum \d+\n {4}\w+: \d+, SDK: \d+\n/,
    );
    expect(ended.stdout).toContain("\n0 equal, 1 different, 0 not compared\n");
    expect(ended.code).toBe(1);
    for (const secret of [url, ...Object.values(environment)].filter((value) => value.startsWith("http"))) {
      for (const part of secret.split(",")) expect(ended.stdout).not.toContain(new URL(part).host);
    }

    const log = `${folder()}/log`;
    await writeFile(log, `{"level":40,"msg":"RPC endpoint failed"}\n${ended.stdout}`);
    const added = await run("npm", ["run", "--silent", "golden:add", "--", log, folder()]);
    const found = JSON.parse(await readFile(added.stdout.trim(), "utf8")) as ComparisonCase;
    const request = readRequest(found);
    const { signal } = new AbortController();
    expect(await computeSdkQuote(request, replaySources(found), signal)).toEqual(found.sdkQuote);
    const quote = await computeQuote(request, replaySources(found), signal);
    expect(quote).toEqual(found.servedQuote);
    expect(quote).not.toEqual(found.sdkQuote);
  });

  test("exits with code 3 when nothing could be compared, and says why", async () => {
    const ended = await compare(ROUTE, { RPC_URL_POLYGON: "http://127.0.0.1:1" });
    expect(ended.stdout).toMatch(/^not compared: 123456789 USDT, polygon to arbitrum: .*polygon/);
    expect(ended.stdout).toContain("\n0 equal, 0 different, 1 not compared\n");
    expect(ended.code).toBe(3);
  });

  test("exits with code 3 without the fee settings, and says what mends it, without a stack", async () => {
    const ended = await compare(ROUTE, { ASSETS_URL: "http://127.0.0.1:1", LOG_LEVEL: "silent" });
    expect(ended.stderr).toMatch(/^hop-gateway: the fee settings of mainnet cannot be read .*ASSETS_URL=off[^\n]*\n$/);
    expect([ended.code, ended.stdout]).toEqual([3, ""]);
  });

  test.each([
    [["--routes", "USDT:polygon"], {}, "--routes must be a comma-separated list of token:from:to"],
    [["--routes", "USDC.e:ethereum:base"], {}, "--routes: USDC.e:ethereum:base is not an open route"],
    [[], { PORT: "none" }, "PORT is not"],
  ])("exits with code 2 for %j and environment %j", async (args, changes, message) => {
    const ended = await compare(args, changes);
    expect(ended.stderr).toContain(message);
    expect(ended.stdout).toBe("");
    expect(ended.code).toBe(2);
  });
});
