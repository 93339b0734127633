import { describe, expect, test, vi } from "vitest";
import { createPoolOn, type RpcNodeStub, startRpcNodeStub, UNAVAILABLE_ERROR } from "../support/rpc-node-stub.js";

const result = (value: string) => ({ respond: () => ({ result: value }) });
const failing: RpcNodeStub["intercept"] = ({ response }) => {
  response.writeHead(500).end();
  return true;
};
const hang: RpcNodeStub["intercept"] = () => true;
const healthy: RpcNodeStub["intercept"] = () => false;
const methods = (node: RpcNodeStub) => node.requests.flat().filter((method) => method !== "eth_chainId");

async function pair(options: Parameters<typeof createPoolOn>[1] = {}) {
  const [first, second] = [await startRpcNodeStub(result("0xa")), await startRpcNodeStub(result("0xb"))];
  return { first, second, ...createPoolOn([first, second], options) };
}

async function timed<T>(work: Promise<T>): Promise<{ value: T; ms: number }> {
  const from = performance.now();
  const value = await work;
  return { value, ms: performance.now() - from };
}

describe("a hedged request", () => {
  test("goes to the next endpoint when the first exceeds its usual latency, and aborts the slower one", async () => {
    const { first, second, send, failures } = await pair({ attemptTimeoutMs: 3_000 });
    for (let round = 0; round < 20; round++) await send();
    first.delayMs = 2_000;
    const { value, ms } = await timed(send());
    expect(value).toBe("0xb");
    // The 95th percentile of the first endpoint is below the minimum delay of 100 ms.
    expect(ms).toBeGreaterThan(95);
    expect(ms).toBeLessThan(400);
    await vi.waitFor(() => expect(first.abortedRequests).toBe(1), { timeout: 60_000 });
    expect(methods(second)).toHaveLength(1);
    expect(failures).toEqual([]);
  });

  test("returns the first endpoint's response when that arrives first", async () => {
    const { first, second, send } = await pair({ attemptTimeoutMs: 3_000 });
    await send();
    first.delayMs = 200;
    second.delayMs = 2_000;
    expect((await timed(send())).value).toBe("0xa");
    await vi.waitFor(() => expect(second.abortedRequests).toBe(1), { timeout: 60_000 });
    expect(methods(second)).toHaveLength(1);
  });

  test("waits for the other endpoint when one of the two fails", async () => {
    const { first, second, send, failures } = await pair({ attemptTimeoutMs: 3_000 });
    await send();
    first.delayMs = 250;
    second.intercept = failing;
    expect(await send()).toBe("0xa");
    expect(failures).toMatchObject([{ error: "answered 500" }]);
  });

  test("starts after 500 ms when no latency is known", async () => {
    const { first, send } = await pair({ attemptTimeoutMs: 3_000 });
    first.intercept = hang;
    const { value, ms } = await timed(send());
    expect(value).toBe("0xb");
    expect(ms).toBeGreaterThan(490);
    expect(ms).toBeLessThan(900);
  });

  test("adapts its delay to the measured latencies", async () => {
    const [first, second] = [await startRpcNodeStub(result("0xa")), await startRpcNodeStub(result("0xb"))];
    const { send } = createPoolOn([first, second], { attemptTimeoutMs: 3_000, now: () => performance.now() });
    first.delayMs = 200;
    for (let round = 0; round < 4; round++) await send();
    expect(methods(second)).toEqual([]);
    first.intercept = hang;
    const { ms } = await timed(send());
    expect(ms).toBeGreaterThan(195);
    expect(ms).toBeLessThan(500);
  });

  test("needs a healthy second endpoint", async () => {
    const { first, second, send } = await pair({ attemptTimeoutMs: 3_000 });
    await send();
    // The second endpoint fails until its breaker opens.
    first.intercept = failing;
    second.intercept = failing;
    await send().catch(() => {});
    first.intercept = healthy;
    first.delayMs = 200;
    for (let round = 0; round < 5; round++) await send();
    const asked = methods(second).length;
    await send();
    expect(methods(second)).toHaveLength(asked);
  });

  test("needs a second endpoint", async () => {
    const only = await startRpcNodeStub({ delayMs: 250 });
    const { send } = createPoolOn([only], { attemptTimeoutMs: 3_000 });
    await send();
    await send();
    expect(methods(only)).toHaveLength(2);
  });
});

describe("a circuit breaker of an endpoint", () => {
  test("opens after five failures in a row and probes with one request", async () => {
    const { first, second, send, clock } = await pair({ attemptTimeoutMs: 3_000 });
    await send();
    first.intercept = failing;
    for (let round = 0; round < 8; round++) expect(await send()).toBe("0xb");
    expect(methods(first)).toHaveLength(1 + 5);

    clock.ms += 29_999;
    await send();
    expect(methods(first)).toHaveLength(6);
    clock.ms += 1;
    expect(await Promise.all([send(), send(), send()])).toEqual(["0xb", "0xb", "0xb"]);
    expect(methods(first)).toHaveLength(7);

    clock.ms += 30_000;
    first.intercept = healthy;
    first.delayMs = 20;
    expect((await Promise.all([send(), send(), send()])).sort()).toEqual(["0xa", "0xb", "0xb"]);
    expect(await Promise.all([send(), send()])).toEqual(["0xa", "0xa"]);
    // The failure count starts again: one more failure does not open the breaker.
    first.intercept = failing;
    await send();
    first.intercept = healthy;
    expect(await send()).toBe("0xa");
    expect(second.requests.length).toBeGreaterThan(0);
  });

  test("opens at 20 failures of 80", async () => {
    const { first, send } = await pair();
    for (let round = 0; round < 60; round++) await send();
    for (let round = 0; round < 20; round++) {
      first.intercept = failing;
      expect(await send()).toBe("0xb");
      first.intercept = healthy;
      if (round < 19) expect(await send()).toBe("0xa");
    }
    expect(await send()).toBe("0xb");
  });

  test("stays closed while one in five attempts fails", async () => {
    const { first, second, send } = await pair();
    for (let round = 0; round < 200; round++) {
      first.intercept = round % 5 === 4 ? failing : healthy;
      expect(await send()).toBe(round % 5 === 4 ? "0xb" : "0xa");
    }
    expect(methods(second)).toHaveLength(40);
  });

  test("opens for a first endpoint that hangs and is overtaken five times", async () => {
    const { first, second, send, failures } = await pair({ attemptTimeoutMs: 1_000 });
    await send();
    first.intercept = hang;
    // The second endpoint overtakes it five times.
    for (let round = 0; round < 5; round++) expect(await send()).toBe("0xb");
    expect(failures).toMatchObject([{ error: "is repeatedly slower than the next endpoint" }]);
    const { ms } = await timed(Promise.all([send(), send(), send()]));
    expect(ms).toBeLessThan(90);
    expect(methods(first)).toHaveLength(6);
    expect(methods(second)).toHaveLength(8);
  });

  test.each([
    ["rejected calls", "eth_call", () => ({ error: { code: -32000, message: "no" } }), healthy],
    ["rejected log searches", "eth_getLogs", () => ({ error: { code: -32005, message: "too many" } }), healthy],
    ["log searches rejected by HTTP status", "eth_getLogs", () => ({ result: "0xa" }), failing],
  ])("does not count %s", async (_, method, respond, intercept) => {
    const { first, second, send } = await pair();
    await send();
    Object.assign(first, { respond, intercept });
    const found = method === "eth_getLogs" ? [] : "0xb";
    second.respond = () => ({ result: found });
    for (let round = 0; round < 6; round++) expect(await send(method)).toEqual(found);
    Object.assign(first, { ...result("0xa"), intercept: healthy });
    expect(await send()).toBe("0xa");
    expect(methods(second)).toHaveLength(6);
  });

  test("is not kept open by a probe whose caller leaves", async () => {
    const { first, send, clock } = await pair({ attemptTimeoutMs: 3_000 });
    await send();
    first.intercept = failing;
    for (let round = 0; round < 5; round++) await send();
    clock.ms += 30_000;
    first.intercept = hang;
    const leaving = new AbortController();
    const left = send("eth_call", leaving.signal);
    setTimeout(() => leaving.abort(), 20);
    await expect(left).rejects.toMatchObject(UNAVAILABLE_ERROR);
    first.intercept = healthy;
    expect(await send()).toBe("0xa");
  });

  test("is not kept open by a probe that another endpoint has overtaken", async () => {
    const { first, second, send, clock, failures } = await pair({ attemptTimeoutMs: 1_000 });
    await send();
    first.intercept = failing;
    second.intercept = failing;
    for (let round = 0; round < 5; round++) await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    clock.ms += 30_000;
    Object.assign(first, { intercept: healthy, delayMs: 250 });
    Object.assign(second, { intercept: healthy, delayMs: 900 });
    expect(await send()).toBe("0xa");
    failures.length = 0;
    first.intercept = hang;
    second.delayMs = 0;
    // The request is hedged, not only sent after a failure of the first.
    expect(await send()).toBe("0xb");
    expect(failures).toEqual([]);
  });

  test("always leaves an endpoint to try", async () => {
    const { first, second, send } = await pair();
    await send();
    first.intercept = failing;
    second.intercept = failing;
    for (let round = 0; round < 6; round++) await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    const before = methods(second).length;
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(methods(second).length).toBeGreaterThan(before);
    second.intercept = healthy;
    expect(await send()).toBe("0xb");
  });
});

describe("an endpoint that requests a cooldown", () => {
  const limited =
    (retryAfter: string): RpcNodeStub["intercept"] =>
    ({ response }) => {
      response.writeHead(429, { "retry-after": retryAfter }).end();
      return true;
    };

  test.each([
    ["5", 5_000],
    ["3600", 30_000],
    [new Date(Date.now() + 3_600_000).toUTCString(), 30_000],
  ])("gets no requests during Retry-After: %s", async (retryAfter, ms) => {
    const { first, send, clock } = await pair();
    await send();
    first.intercept = limited(retryAfter);
    expect(await send()).toBe("0xb");
    first.intercept = healthy;
    clock.ms += ms - 1;
    expect(await send()).toBe("0xb");
    expect(methods(first)).toHaveLength(2);
    clock.ms += 1;
    expect(await send()).toBe("0xa");
  });

  test("is only probed now and then, even as the only endpoint", async () => {
    const node = await startRpcNodeStub();
    const { send, clock } = createPoolOn([node]);
    await send();
    node.intercept = limited("20");
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(node.requests).toHaveLength(2);
    clock.ms += 2_000;
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    await vi.waitFor(() => expect(node.requests.slice(2)).toEqual([["eth_chainId"]]), { timeout: 60_000 });
    node.intercept = healthy;
    clock.ms += 2_000;
    await vi.waitFor(async () => expect(await send()).toBe("0x1"), { timeout: 60_000 });
    expect(await send()).toBe("0x1");
  });

  test("is probed while all others fail, and not while one is healthy", async () => {
    const { first, second, send, clock } = await pair();
    await send();
    first.intercept = limited("20");
    for (let round = 0; round < 3; round++) expect(await send()).toBe("0xb");
    first.intercept = healthy;
    const { length } = first.requests;
    clock.ms += 2_000;
    expect(await send()).toBe("0xb");
    expect(first.requests).toHaveLength(length);
    second.intercept = failing;
    for (let round = 0; round < 2; round++) await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    await vi.waitFor(async () => expect(await send()).toBe("0xa"), { timeout: 60_000 });
  });

  test("is probed independently of the callers' signals", async () => {
    const node = await startRpcNodeStub();
    const { send, clock } = createPoolOn([node]);
    await send();
    node.intercept = limited("20");
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    node.intercept = healthy;
    node.delayMs = 50;
    clock.ms += 2_000;
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(node.abortedRequests).toBe(0);
    await vi.waitFor(async () => expect(await send()).toBe("0x1"), { timeout: 60_000 });
  });

  test("is not left alone when its Retry-After is invalid", async () => {
    const { first, send } = await pair();
    await send();
    first.intercept = limited("soon");
    expect(await send()).toBe("0xb");
    first.intercept = healthy;
    expect(await send()).toBe("0xa");
  });
});
