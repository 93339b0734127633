import { describe, expect, test, vi } from "vitest";
import { createCircuitBreaker } from "../../../src/resilience/circuit-breaker.js";
import { createPoolOn, type RpcNodeStub, startRpcNodeStub, UNAVAILABLE_ERROR } from "../chain/support/rpc-node-stub.js";

const result = (value: string) => ({ respond: () => ({ result: value }) });
const failing: RpcNodeStub["intercept"] = ({ response }) => {
  response.writeHead(500).end();
  return true;
};
const hang: RpcNodeStub["intercept"] = () => true;
const well: RpcNodeStub["intercept"] = () => false;
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

describe("hedging", () => {
  test("asks the next endpoint too when the first is slower than it mostly is; the loser is cut off", async () => {
    const { first, second, send, failures } = await pair({ attemptTimeoutMs: 3_000 });
    for (let round = 0; round < 20; round++) await send();
    first.delayMs = 2_000;
    const { value, ms } = await timed(send());
    expect(value).toBe("0xb");
    // The first one's 95th percentile is below the least wait of 100 ms.
    expect(ms).toBeGreaterThan(95);
    expect(ms).toBeLessThan(400);
    await vi.waitFor(() => expect(first.abortedRequests).toBe(1));
    expect(methods(second)).toHaveLength(1);
    expect(failures).toEqual([]);
  });

  test("takes the first one's answer when that comes first after all", async () => {
    const { first, second, send } = await pair({ attemptTimeoutMs: 3_000 });
    await send();
    first.delayMs = 200;
    second.delayMs = 2_000;
    expect((await timed(send())).value).toBe("0xa");
    await vi.waitFor(() => expect(second.abortedRequests).toBe(1));
    expect(methods(second)).toHaveLength(1);
  });

  test("waits for the other when one of the two fails", async () => {
    const { first, second, send, failures } = await pair({ attemptTimeoutMs: 3_000 });
    await send();
    first.delayMs = 250;
    second.intercept = failing;
    expect(await send()).toBe("0xa");
    expect(failures).toMatchObject([{ problem: "answered 500" }]);
  });

  test("comes after half a second where nothing is known yet", async () => {
    const { first, send } = await pair({ attemptTimeoutMs: 3_000 });
    first.intercept = hang;
    const { value, ms } = await timed(send());
    expect(value).toBe("0xb");
    expect(ms).toBeGreaterThan(490);
    expect(ms).toBeLessThan(900);
  });

  test("follows the latencies that it sees", async () => {
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

  test("needs an endpoint that is well", async () => {
    const { first, second, send } = await pair({ attemptTimeoutMs: 3_000 });
    await send();
    // The second fails whenever it is asked, until its breaker opens.
    first.intercept = failing;
    second.intercept = failing;
    await send().catch(() => {});
    first.intercept = well;
    first.delayMs = 200;
    for (let round = 0; round < 5; round++) await send();
    const asked = methods(second).length;
    await send();
    expect(methods(second)).toHaveLength(asked);
  });

  test("needs another endpoint", async () => {
    const only = await startRpcNodeStub({ delayMs: 250 });
    const { send } = createPoolOn([only], { attemptTimeoutMs: 3_000 });
    await send();
    await send();
    expect(methods(only)).toHaveLength(2);
  });
});

describe("a breaker", () => {
  test("leaves an endpoint alone after five failures in a row, and tries it again with one read", async () => {
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
    first.intercept = well;
    first.delayMs = 20;
    expect((await Promise.all([send(), send(), send()])).sort()).toEqual(["0xa", "0xb", "0xb"]);
    expect(await Promise.all([send(), send()])).toEqual(["0xa", "0xa"]);
    // It starts anew: one failure more means nothing.
    first.intercept = failing;
    await send();
    first.intercept = well;
    expect(await send()).toBe("0xa");
    expect(second.requests.length).toBeGreaterThan(0);
  });

  test("opens at 20 failures of 80", async () => {
    const { first, send } = await pair();
    for (let round = 0; round < 60; round++) await send();
    for (let round = 0; round < 20; round++) {
      first.intercept = failing;
      expect(await send()).toBe("0xb");
      first.intercept = well;
      if (round < 19) expect(await send()).toBe("0xa");
    }
    expect(await send()).toBe("0xb");
  });

  test("stays closed while one of five fails", async () => {
    const { first, second, send } = await pair();
    for (let round = 0; round < 200; round++) {
      first.intercept = round % 5 === 4 ? failing : well;
      expect(await send()).toBe(round % 5 === 4 ? "0xb" : "0xa");
    }
    expect(methods(second)).toHaveLength(40);
  });

  test("makes a first endpoint that hangs cost little", async () => {
    const { first, second, send, failures } = await pair({ attemptTimeoutMs: 1_000 });
    await send();
    first.intercept = hang;
    // Beaten by the second five times.
    for (let round = 0; round < 5; round++) expect(await send()).toBe("0xb");
    expect(failures).toMatchObject([{ problem: "is slower than the next endpoint, again and again" }]);
    const { ms } = await timed(Promise.all([send(), send(), send()]));
    expect(ms).toBeLessThan(90);
    expect(methods(first)).toHaveLength(6);
    expect(methods(second)).toHaveLength(8);
  });

  test.each([
    ["calls that are refused", "eth_call", () => ({ error: { code: -32000, message: "no" } }), well],
    ["searches that are refused", "eth_getLogs", () => ({ error: { code: -32005, message: "too many" } }), well],
    ["searches that are refused by HTTP", "eth_getLogs", () => ({ result: "0xa" }), failing],
  ])("does not count %s", async (_, method, respond, intercept) => {
    const { first, second, send } = await pair();
    await send();
    Object.assign(first, { respond, intercept });
    const found = method === "eth_getLogs" ? [] : "0xb";
    second.respond = () => ({ result: found });
    for (let round = 0; round < 6; round++) expect(await send(method)).toEqual(found);
    Object.assign(first, { ...result("0xa"), intercept: well });
    expect(await send()).toBe("0xa");
    expect(methods(second)).toHaveLength(6);
  });

  test("heeds no answer to what was asked before it opened", () => {
    const health = createCircuitBreaker(() => 0);
    const late = health.beginAttempt();
    for (let count = 0; count < 5; count++) expect(health.beginAttempt().recordFailure()).toBe(count === 4);
    late.recordSuccess(10);
    expect(health.isOpen()).toBe(true);
    health.beginAttempt().recordSuccess(10);
    expect(health.isOpen()).toBe(false);
  });

  test("probes again where a probe told nothing", () => {
    let now = 0;
    const health = createCircuitBreaker(() => now);
    for (let count = 0; count < 5; count++) health.beginAttempt().recordFailure();
    now += 30_000;
    const probe = health.beginAttempt();
    expect(health.isOpen()).toBe(true);
    probe.ignore();
    expect(health.isOpen()).toBe(false);
    health.beginAttempt().recordSuccess(10);
    expect(health.isOpen()).toBe(false);
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
    first.intercept = well;
    expect(await send()).toBe("0xa");
  });

  test("is not kept open by a probe that another endpoint has outrun", async () => {
    const { first, second, send, clock, failures } = await pair({ attemptTimeoutMs: 1_000 });
    await send();
    first.intercept = failing;
    second.intercept = failing;
    for (let round = 0; round < 5; round++) await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    clock.ms += 30_000;
    Object.assign(first, { intercept: well, delayMs: 250 });
    Object.assign(second, { intercept: well, delayMs: 900 });
    expect(await send()).toBe("0xa");
    failures.length = 0;
    first.intercept = hang;
    second.delayMs = 0;
    // Asked beside the first, and not only after it.
    expect(await send()).toBe("0xb");
    expect(failures).toEqual([]);
  });

  test("forgets what was before it closed again", () => {
    let now = 0;
    const health = createCircuitBreaker(() => now);
    for (let count = 0; count < 19; count++) {
      health.beginAttempt().recordFailure();
      health.beginAttempt().recordSuccess(10);
    }
    expect(health.beginAttempt().recordFailure()).toBe(true);
    now += 30_000;
    health.beginAttempt().recordSuccess(10);
    expect(health.beginAttempt().recordFailure()).toBe(false);
  });

  test("never leaves nobody to ask", async () => {
    const { first, second, send } = await pair();
    await send();
    first.intercept = failing;
    second.intercept = failing;
    for (let round = 0; round < 6; round++) await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    const before = methods(second).length;
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(methods(second).length).toBeGreaterThan(before);
    second.intercept = well;
    expect(await send()).toBe("0xb");
  });
});

describe("an endpoint that asks for a rest", () => {
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
  ])("by Retry-After: %s gets it", async (retryAfter, ms) => {
    const { first, send, clock } = await pair();
    await send();
    first.intercept = limited(retryAfter);
    expect(await send()).toBe("0xb");
    first.intercept = well;
    clock.ms += ms - 1;
    expect(await send()).toBe("0xb");
    expect(methods(first)).toHaveLength(2);
    clock.ms += 1;
    expect(await send()).toBe("0xa");
  });

  test("gets it even when it is the only one, but for a look now and then", async () => {
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
    await vi.waitFor(() => expect(node.requests.slice(2)).toEqual([["eth_chainId"]]));
    node.intercept = well;
    clock.ms += 2_000;
    await vi.waitFor(async () => expect(await send()).toBe("0x1"));
    expect(await send()).toBe("0x1");
  });

  test("is looked at also where the others are there and fail, and not where one is well", async () => {
    const { first, second, send, clock } = await pair();
    await send();
    first.intercept = limited("20");
    for (let round = 0; round < 3; round++) expect(await send()).toBe("0xb");
    first.intercept = well;
    const { length } = first.requests;
    clock.ms += 2_000;
    expect(await send()).toBe("0xb");
    expect(first.requests).toHaveLength(length);
    second.intercept = failing;
    for (let round = 0; round < 2; round++) await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    await vi.waitFor(async () => expect(await send()).toBe("0xa"));
  });

  test("is looked at by nobody whose leaving would end that", async () => {
    const node = await startRpcNodeStub();
    const { send, clock } = createPoolOn([node]);
    await send();
    node.intercept = limited("20");
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    node.intercept = well;
    node.delayMs = 50;
    clock.ms += 2_000;
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(node.abortedRequests).toBe(0);
    await vi.waitFor(async () => expect(await send()).toBe("0x1"));
  });

  test("in words that nobody understands gets none", async () => {
    const { first, send } = await pair();
    await send();
    first.intercept = limited("soon");
    expect(await send()).toBe("0xb");
    first.intercept = well;
    expect(await send()).toBe("0xa");
  });
});
