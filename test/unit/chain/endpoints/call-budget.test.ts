import { describe, expect, test } from "vitest";
import type { RpcCall } from "../../../../src/chain/chain-client.js";
import { EndpointCallBudget } from "../../../../src/chain/endpoints/call-budget.js";
import { answerStatus, healthy, never, startPool, until } from "../support/rpc-node-stub.js";

const flush = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Creates the budget of one endpoint under a clock that `advance` moves. */
function create(callsPerSecond: number) {
  const clock = { ms: 0 };
  const sleepers = new Set<{ readonly until: number; readonly wake: () => void }>();
  const limited: string[] = [];
  const waits: number[] = [];
  const sent: { readonly ms: number; readonly calls: number; readonly isBackground: boolean }[] = [];
  const budget = new EndpointCallBudget({
    slug: "optimism",
    callsPerSecond,
    onLimited: (outcome) => limited.push(outcome),
    now: () => clock.ms,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        sleepers.add({ until: clock.ms + ms, wake: resolve });
        if (signal !== never) signal.addEventListener("abort", () => resolve());
      }),
  });
  return {
    limited,
    sent,
    waits,
    async send(count = 1, isBackground = false, signal: AbortSignal = never): Promise<void> {
      const call: RpcCall = { method: "eth_call", params: [], isBackground };
      await budget.acquire(Array<RpcCall>(count).fill(call), signal, (ms) => isBackground && waits.push(ms));
      if (signal.aborted) throw new Error("has left");
      sent.push({ ms: clock.ms, calls: count, isBackground });
    },
    async advance(ms: number): Promise<void> {
      const end = clock.ms + ms;
      for (;;) {
        await flush();
        const [next] = [...sleepers].sort((a, b) => a.until - b.until);
        if (next === undefined || next.until > end) break;
        sleepers.delete(next);
        clock.ms = Math.max(clock.ms, next.until);
        next.wake();
      }
      clock.ms = end;
      await flush();
    },
  };
}

const exhausted = {
  reason: "OVERLOADED",
  message: expect.stringContaining("RPC_BUDGET"),
  retryAfterSeconds: expect.any(Number),
};

describe("a budget of calls per second", () => {
  test("holds over time, whatever is requested, and sends requests in the order of their arrival", async () => {
    const { send, sent, advance } = create(20);
    let refused = 0;
    for (let second = 0; second < 10; second += 1) {
      for (let index = 0; index < 50; index += 1) send().catch(() => (refused += 1));
      await advance(1_000);
    }
    expect(refused).toBeGreaterThan(100);
    for (let start = 0; start < 9_000; start += 500) {
      const inWindow = sent.filter(({ ms }) => ms >= start && ms < start + 1_000).length;
      // The rate and the burst of half a second.
      expect(inWindow).toBeLessThanOrEqual(20 + 10 + 1);
    }
    expect(sent.length).toBeGreaterThanOrEqual(10 * 20 - 20);
  });

  test("refuses at once what would wait for more than 5 s, and says what to do", async () => {
    const { send, limited, advance } = create(20);
    await send(150);
    await expect(send()).rejects.toMatchObject(exhausted);
    expect(limited).toEqual(["refused"]);
    await advance(3_000);
    const waiting = send();
    await advance(5_000);
    await waiting;
    expect(limited).toEqual(["refused", "waited"]);
  });

  test("counts a batch as the calls in it, and does not send for a caller that leaves the queue", async () => {
    const { send, sent, advance } = create(20);
    await send(60);
    const caller = new AbortController();
    const left = send(10, false, caller.signal).catch((error: Error) => error.message);
    const next = send();
    caller.abort();
    await advance(2_000);
    expect(await left).toBe("has left");
    expect(sent).toHaveLength(1);
    await advance(600);
    await next;
    expect(sent.map(({ calls }) => calls)).toEqual([60, 1]);
  });

  test("tells how long calls in the background wait in the end, so that no endpoint seems slow", async () => {
    const { send, sent, waits, advance } = create(20);
    await send(20);
    const inBackground = send(1, true);
    for (let tick = 0; tick < 15; tick += 1) {
      void send(4);
      await advance(200);
    }
    await advance(1_900);
    await inBackground;
    const last = sent.at(-1);
    expect(last?.isBackground).toBe(true);
    expect(last?.ms).toBeGreaterThan(3_000);
    expect(waits.reduce((sum, ms) => sum + ms, 0)).toBeGreaterThanOrEqual(last?.ms ?? 0);
  });

  test("is not taken from callers by calls in the background", async () => {
    const { send, sent, advance } = create(20);
    let refusedInBackground = 0;
    const load = async (seconds: number, perSecond: number): Promise<void> => {
      for (let tick = 0; tick < seconds * 10; tick += 1) {
        for (let index = 0; index < perSecond / 10; index += 1) void send();
        if (tick % 10 === 0) void send(5, true).catch(() => (refusedInBackground += 1));
        await advance(100);
      }
    };
    // As much as the budget permits.
    await load(10, 20);
    const callers = sent.filter(({ isBackground }) => !isBackground);
    expect(callers.length).toBeGreaterThanOrEqual(10 * 20 - 20);
    expect(sent.filter(({ isBackground }) => isBackground).length).toBeLessThanOrEqual(1);
    expect(refusedInBackground).toBeGreaterThan(0);
    // What callers leave is for the background.
    await advance(10_000);
    sent.length = 0;
    await load(10, 0);
    expect(sent.length).toBeGreaterThanOrEqual(10);
  });
});

describe("a pool with a budget", () => {
  const batchOf = (count: number) => Array<string>(count).fill("eth_call");

  test("prefers the endpoint that has calls left, and refuses when none has", async () => {
    const limited: string[] = [];
    const { nodes, send, batch, getLogs } = await startPool([{}, {}], {
      callsPerSecond: 20,
      onBudgetLimited: (endpoint, outcome) => limited.push(`${endpoint.slice(0, -7)} ${outcome}`),
    });
    const countRequests = () => nodes.map(({ requests }) => requests.length);
    await batch(...batchOf(200));
    await batch(...batchOf(200));
    expect(countRequests()).toEqual([1, 1]);
    await expect(send()).rejects.toMatchObject({ ...exhausted, message: expect.stringContaining("optimism") });
    await expect(getLogs({ range: { from: 1, to: 2 }, newestFirst: true })).rejects.toMatchObject(exhausted);
    // A log search is refused together with the read of the chain id beside it.
    expect(limited).toHaveLength(3);
    expect(countRequests()).toEqual([1, 1]);
  });

  test("asks an endpoint whose circuit breaker is open rather than one that would refuse", async () => {
    const { nodes, send, batch, states, clock } = await startPool([{ intercept: answerStatus(503) }, {}], {
      callsPerSecond: 20,
    });
    for (let round = 0; round < 5; round += 1) {
      await send("eth_gasPrice");
      clock.ms += 1_000;
    }
    expect(states()).toEqual(["failing", "ok"]);
    nodes[0].intercept = healthy;
    await batch(...batchOf(200));
    const before = nodes[0].requests.length;
    expect(await send()).toBe("0x1");
    expect(nodes[0].requests.length).toBe(before + 1);
  });

  test("reads no heads while callers use it up", async () => {
    const { nodes, send, batch, clock } = await startPool([{}, {}], { callsPerSecond: 20, maxBytes: 1_000_000 });
    const countHeadReads = (): number[] => nodes.map(({ headRequests }) => headRequests);
    await batch(...batchOf(500));
    await batch(...batchOf(500));
    await until(() => expect(countHeadReads()).toEqual([1, 1]));
    clock.ms += 12_000;
    await expect(send()).rejects.toMatchObject(exhausted);
    clock.ms += 30_000;
    await send();
    await until(() => expect(countHeadReads()).toEqual([2, 2]));
  });
});
