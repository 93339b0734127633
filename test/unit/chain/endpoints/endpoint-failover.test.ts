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

/** Resolves when a test's condition holds, however long that takes. */
const until = (assertion: () => void): Promise<void> => vi.waitFor(assertion, { timeout: 60_000, interval: 5 });

describe("a hedged request", () => {
  test("goes to the next endpoint when the first exceeds its usual latency, and aborts the slower one", async () => {
    const { first, second, send, failures, hedges } = await pair();
    for (let round = 0; round < 20; round++) await send();
    first.intercept = hang;
    second.ready = until(() => expect(methods(first)).toHaveLength(21));
    hedges.areDue = true;
    expect(await send()).toBe("0xb");
    // The 95th percentile of the first endpoint is below the minimum delay.
    expect(hedges.delaysMs.at(-1)).toBe(100);
    await until(() => expect(first.abortedRequests).toBe(1));
    expect(methods(second)).toHaveLength(1);
    expect(failures).toEqual([]);
  });

  test("returns the first endpoint's response when that arrives first", async () => {
    const { first, second, send, hedges } = await pair();
    await send();
    first.ready = until(() => expect(methods(second)).toHaveLength(1));
    second.intercept = hang;
    hedges.areDue = true;
    expect(await send()).toBe("0xa");
    await until(() => expect(second.abortedRequests).toBe(1));
    expect(methods(second)).toHaveLength(1);
  });

  test("waits for the other endpoint when one of the two fails", async () => {
    const { first, second, send, failures, hedges } = await pair();
    await send();
    first.ready = until(() => expect(failures).toHaveLength(1));
    second.intercept = failing;
    hedges.areDue = true;
    expect(await send()).toBe("0xa");
    expect(failures).toMatchObject([{ error: "answered 500" }]);
  });

  test("starts after 500 ms when no latency is known", async () => {
    const { first, send, hedges } = await pair();
    first.intercept = hang;
    hedges.areDue = true;
    expect(await send()).toBe("0xb");
    expect(hedges.delaysMs).toEqual([500]);
  });

  test("adapts its delay to the measured latencies", async () => {
    const { first, second, send, clock, hedges } = await pair();
    first.respond = () => {
      clock.ms += 200;
      return { result: "0xa" };
    };
    for (let round = 0; round < 4; round++) await send();
    expect(methods(second)).toEqual([]);
    first.intercept = hang;
    hedges.areDue = true;
    expect(await send()).toBe("0xb");
    expect(hedges.delaysMs).toEqual([500, 200, 200, 200, 200]);
  });

  test("does not double the load of endpoints that are equally slow: reads of the head tell", async () => {
    const { first, second, pool, send, clock, hedges } = await pair();
    const head = { number: "0x1", timestamp: "0x1" };
    let respond = (): void => {};
    const ready = new Promise<void>((resolve) => {
      respond = resolve;
    });
    Object.assign(first, { head, ready });
    Object.assign(second, { head, ready });
    const read = send();
    await until(() => expect([first.headRequests, second.headRequests, methods(first).length]).toEqual([1, 1, 1]));
    clock.ms += 2_000;
    respond();
    await read;
    await until(() => expect(pool.state().endpoints.every((endpoint) => endpoint.head !== undefined)).toBe(true));
    await send();
    expect(hedges.delaysMs).toEqual([500, 2_000]);
  });

  test("needs a healthy second endpoint", async () => {
    const { first, second, send, failures, hedges } = await pair();
    await send();
    second.intercept = failing;
    hedges.areDue = true;
    // Five failures open the breaker of the second endpoint.
    for (let round = 1; round <= 5; round++) {
      first.ready = until(() => expect(failures).toHaveLength(round));
      expect(await send()).toBe("0xa");
    }
    expect(methods(second)).toHaveLength(5);
    first.ready = Promise.resolve();
    expect(await send()).toBe("0xa");
    expect(methods(second)).toHaveLength(5);
  });

  test("needs a second endpoint", async () => {
    const only = await startRpcNodeStub({ delayMs: 20 });
    const { send, hedges } = createPoolOn([only]);
    hedges.areDue = true;
    await send();
    await send();
    expect(methods(only)).toHaveLength(2);
  });
});

describe("a circuit breaker of an endpoint", () => {
  test("opens after five failures in a row and probes with one request, beside that of a caller", async () => {
    let open = 0;
    const onEndpointRequest = (): (() => void) => {
      open += 1;
      return () => (open -= 1);
    };
    const { first, second, send, clock, pool } = await pair({ onEndpointRequest });
    await send();
    first.intercept = failing;
    for (let round = 0; round < 8; round++) expect(await send()).toBe("0xb");
    expect(methods(first)).toHaveLength(1 + 5);

    clock.ms += 29_999;
    await send();
    await until(() => expect(open).toBe(0));
    expect(methods(first)).toHaveLength(6);
    clock.ms += 1;
    expect(await Promise.all([send(), send(), send()])).toEqual(["0xb", "0xb", "0xb"]);
    // Nobody waits for the probe.
    await until(() => expect(open).toBe(0));
    expect(methods(first)).toHaveLength(7);

    clock.ms += 30_000;
    first.intercept = healthy;
    await send();
    await until(() => expect(methods(first)).toHaveLength(8));
    await until(() => expect(pool.state().endpoints[0]?.state).toBe("ok"));
    expect(await Promise.all([send(), send()])).toEqual(["0xa", "0xa"]);
    // The failure count starts again: one more failure does not open the breaker.
    first.intercept = failing;
    await send();
    first.intercept = healthy;
    expect(await send()).toBe("0xa");
    expect(second.requests.length).toBeGreaterThan(0);
  });

  test("opens for a first endpoint that hangs and is overtaken five times", async () => {
    const { first, second, send, failures, hedges } = await pair();
    await send();
    first.intercept = hang;
    hedges.areDue = true;
    for (let round = 1; round <= 5; round++) {
      second.ready = until(() => expect(methods(first)).toHaveLength(1 + round));
      expect(await send()).toBe("0xb");
    }
    expect(failures).toMatchObject([{ error: "is repeatedly slower than the next endpoint" }]);
    hedges.areDue = false;
    expect(await Promise.all([send(), send(), send()])).toEqual(["0xb", "0xb", "0xb"]);
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

  test("probes without delaying a caller, and is not kept open by a probe whose caller has its answer", async () => {
    const { first, send, clock, pool } = await pair();
    await send();
    first.intercept = failing;
    for (let round = 0; round < 5; round++) await send();
    clock.ms += 30_000;
    first.intercept = healthy;
    let respond = (): void => {};
    first.ready = new Promise<void>((resolve) => {
      respond = resolve;
    });
    // Its request would wait for the probe, which does not end yet.
    expect(await send()).toBe("0xb");
    await until(() => expect(methods(first)).toHaveLength(1 + 5 + 1));
    expect(await send()).toBe("0xb");
    expect([methods(first).length, first.abortedRequests]).toEqual([1 + 5 + 1, 0]);
    respond();
    await until(() => expect(pool.state().endpoints[0]?.state).toBe("ok"));
    expect(await send()).toBe("0xa");
  });

  test("stays open after a probe that responds much later than the other endpoint", async () => {
    let ended = 0;
    const { first, send, clock, failures } = await pair({ onEndpointRequest: () => () => (ended += 1) });
    await send();
    first.intercept = failing;
    for (let round = 0; round < 5; round++) await send();
    clock.ms += 30_000;
    first.intercept = healthy;
    failures.length = 0;
    let respond = (): void => {};
    first.ready = new Promise<void>((resolve) => {
      respond = resolve;
    });
    await send();
    await until(() => expect(methods(first)).toHaveLength(1 + 5 + 1));
    clock.ms += 2_000;
    const before = ended;
    respond();
    await until(() => expect(ended).toBeGreaterThan(before));
    await send();
    // The next probe is due 30 seconds after this one has ended.
    clock.ms += 28_000;
    expect(await send()).toBe("0xb");
    expect([methods(first).length, failures]).toEqual([1 + 5 + 1, []]);
  });

  test("lets a request use the endpoint that is probed when the other one fails", async () => {
    const { first, second, send, clock } = await pair();
    await send();
    first.intercept = failing;
    for (let round = 0; round < 5; round++) await send();
    clock.ms += 30_000;
    first.intercept = healthy;
    second.intercept = failing;
    first.ready = until(() => expect(methods(second).length).toBe(5 + 1));
    expect(await send()).toBe("0xa");
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

  test("is asked now and then if it is the only endpoint", async () => {
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
    expect(node.requests).toHaveLength(3);
    node.intercept = healthy;
    clock.ms += 2_000;
    expect(await send()).toBe("0x1");
    expect(await send()).toBe("0x1");
  });

  test("is asked while all others fail, and not while one is healthy", async () => {
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
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(await send()).toBe("0xa");
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
