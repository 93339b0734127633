import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, inject, test, vi } from "vitest";
import { isFullEffort } from "../support/effort.js";
import { buildService } from "../support/service/build-service.js";
import { startGatewayForTest, type TestGateway, withGateway } from "../support/service/in-process-gateway.js";
import { startServiceProcess } from "../support/service/service-process.js";
import { toRpcEnvironment } from "../support/stubs/rpc-proxy.js";
import { type FaultProxy, startFaultProxy } from "./fault-proxy.js";
import { faults, respondAfter } from "./faults.js";
import { isExpectedBody } from "./matrix/baseline.js";

// The only endpoint of every chain always takes seconds: slow, but alive. Everything is answered within the deadline. One
// that never answers is found out, and costs little.

/** Long enough for a busy machine; the tests of the process use the default. */
const LONG_TIMEOUT = { REQUEST_TIMEOUT_MS: "60000" };
/** Longer than two intervals at which heads are read, in the short form than one. */
const POLL_MS = isFullEffort ? 25_000 : 12_000;
const LATENCIES_MS = isFullEffort ? [2_000, 3_500] : [3_500];
const POLL_INTERVAL_MS = 100;

const quote = (token: string, from: string, to: string, amount: string): string =>
  `/v1/quote?amount=${amount}&token=${token}&fromChain=${from}&toChain=${to}&slippage=0.5`;
const quotes: Readonly<Record<string, string>> = {
  "quote L2 to L2": quote("ETH", "polygon", "arbitrum", "1000000000000000000"),
  "quote L2 to L1": quote("ETH", "arbitrum", "ethereum", "1000000000000000000"),
  "quote L1 to L2": quote("USDT", "ethereum", "polygon", "1000000000"),
  // The fee for data on Ethereum depends on the estimated gas: a second round of requests.
  "quote to optimism": quote("ETH", "arbitrum", "optimism", "1000000000000000000"),
  "quote to base": quote("ETH", "arbitrum", "base", "1000000000000000000"),
  "quote CCTP": quote("USDC", "polygon", "arbitrum", "1000000000"),
  "quote USDC.e": quote("USDC.e", "polygon", "arbitrum", "1000000000"),
};
const toBatchPath = (requests: readonly object[]): string =>
  `/hop.bridge.v1.BridgeService/BatchGetQuotes?connect=v1&encoding=json&message=${encodeURIComponent(JSON.stringify({ requests }))}`;
const batches: Readonly<Record<string, string>> = {
  "batch of pairs": `/v1/quotes?token=ETH&fromChain=arbitrum&toChain=polygon&toChain=ethereum&toChain=base&amount=1000000000000000000&slippage=0.5`,
  "batch of requests": toBatchPath(
    Object.values(quotes).map((path) => {
      const { slippage, ...request } = Object.fromEntries(new URL(path, "http://localhost").searchParams);
      return { ...request, slippage: Number(slippage) };
    }),
  ),
};
const TRANSFER_NAMES = ["usdt-polygon-arbitrum", "eth-ethereum-arbitrum", "usdc-arbitrum-polygon", "eth-base-polygon"];
const { chains, transfers } = inject("network");
const statuses = Object.fromEntries(
  transfers
    .filter(({ name }) => TRANSFER_NAMES.includes(name))
    .flatMap(({ name, transactionHash, transferId }) => [
      [`status by hash of ${name}`, `/v1/transfer-status?transferHash=${transactionHash}`],
      [`status by id of ${name}`, `/v1/transfer-status?transferId=${transferId}`],
    ]),
);
const queries = { ...quotes, ...batches, ...statuses };

const proxies = new Map<string, FaultProxy>();
const expected = new Map<string, unknown>();
let environment: Readonly<Record<string, string>>;

beforeAll(async () => {
  // The second is in the deliveries' deadlines, and a zero byte there costs less gas: one second for all quotes.
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  for (const [slug, { url }] of Object.entries(chains)) proxies.set(slug, await startFaultProxy(url));
  environment = toRpcEnvironment(proxies);
  await withGateway({}, async (gateway) => {
    for (const [name, path] of Object.entries(queries)) {
      const { status, body } = await gateway.get(path);
      expect(status, name).toBe(200);
      expect(JSON.stringify(body), name).not.toContain('"error"');
      expected.set(name, body);
    }
  });
});
afterAll(async () => {
  vi.useRealTimers();
  await Promise.all([...proxies.values()].map((proxy) => proxy.close()));
});

type Json = Readonly<Record<string, unknown>>;
const isQuoteOrBatch = (answer: Json): boolean => "amountIn" in answer || "results" in answer;

/** Returns what each quote of an answer is for. Its fee follows the clock. */
function listAmounts(answer: Json): readonly unknown[] {
  const { results = [{ quote: answer }] } = answer as { results?: readonly { quote?: Json }[] };
  return results.map(({ quote: quoted }) => quoted?.amountIn);
}

const countRequests = (): number => [...proxies.values()].reduce((sum, { requests }) => sum + requests, 0);
const setLatency = (ms: number) => Promise.all([...proxies.values()].map((proxy) => proxy.setFault(respondAfter(ms))));

describe.each(LATENCIES_MS)("while every response of a chain takes %i ms", (latencyMs) => {
  beforeAll(() => setLatency(latencyMs));

  test("the first answer of a new process is right", async () => {
    const answers = Object.entries(queries).map(async ([name, path]) => {
      const ask = (gateway: TestGateway) => gateway.get(path);
      const { status, body } = await withGateway({ ...environment, ...LONG_TIMEOUT }, ask);
      return [name, status, body];
    });
    expect(await Promise.all(answers)).toEqual([...expected].map(([name, body]) => [name, 200, body]));
  });
});

describe("while every response of a chain takes 2 s, with the default deadline", () => {
  beforeAll(() => setLatency(2_000));

  test("a process answers quotes and statuses", async () => {
    const service = await startServiceProcess(await buildService(), environment);
    try {
      const asked = {
        "quote L2 to L2": quotes["quote L2 to L2"],
        "quote to base": quotes["quote to base"],
        ...batches,
        ...statuses,
      };
      const answers = Object.entries(asked).map(async ([name, path]) => {
        const response = await fetch(`${service.url}${path}`);
        const body = (await response.json()) as Record<string, unknown>;
        const correct = expected.get(name) as Record<string, unknown>;
        const isRight = isQuoteOrBatch(correct)
          ? JSON.stringify(listAmounts(body)) === JSON.stringify(listAmounts(correct))
          : isExpectedBody(body, correct, "all endpoints");
        return [name, response.status, isRight ? "right" : body];
      });
      expect(await Promise.all(answers)).toEqual(Object.keys(asked).map((name) => [name, 200, "right"]));
    } finally {
      service.signal("SIGKILL");
      await service.exitCode;
    }
  });

  test("quotes in use stay available, no endpoint counts as failing, and requests do not pile up", async () => {
    const gateway = await startGatewayForTest({ ...environment, ...LONG_TIMEOUT });
    const path = queries["quote L2 to L2"] ?? "";
    const before = countRequests();
    // It is not ready until the first check of the chains has ended.
    const isChecked = async () => expect((await gateway.get("/readyz")).status).toBe(200);
    await vi.waitFor(isChecked, { timeout: 60_000, interval: 200 });
    const problems = new Set<unknown>();
    const startedAt = performance.now();
    let elapsedMs = 0;
    for (; elapsedMs < POLL_MS; elapsedMs = performance.now() - startedAt) {
      const [answer, { body }] = await Promise.all([gateway.get(path), gateway.get("/readyz")]);
      if (answer.status !== 200) problems.add(answer.body);
      const { status, reason, chains: states } = body as { status: string; reason?: string; chains?: unknown };
      const isReady = status === "ready" || reason === "the first check of the chains has not ended";
      if (!isReady || JSON.stringify(states).includes("failing")) problems.add(body);
      await sleep(POLL_INTERVAL_MS);
    }
    expect([...problems]).toEqual([]);
    // Two chains with one read at a time, the heads of all chains every ten seconds, and the burn limits once.
    const heads = proxies.size * (2 + elapsedMs / 10_000);
    expect(countRequests() - before).toBeLessThanOrEqual(2 * (1 + elapsedMs / 2_000) + heads);
  });
});

describe("while one chain takes longer than a call may", () => {
  const SLOW_CHAIN = "polygon";
  /** Where the machine is so slow that a chain without latency takes longer, the next attempt allows more. */
  const TIMEOUTS_MS = [2_000, 6_000, 18_000];

  interface Item {
    readonly fromChain: string;
    readonly toChain: string;
    readonly quote?: Json;
    readonly error?: { readonly reason: string; readonly message: string };
  }
  const listItems = (body: unknown): readonly Item[] => (body as { results?: readonly Item[] }).results ?? [];
  const isSlow = ({ fromChain, toChain }: Item): boolean => [fromChain, toChain].includes(SLOW_CHAIN);

  /** Returns how each quote of a batch ended: right, late, or as it must not. All are late if the whole call is. */
  function judge(name: string, status: number, body: unknown): readonly unknown[] {
    const correct = listItems(expected.get(name));
    if (status === 504) return correct.map(() => "late");
    return listItems(body).map((item, index) => {
      const { quote: quoted, error } = item;
      if (quoted !== undefined) return JSON.stringify(item) === JSON.stringify(correct[index]) ? "right" : item;
      const { reason, message = "" } = error ?? {};
      const isNamed = [item.fromChain, item.toChain].some((chain) => message.includes(chain));
      return reason === "DEADLINE_EXCEEDED" || (reason === "UPSTREAM_UNAVAILABLE" && isNamed) ? "late" : item;
    });
  }

  /** Asks a new process for a batch, with a limit. */
  async function askOnce(name: string, limit: Readonly<Record<string, string>>): Promise<readonly unknown[]> {
    const ask = (gateway: TestGateway) => gateway.get(queries[name] ?? "");
    const { status, body } = await withGateway({ ...environment, ...limit }, ask);
    return judge(name, status, body);
  }

  /** The same where the caller has the limit, and then asks once more without. */
  async function askTwice(name: string, timeoutMs: number): Promise<readonly unknown[]> {
    const gateway = await startGatewayForTest({ ...environment, REQUEST_TIMEOUT_MS: "300000" });
    const headers = { "connect-timeout-ms": String(timeoutMs) };
    const response = await fetch(`${gateway.url}${queries[name]}`, { headers });
    const kinds = judge(name, response.status, await response.json());
    for (;;) {
      const { status, body } = await gateway.get(queries[name] ?? "");
      const later = judge(name, status, body);
      if (!later.includes("late")) {
        expect(later).toEqual(kinds.map(() => "right"));
        return kinds;
      }
      await sleep(POLL_INTERVAL_MS);
    }
  }

  test("a batch has the quotes of the others in time, and those of the slow one later", async () => {
    const inTime = ["batch of pairs", "batch of requests", "batch of requests"].map((name) =>
      listItems(expected.get(name)).map((item) => (isSlow(item) ? "late" : "right")),
    );
    for (const kinds of inTime) expect(new Set(kinds).size).toBe(2);
    await setLatency(0);
    for (const timeoutMs of TIMEOUTS_MS) {
      await proxies.get(SLOW_CHAIN)?.setFault(respondAfter(2 * timeoutMs));
      const limit = { REQUEST_TIMEOUT_MS: String(timeoutMs) };
      const kinds = await Promise.all([
        askOnce("batch of pairs", limit),
        askOnce("batch of requests", limit),
        askTwice("batch of requests", timeoutMs),
      ]);
      const isWrong = kinds.flat().some((kind) => kind !== "late" && kind !== "right" && (kind as Item).quote);
      const isAsExpected = JSON.stringify(kinds) === JSON.stringify(inTime);
      if (!isAsExpected && !isWrong && timeoutMs !== TIMEOUTS_MS.at(-1)) continue;
      expect(kinds).toEqual(inTime);
      return;
    }
  });
});

describe("while a chain hangs", () => {
  test("a burst of callers gets 503 or 504 in the end, and shares a few requests", async () => {
    const proxy = proxies.get("polygon");
    await setLatency(0);
    await proxy?.setFault(faults.hang);
    const gateway = await startGatewayForTest({ ...environment, REQUEST_TIMEOUT_MS: "4000" });
    const before = proxy?.requests ?? 0;
    const startedAt = performance.now();
    const paths = Array.from({ length: 100 }, (_, index) => [
      quote("ETH", "polygon", "arbitrum", `${index + 1}000000000000000000`),
      statuses["status by hash of usdt-polygon-arbitrum"] ?? "",
    ]).flat();
    const answers = await Promise.all(paths.map((path) => gateway.get(path)));
    const seconds = (performance.now() - startedAt) / 1_000;
    expect(new Set(answers.map(({ status }) => status > 502))).toEqual(new Set([true]));
    // One read and one lookup at a time, each with one request in 3 s; the background refresh goes on meanwhile.
    expect((proxy?.requests ?? 0) - before).toBeLessThanOrEqual(4 * (1 + seconds / 3));
  });
});
