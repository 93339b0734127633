import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, inject, test, vi } from "vitest";
import { buildService } from "../support/service/build-service.js";
import { startGateway } from "../support/service/in-process-gateway.js";
import { startServiceProcess } from "../support/service/service-process.js";
import { type FaultProxy, startFaultProxy } from "./fault-proxy.js";
import { faults, respondAfter } from "./faults.js";
import { isExpectedBody } from "./matrix/baseline.js";

// The only endpoint of every chain always takes seconds: slow, but alive. Everything is answered within the deadline. One
// that never answers is found out, and costs little.

/** Long enough for a busy machine; the tests of the process use the default. */
const LONG_TIMEOUT = { REQUEST_TIMEOUT_MS: "60000" };
/** Longer than two intervals at which heads are read. */
const POLL_MS = 25_000;
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
const queries = { ...quotes, ...statuses };

const proxies = new Map<string, FaultProxy>();
const expected = new Map<string, unknown>();
let environment: Readonly<Record<string, string>>;

beforeAll(async () => {
  // The second is in the deliveries' deadlines, and a zero byte there costs less gas: one second for all quotes.
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  for (const [slug, { url }] of Object.entries(chains)) proxies.set(slug, await startFaultProxy(url));
  environment = Object.fromEntries([...proxies].map(([slug, { url }]) => [`RPC_URL_${slug.toUpperCase()}`, url]));
  const gateway = await startGateway();
  for (const [name, path] of Object.entries(queries)) {
    const { status, body } = await gateway.get(path);
    expect(status, name).toBe(200);
    expected.set(name, body);
  }
  await gateway.stop();
});
afterAll(async () => {
  vi.useRealTimers();
  await Promise.all([...proxies.values()].map((proxy) => proxy.close()));
});

const countRequests = (): number => [...proxies.values()].reduce((sum, { requests }) => sum + requests, 0);
const setLatency = (ms: number) => Promise.all([...proxies.values()].map((proxy) => proxy.setFault(respondAfter(ms))));

describe.each([2_000, 3_500])("while every response of a chain takes %i ms", (latencyMs) => {
  beforeAll(() => setLatency(latencyMs));

  test("the first answer of a new process is right", async () => {
    const answers = Object.entries(queries).map(async ([name, path]) => {
      const gateway = await startGateway({ ...environment, ...LONG_TIMEOUT });
      const { status, body } = await gateway.get(path);
      await gateway.stop();
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
        ...statuses,
      };
      const answers = Object.entries(asked).map(async ([name, path]) => {
        const response = await fetch(`${service.url}${path}`);
        const body = (await response.json()) as Record<string, unknown>;
        const correct = expected.get(name) as Record<string, unknown>;
        // The fee of a quote follows the clock.
        const isRight =
          "amountIn" in body ? body.amountIn === correct.amountIn : isExpectedBody(body, correct, "all endpoints");
        return [name, response.status, isRight ? "right" : body];
      });
      expect(await Promise.all(answers)).toEqual(Object.keys(asked).map((name) => [name, 200, "right"]));
    } finally {
      service.signal("SIGKILL");
      await service.exitCode;
    }
  });

  test("quotes in use stay available, no endpoint counts as failing, and requests do not pile up", async () => {
    const gateway = await startGateway({ ...environment, ...LONG_TIMEOUT });
    try {
      const path = queries["quote L2 to L2"] ?? "";
      const before = countRequests();
      const problems = new Set<unknown>();
      const startedAt = performance.now();
      let elapsedMs = 0;
      for (; elapsedMs < POLL_MS; elapsedMs = performance.now() - startedAt) {
        const [answer, readiness] = await Promise.all([gateway.get(path), gateway.get("/readyz")]);
        if (answer.status !== 200) problems.add(answer.body);
        const { status, chains: states } = readiness.body as { status: string; chains?: unknown };
        if (status !== "ready" || JSON.stringify(states).includes("failing")) problems.add(readiness.body);
        await sleep(POLL_INTERVAL_MS);
      }
      expect([...problems]).toEqual([]);
      // Two chains with one read at a time, and the heads of all chains every ten seconds.
      const heads = proxies.size * (1 + elapsedMs / 10_000);
      expect(countRequests() - before).toBeLessThanOrEqual(2 * (1 + elapsedMs / 2_000) + heads);
    } finally {
      await gateway.stop();
    }
  });
});

describe("while a chain hangs", () => {
  test("a burst of callers gets 503 or 504 in the end, and shares a few requests", async () => {
    const proxy = proxies.get("polygon");
    await setLatency(0);
    await proxy?.setFault(faults.hang);
    const gateway = await startGateway({ ...environment, REQUEST_TIMEOUT_MS: "4000" });
    try {
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
    } finally {
      await gateway.stop();
      await proxy?.setFault(undefined);
    }
  });
});
