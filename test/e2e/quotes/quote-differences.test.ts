import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { afterEach, beforeAll, expect, inject, test } from "vitest";
import { getNetwork } from "../../../src/hop/networks.js";
import { replayChains } from "../../../src/quotes/shadow-comparison/chain-recording.js";
import { type ComparisonCase, parseRequest } from "../../../src/quotes/shadow-comparison/comparison-case.js";
import { recomputeQuote, recomputeSdkQuote } from "../../../src/quotes/shadow-comparison/recompute-quote.js";
import { buildService } from "../../support/service/build-service.js";
import { listChildProcesses } from "../../support/service/child-processes.js";
import { type ServiceProcess, startServiceProcess } from "../../support/service/service-process.js";
import { type RpcProxy, startRpcProxy } from "../../support/stubs/rpc-proxy.js";
import { useTemporaryFolder } from "../../support/temporary-folder.js";

// Two workers compare their quotes with the SDK's, behind a proxy of polygon.

const { chains, environment } = inject("network");
const polygonUrl = chains.polygon?.url ?? "";
const mainnet = getNetwork("mainnet");
const folder = useTemporaryFolder();
const run = promisify(execFile);
const QUOTE = "/v1/quote?amount=123456789&token=USDT&fromChain=polygon&toChain=arbitrum&slippage=0.5&view=FULL";

let command: string;
beforeAll(async () => {
  command = await buildService();
});

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function start(): Promise<{ service: ServiceProcess; proxy: RpcProxy }> {
  const proxy = await startRpcProxy(polygonUrl);
  const service = await startServiceProcess(command, {
    ...{ WORKERS: "2", QUOTE_VERIFY_INTERVAL_SECONDS: "1", RPC_URL_POLYGON: proxy.url },
  });
  closing.push(async () => {
    service.signal("SIGKILL");
    await service.exitCode;
    await proxy.close();
  });
  return { service, proxy };
}

/** Asks for a quote on several connections, so that each worker gets some. */
async function quote({ url }: ServiceProcess): Promise<void> {
  const responses = await Promise.all(
    Array.from({ length: 8 }, () => fetch(url + QUOTE, { headers: { connection: "close" } })),
  );
  for (const response of responses) expect(response.status).toBe(200);
}

/** Returns the processes of the SDK, of all workers. */
async function listReferenceProcesses({ pid }: ServiceProcess): Promise<readonly number[]> {
  const workers = await listChildProcesses(pid);
  return (await Promise.all(workers.map(listChildProcesses))).flat();
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function countComparisons({ metricsUrl }: ServiceProcess, result: string): Promise<number> {
  const text = await (await fetch(metricsUrl)).text();
  const pattern = new RegExp(`^hop_gateway_quote_comparisons_total\\{.*result="${result}".*\\} (\\d+)$`, "m");
  return Number(pattern.exec(text)?.[1] ?? 0);
}

test("two workers have one process of the SDK at a time", async () => {
  const { service } = await start();
  const counts: number[] = [];
  while ((await countComparisons(service, "equal")) < 2) {
    await quote(service);
    counts.push((await listReferenceProcesses(service)).length);
  }
  expect(Math.max(...counts)).toBe(1);
  const document = await fetch(new URL("/quote-differences", service.metricsUrl));
  expect(await document.json()).toEqual({ differences: [] });
  expect((await fetch(`${service.url}/quote-differences`)).status).toBe(404);
}, 300_000);

test.each(["SIGTERM", "SIGKILL"] as const)(
  "the process of the SDK ends with a service that gets %s",
  async (signal) => {
    const { service, proxy } = await start();
    await quote(service);
    // From now on the SDK waits for an answer.
    proxy.behaviour.isHanging = true;
    const processes: number[] = [];
    await expect
      .poll(async () => processes.push(...(await listReferenceProcesses(service))), { timeout: 25_000 })
      .toBeGreaterThan(0);
    service.signal(signal);
    await service.exitCode;
    for (const pid of processes) await expect.poll(() => isAlive(pid)).toBe(false);
  },
);

test("a difference is counted, listed by check, and becomes a test that fails", async () => {
  const { service, proxy } = await start();
  const { l2SaddleSwap } = mainnet.contracts.get("USDT")?.get("polygon") ?? {};
  const multicall = mainnet.chains.get("polygon")?.multicallAddress?.toLowerCase();
  // getTokenBalance(0)
  const balance = await callPolygon(String(l2SaddleSwap), `0x91ceb3eb${"0".repeat(64)}`);
  const changed = (BigInt(balance) * 2n).toString(16).padStart(64, "0");
  // This service reads pools through Multicall3, and the SDK asks them for swaps.
  proxy.behaviour.override = ({ method, params: [call] }, result) => {
    const isMulticall = method === "eth_call" && (call as { to: string }).to.toLowerCase() === multicall;
    return isMulticall ? { result: String(result).replaceAll(balance.slice(2), changed) } : undefined;
  };
  const url = new URL("/quote-differences", service.metricsUrl).href;
  const readDifferences = async () =>
    ((await (await fetch(url)).json()) as { differences: ComparisonCase[] }).differences;
  await expect
    .poll(
      async () => {
        await quote(service);
        return (await readDifferences()).length;
      },
      // Both quotes are made again after 5 s, and after another 65 s.
      { timeout: 500_000, interval: 2_000 },
    )
    .toBe(1);
  expect(await countComparisons(service, "different")).toBe(1);
  const line = service
    .output()
    .stdout.split("\n")
    .find((text) => text.includes("quote differs from the SDK's"));
  expect(line).toContain('"fromChain":"polygon"');

  const { port } = new URL(service.metricsUrl);
  const env = { PATH: process.env.PATH, ...environment, METRICS_PORT: port };
  const check = await run(process.execPath, [command, "check"], { env });
  expect(check.stdout).toContain("1 quotes differ from the SDK's");
  expect(check.stdout).toMatch(
    /: 123456789 USDT, polygon to arbitrum, slippage 0\.5; blocks: polygon \d+, arbitrum \d+\n/,
  );
  expect(check.stdout).toMatch(/ {4}estimatedReceived: \d+, SDK: \d+\n/);

  const added = await run("npm", ["run", "--silent", "golden:add", "--", url, folder()]);
  const file = added.stdout.trim();
  const text = await readFile(file, "utf8");
  for (const secret of Object.values(environment).filter((value) => value.startsWith("http"))) {
    for (const part of secret.split(",")) expect(text).not.toContain(new URL(part).host);
  }
  const found = JSON.parse(text) as ComparisonCase;
  const replay = [
    parseRequest(found.request),
    found.inputs,
    replayChains(found.chains),
    new AbortController().signal,
  ] as const;
  expect(await recomputeSdkQuote(...replay)).toEqual(found.sdkQuote);
  const recomputed = await recomputeQuote(...replay);
  expect(recomputed).not.toEqual(found.sdkQuote);
  expect(recomputed).toEqual(found.recomputedQuote);
  expect(recomputed).toEqual(found.servedQuote);
}, 600_000);

async function callPolygon(to: string, data: string): Promise<string> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_call", params: [{ to, data }, "latest"] });
  const response = await fetch(polygonUrl, { method: "POST", headers: { "content-type": "application/json" }, body });
  return ((await response.json()) as { result: string }).result;
}
