import { describe, expect, test } from "vitest";
import type { EndpointPoolOptions } from "../../../../src/chain/endpoints/endpoint-pool.js";
import { createHeader } from "../support/log-chain-stub.js";
import {
  answerStatus,
  callsTo,
  down,
  hang,
  healthy,
  holdResponses,
  rejecting,
  returning,
  startPool,
  UNAVAILABLE_ERROR,
  until,
} from "../support/rpc-node-stub.js";

/** Starts endpoints that return 0xa and 0xb, of which the first has answered once. */
async function startPair(options: Partial<EndpointPoolOptions> = {}) {
  const { nodes, ...created } = await startPool([returning("0xa"), returning("0xb")], options);
  await created.send();
  return { ...created, first: nodes[0], second: nodes[1] };
}

/** Starts a pair whose first endpoint is well again after five failures, and may be probed. */
async function startRecovered(options: Partial<EndpointPoolOptions> = {}) {
  const pair = await startPair(options);
  pair.first.intercept = down;
  for (let round = 0; round < 5; round++) await pair.send();
  pair.clock.ms += 30_000;
  pair.first.intercept = healthy;
  pair.failures.length = 0;
  return pair;
}

describe("a hedged request", () => {
  test("goes to the next endpoint when the first exceeds its usual latency, and aborts the slower one", async () => {
    const { first, second, send, failures, hedges } = await startPair();
    for (let round = 1; round < 20; round++) await send();
    first.intercept = hang;
    second.ready = until(() => expect(callsTo(first)).toHaveLength(21));
    hedges.areDue = true;
    expect(await send()).toBe("0xb");
    // The 95th percentile of the first endpoint is below the minimum delay.
    expect(hedges.delaysMs.at(-1)).toBe(100);
    await until(() => expect(first.abortedRequests).toBe(1));
    expect(callsTo(second)).toHaveLength(1);
    expect(failures).toEqual([]);
  });

  test("returns the first endpoint's response when that arrives first", async () => {
    const { first, second, send, hedges } = await startPair();
    first.ready = until(() => expect(callsTo(second)).toHaveLength(1));
    second.intercept = hang;
    hedges.areDue = true;
    expect(await send()).toBe("0xa");
    await until(() => expect(second.abortedRequests).toBe(1));
    expect(callsTo(second)).toHaveLength(1);
  });

  test("waits for the other endpoint when one of the two fails", async () => {
    const { first, second, send, failures, hedges } = await startPair();
    first.ready = until(() => expect(failures).toHaveLength(1));
    second.intercept = down;
    hedges.areDue = true;
    expect(await send()).toBe("0xa");
    expect(failures).toMatchObject([{ error: "answered 500" }]);
  });

  test("starts after 500 ms when no latency is known, and then after the measured latencies", async () => {
    const { nodes, send, clock, hedges } = await startPool([{}, returning("0xb")]);
    const [first, second] = nodes;
    first.respond = () => {
      clock.ms += 200;
      return { result: "0xa" };
    };
    for (let round = 0; round < 4; round++) await send();
    expect(callsTo(second)).toEqual([]);
    first.intercept = hang;
    hedges.areDue = true;
    expect(await send()).toBe("0xb");
    expect(hedges.delaysMs).toEqual([500, 200, 200, 200, 200]);
  });

  test("does not double the load of endpoints that are equally slow: reads of the head tell", async () => {
    const { nodes, pool, send, clock, hedges } = await startPool([
      { head: createHeader(1) },
      { head: createHeader(1) },
    ]);
    const [first, second] = nodes;
    const respond = holdResponses(first, second);
    const read = send();
    await until(() => expect([first.headRequests, second.headRequests, callsTo(first).length]).toEqual([1, 1, 1]));
    clock.ms += 2_000;
    respond();
    await read;
    await until(() => expect(pool.state().endpoints.every((endpoint) => endpoint.head !== undefined)).toBe(true));
    await send();
    expect(hedges.delaysMs).toEqual([500, 2_000]);
  });

  test("needs a healthy second endpoint", async () => {
    const { first, second, send, failures, hedges } = await startPair();
    second.intercept = down;
    hedges.areDue = true;
    // Five failures open the breaker of the second endpoint.
    for (let round = 1; round <= 5; round++) {
      first.ready = until(() => expect(failures).toHaveLength(round));
      expect(await send()).toBe("0xa");
    }
    first.ready = Promise.resolve();
    expect(await send()).toBe("0xa");
    expect(callsTo(second)).toHaveLength(5);
  });

  test("needs a second endpoint", async () => {
    const { nodes, send, hedges } = await startPool([{ delayMs: 20 }]);
    hedges.areDue = true;
    await send();
    await send();
    expect(callsTo(nodes[0])).toHaveLength(2);
  });
});

describe("a circuit breaker of an endpoint", () => {
  test("opens after five failures in a row and probes with one request, beside that of a caller", async () => {
    let open = 0;
    const onEndpointRequest = (): (() => void) => {
      open += 1;
      return () => (open -= 1);
    };
    const { first, send, clock, states } = await startPair({ onEndpointRequest });
    first.intercept = down;
    for (let round = 0; round < 8; round++) expect(await send()).toBe("0xb");
    expect(callsTo(first)).toHaveLength(1 + 5);

    clock.ms += 29_999;
    await send();
    await until(() => expect(open).toBe(0));
    expect(callsTo(first)).toHaveLength(6);
    clock.ms += 1;
    expect(await Promise.all([send(), send(), send()])).toEqual(["0xb", "0xb", "0xb"]);
    // Nobody waits for the probe.
    await until(() => expect(open).toBe(0));
    expect(callsTo(first)).toHaveLength(7);

    clock.ms += 30_000;
    first.intercept = healthy;
    await send();
    await until(() => expect(callsTo(first)).toHaveLength(8));
    await until(() => expect(states()[0]).toBe("ok"));
    expect(await Promise.all([send(), send()])).toEqual(["0xa", "0xa"]);
    // The failure count starts again: one more failure does not open the breaker.
    first.intercept = down;
    await send();
    first.intercept = healthy;
    expect(await send()).toBe("0xa");
  });

  test("opens for a first endpoint that hangs and is overtaken five times", async () => {
    const { first, second, send, failures, hedges } = await startPair();
    first.intercept = hang;
    hedges.areDue = true;
    for (let round = 1; round <= 5; round++) {
      second.ready = until(() => expect(callsTo(first)).toHaveLength(1 + round));
      expect(await send()).toBe("0xb");
    }
    expect(failures).toMatchObject([{ error: "is repeatedly slower than the next endpoint" }]);
    hedges.areDue = false;
    expect(await Promise.all([send(), send(), send()])).toEqual(["0xb", "0xb", "0xb"]);
    expect([callsTo(first).length, callsTo(second).length]).toEqual([6, 8]);
  });

  test.each([
    ["rejected calls", "eth_call", rejecting({ code: -32000, message: "no" })],
    ["rejected log searches", "eth_getLogs", rejecting({ code: -32005, message: "too many" })],
    ["log searches rejected by HTTP status", "eth_getLogs", { intercept: down }],
  ])("does not count %s", async (_, method, behaviour) => {
    const { first, second, send } = await startPair();
    Object.assign(first, behaviour);
    const found = method === "eth_getLogs" ? [] : "0xb";
    Object.assign(second, returning(found));
    for (let round = 0; round < 6; round++) expect(await send(method)).toEqual(found);
    Object.assign(first, { ...returning("0xa"), intercept: healthy });
    expect(await send()).toBe("0xa");
    expect(callsTo(second)).toHaveLength(6);
  });

  test("probes without delaying a caller, and is not kept open by a probe whose caller has its answer", async () => {
    const { first, send, states } = await startRecovered();
    const respond = holdResponses(first);
    // Its request would wait for the probe, which does not end yet.
    expect(await send()).toBe("0xb");
    await until(() => expect(callsTo(first)).toHaveLength(1 + 5 + 1));
    expect(await send()).toBe("0xb");
    expect([callsTo(first).length, first.abortedRequests]).toEqual([1 + 5 + 1, 0]);
    respond();
    await until(() => expect(states()[0]).toBe("ok"));
    expect(await send()).toBe("0xa");
  });

  test("stays open after a probe that responds much later than the other endpoint", async () => {
    let ended = 0;
    const { first, send, clock, failures } = await startRecovered({ onEndpointRequest: () => () => (ended += 1) });
    const respond = holdResponses(first);
    await send();
    await until(() => expect(callsTo(first)).toHaveLength(1 + 5 + 1));
    clock.ms += 2_000;
    const before = ended;
    respond();
    await until(() => expect(ended).toBeGreaterThan(before));
    await send();
    // The next probe is due 30 seconds after this one has ended.
    clock.ms += 28_000;
    expect(await send()).toBe("0xb");
    expect([callsTo(first).length, failures]).toEqual([1 + 5 + 1, []]);
  });

  test("lets a request use the endpoint that is probed when the other one fails", async () => {
    const { first, second, send } = await startRecovered();
    second.intercept = down;
    first.ready = until(() => expect(callsTo(second).length).toBe(5 + 1));
    expect(await send()).toBe("0xa");
  });

  test("always leaves an endpoint to try", async () => {
    const { first, second, send } = await startPair();
    first.intercept = down;
    second.intercept = down;
    for (let round = 0; round < 6; round++) await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    const before = callsTo(second).length;
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(callsTo(second).length).toBeGreaterThan(before);
    second.intercept = healthy;
    expect(await send()).toBe("0xb");
  });
});

describe("an endpoint that requests a cooldown", () => {
  const limited = (retryAfter: string) => answerStatus(429, { "retry-after": retryAfter });

  test.each([
    ["5", 5_000],
    ["3600", 30_000],
    [new Date(Date.now() + 3_600_000).toUTCString(), 30_000],
  ])("gets no requests during Retry-After: %s", async (retryAfter, ms) => {
    const { first, send, clock } = await startPair();
    first.intercept = limited(retryAfter);
    expect(await send()).toBe("0xb");
    first.intercept = healthy;
    clock.ms += ms - 1;
    expect(await send()).toBe("0xb");
    expect(callsTo(first)).toHaveLength(2);
    clock.ms += 1;
    expect(await send()).toBe("0xa");
  });

  test("is asked now and then if it is the only endpoint", async () => {
    const { nodes, send, clock } = await startPool([{}]);
    const [node] = nodes;
    await send();
    node.intercept = limited("20");
    for (const requests of [2, 3]) {
      await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
      await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
      expect(node.requests).toHaveLength(requests);
      clock.ms += 2_000;
    }
    node.intercept = healthy;
    expect(await send()).toBe("0x1");
    expect(await send()).toBe("0x1");
  });

  test("is asked while all others fail, and not while one is healthy", async () => {
    const { first, second, send, clock } = await startPair();
    first.intercept = limited("20");
    for (let round = 0; round < 3; round++) expect(await send()).toBe("0xb");
    first.intercept = healthy;
    const { length } = first.requests;
    clock.ms += 2_000;
    expect(await send()).toBe("0xb");
    expect(first.requests).toHaveLength(length);
    second.intercept = down;
    await expect(send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(await send()).toBe("0xa");
  });

  test("is not left alone when its Retry-After is invalid", async () => {
    const { first, send } = await startPair();
    first.intercept = limited("soon");
    expect(await send()).toBe("0xb");
    first.intercept = healthy;
    expect(await send()).toBe("0xa");
  });
});
