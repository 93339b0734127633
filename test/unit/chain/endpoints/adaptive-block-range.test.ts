import { Agent } from "undici";
import { describe, expect, test, vi } from "vitest";
import type { BlockRange } from "../../../../src/chain/chain-client.js";
import { createAdaptiveLogReader } from "../../../../src/chain/endpoints/adaptive-block-range.js";
import type { Endpoint } from "../../../../src/chain/endpoints/endpoint.js";
import type { Upstream } from "../../../../src/chain/endpoints/endpoint-attempt.js";
import { createHedgedRequester } from "../../../../src/chain/endpoints/hedged-requests.js";
import { searchLogs } from "../../../../src/chain/read/log-search.js";
import { ServiceError } from "../../../../src/errors.js";
import { createCircuitBreaker } from "../../../../src/resilience/circuit-breaker.js";
import { UpstreamError } from "../../../../src/resilience/upstream-error.js";
import { blockNumbersOf, createHeader, createRpcLog, logFilter } from "../support/log-chain-stub.js";
import {
  createPoolOn,
  NO_DELAY,
  type NodeCall,
  type RpcNodeStub,
  startRpcNodeStub,
  UNAVAILABLE_ERROR,
} from "../support/rpc-node-stub.js";

const never = new AbortController().signal;
const everything = { from: 0, to: Number.POSITIVE_INFINITY };
const head = 60_000;
const minutes = 60_000;
const late = new UpstreamError("did not answer in time");

/** Errors of nodes for too many blocks. */
const rangeErrors = {
  "names the limit": (maxBlocks: number) => ({ code: -32602, message: `at maxBlocks ${maxBlocks} blocks` }),
  "does not name the limit": () => ({ code: -32000, message: "range is too large" }),
};

/** Starts a node with logs in some blocks that records the requested ranges. */
async function startLogNode(blocks: readonly number[], maxBlocks: number, reject = rangeErrors["names the limit"]) {
  const state = { maxBlocks, widths: [] as number[], rejected: 0, reject };
  const respond = ({ method, params }: NodeCall): { result: unknown } | { error: unknown } => {
    if (method !== "eth_getLogs") return { result: "0x1" };
    const { fromBlock, toBlock } = params[0] as { fromBlock: string; toBlock: string };
    const [from, to] = [Number(fromBlock), toBlock === "latest" ? Number.POSITIVE_INFINITY : Number(toBlock)];
    state.widths.push(to - from + 1);
    if (to - from + 1 > state.maxBlocks) {
      state.rejected += 1;
      return { error: state.reject(state.maxBlocks) };
    }
    return { result: blocks.filter((block) => block >= from && block <= to).map((block) => createRpcLog(block)) };
  };
  const node: RpcNodeStub = await startRpcNodeStub({ respond, head: createHeader(head) });
  return { node, state };
}

const searchAll = (client: Parameters<typeof searchLogs>[0]) =>
  searchLogs(client, logFilter, { from: 0, to: "latest" }, { newestFirst: false }, never);

describe("an endpoint that returns logs that do not match", () => {
  const requestedRange = { from: 10, to: 20 };
  const upper = { ...createRpcLog(12), topics: [(logFilter.topics[0] as string).toUpperCase().replace("0X", "0x")] };
  const startNodeReturning = (result: unknown) =>
    startRpcNodeStub({ respond: () => ({ result }), head: createHeader(head) });

  test.each([
    ["of an earlier block", [createRpcLog(9)]],
    ["of a later block", [createRpcLog(21)]],
    ["of another contract", [createRpcLog(12), { ...createRpcLog(13), address: `0x${"b2".repeat(20)}` }]],
    ["with another topic", [{ ...createRpcLog(14), topics: [createRpcLog(14).blockHash] }]],
    ["with no topic", [{ ...createRpcLog(14), topics: [] }]],
    ["that is invalid", [{ ...createRpcLog(14), blockHash: "0x" }]],
    ["outside a list", {}],
  ])("is skipped for the next one: a log %s", async (_, result) => {
    const alone = createPoolOn([await startNodeReturning(result)]);
    await expect(alone.client.getLogs(logFilter, requestedRange, false, never)).rejects.toMatchObject(
      UNAVAILABLE_ERROR,
    );
    expect(alone.failures).toMatchObject([{ error: "returned an impossible result" }]);
    const { client } = createPoolOn([await startNodeReturning(result), await startNodeReturning([createRpcLog(12)])]);
    expect(await client.getLogs(logFilter, requestedRange, false, never)).toEqual({
      result: [createRpcLog(12)],
      range: requestedRange,
    });
  });

  test("is not one that uses upper case or returns a removed log", async () => {
    const logs = [upper, { ...createRpcLog(15), removed: true }];
    const { client } = createPoolOn([await startNodeReturning(logs)]);
    expect(await client.getLogs(logFilter, requestedRange, false, never)).toEqual({
      result: logs,
      range: requestedRange,
    });
  });
});

describe("an endpoint with a small block range", () => {
  test.each([
    [500, "names the limit", 1],
    [500, "does not name the limit", 6],
    [2_000, "names the limit", 1],
    [2_000, "does not name the limit", 4],
  ] as const)("of %i is learned once when its error %s", async (maxBlocks, rangeError, attempts) => {
    const blocks = [0, 499, 500, 1_999, 2_000, 33_333, head];
    const { node, state } = await startLogNode(blocks, maxBlocks, rangeErrors[rangeError]);
    const { client, failures } = createPoolOn([node]);
    expect(blockNumbersOf(await searchAll(client))).toEqual(blocks);
    expect(state.rejected).toBe(attempts);
    expect(blockNumbersOf(await searchAll(client))).toEqual(blocks);
    expect(state.rejected).toBe(attempts);
    expect(failures).toEqual([]);
  });

  test.each([false, true])("gets the part that is needed first, newest first: %j", async (newestFirst) => {
    const { client } = createPoolOn([(await startLogNode([], 500)).node]);
    const page = await client.getLogs(logFilter, { from: 1_000, to: 9_000 }, newestFirst, never);
    expect(page?.range).toEqual(newestFirst ? { from: 8_501, to: 9_000 } : { from: 1_000, to: 1_499 });
  });

  test("does not return an open range", async () => {
    const { node, state } = await startLogNode([], 500);
    const { client } = createPoolOn([node]);
    expect(await client.getLogs(logFilter, everything, false, never)).toBeUndefined();
    expect(await client.getLogs(logFilter, everything, false, never)).toBeUndefined();
    expect(state.widths).toEqual([Number.POSITIVE_INFINITY]);
  });

  test("is used after one with a larger range", async () => {
    const [narrow, wide] = [await startLogNode([7], 500), await startLogNode([7], 20_000)];
    const { client } = createPoolOn([narrow.node, wide.node]);
    expect(blockNumbersOf(await searchAll(client))).toEqual([7]);
    // The single remaining block is within the limit of the first endpoint.
    expect(narrow.state.widths).toEqual([Number.POSITIVE_INFINITY, 1]);
    expect(wide.state.widths).toEqual([Number.POSITIVE_INFINITY, 20_000, 20_000, 20_000]);
  });

  test("is not used if another endpoint has no limit", async () => {
    const [narrow, wide] = [await startLogNode([7], 500), await startLogNode([7], Number.POSITIVE_INFINITY)];
    const { client } = createPoolOn([narrow.node, wide.node]);
    await searchAll(client);
    await searchAll(client);
    expect([narrow.state.widths.length, wide.state.widths.length]).toEqual([1, 2]);
  });

  test("replaces one that is down", async () => {
    const [narrow, gone] = [await startLogNode([7], 30_000), await startLogNode([7], Number.POSITIVE_INFINITY)];
    gone.node.intercept = ({ response }) => {
      response.writeHead(500).end();
      return true;
    };
    const { client, failures } = createPoolOn([narrow.node, gone.node]);
    expect(blockNumbersOf(await searchAll(client))).toEqual([7]);
    expect(failures.length).toBeGreaterThan(0);
  });

  test("is limited for ten minutes, then tried again", async () => {
    const { node, state } = await startLogNode([7], 500);
    const { client, clock } = createPoolOn([node]);
    await client.getLogs(logFilter, everything, false, never);
    state.maxBlocks = Number.POSITIVE_INFINITY;
    clock.ms += 10 * minutes - 1;
    expect(await client.getLogs(logFilter, everything, false, never)).toBeUndefined();
    clock.ms += 1;
    expect(await client.getLogs(logFilter, everything, false, never)).toMatchObject({ range: everything });
  });

  test("gets twice as many blocks when a limit expires, not all", async () => {
    const { node, state } = await startLogNode([], 700, rangeErrors["does not name the limit"]);
    const { client, clock } = createPoolOn([node]);
    const range: BlockRange = { from: 0, to: head };
    await client.getLogs(logFilter, range, false, never);
    expect(state.widths).toEqual([head + 1, 10_000, 5_000, 2_500, 1_250, 625]);
    state.widths.length = 0;
    state.maxBlocks = 2_000;
    for (const [requests, blocks] of [
      [[head + 1, 1_250], 1_250],
      [[head + 1, 2_500, 1_250], 1_250],
    ] as const) {
      clock.ms += 10 * minutes;
      expect((await client.getLogs(logFilter, range, false, never))?.range.to).toBe(blocks - 1);
      expect(state.widths.splice(0)).toEqual(requests);
    }
  });

  test("is not limited further when it rejects the smallest range", async () => {
    const { node, state } = await startLogNode([], 0, rangeErrors["does not name the limit"]);
    const { client, failures, clock } = createPoolOn([node]);
    await expect(client.getLogs(logFilter, { from: 0, to: head }, false, never)).rejects.toMatchObject(
      UNAVAILABLE_ERROR,
    );
    expect(state.widths.slice(0, 3)).toEqual([head + 1, 10_000, 5_000]);
    expect(state.widths.at(-1)).toBe(10);
    expect(failures).toMatchObject([{ method: "eth_getLogs", error: "answered JSON-RPC error -32000" }]);
    state.widths.length = 0;
    await expect(client.getLogs(logFilter, { from: 0, to: head }, false, never)).rejects.toMatchObject(
      UNAVAILABLE_ERROR,
    );
    expect(state.widths).toEqual([10]);
    clock.ms += 30_000;
    state.maxBlocks = Number.POSITIVE_INFINITY;
    expect(await client.getLogs(logFilter, everything, false, never)).toMatchObject({ range: everything });
  });

  test("stays the first choice for other reads", async () => {
    const [narrow, other] = [
      await startLogNode([], 10, rangeErrors["does not name the limit"]),
      await startLogNode([], 10),
    ];
    const { client, send } = createPoolOn([narrow.node, other.node]);
    for (let round = 0; round < 3; round++) await client.getLogs(logFilter, { from: 0, to: head }, false, never);
    await send();
    expect(
      [narrow.node, other.node].map(({ requests }) => requests.flat().filter((each) => each === "eth_call")),
    ).toEqual([["eth_call"], []]);
  });

  test.each([400, 413, 504])("may reject a range with HTTP %i", async (status) => {
    const { node } = await startLogNode([], Number.POSITIVE_INFINITY);
    const { client, send } = createPoolOn([node]);
    await send();
    node.intercept = ({ calls, response }) => {
      const { fromBlock, toBlock } = (calls[0]?.params[0] ?? {}) as { fromBlock?: string; toBlock?: string };
      const isWide = Number(toBlock) - Number(fromBlock) >= 10_000;
      if (isWide) response.writeHead(status).end("{}");
      return isWide;
    };
    expect((await client.getLogs(logFilter, { from: 0, to: head }, false, never))?.range.to).toBe(9_999);
  });

  test.each([
    ["the limit of the HTTP client", new Agent({ maxResponseSize: 10_000 })],
    ["the response limit", new Agent()],
  ])("learns a limit from a response that exceeds %s", async (_, dispatcher) => {
    const { node, state } = await startLogNode([], Number.POSITIVE_INFINITY);
    const usual = node.respond;
    node.respond = (call) => {
      const answer = usual(call);
      return (state.widths.at(-1) ?? 0) > 10_000 ? { result: "f".repeat(20_000) } : answer;
    };
    const { client, failures } = createPoolOn([node], { dispatcher });
    expect((await client.getLogs(logFilter, { from: 0, to: head }, false, never))?.range.to).toBe(9_999);
    expect(failures).toEqual([]);
    await dispatcher.destroy();
  });
});

describe("a rejection for another reason", () => {
  test.each([
    { code: -32005, message: "rate limit of 100 reached" },
    { code: 429, message: "no" },
    { code: -32000, message: "range ends beyond current head block" },
    { code: -32601, message: "no such method" },
  ])("sends the search to the next endpoint, and fails without one: %j", async (error) => {
    const [first, second] = [await startLogNode([], 0, () => error), await startLogNode([7], 30_000)];
    const both = createPoolOn([first.node, second.node]);
    const range = { from: 0, to: 20_000 };
    expect((await both.client.getLogs(logFilter, range, false, never))?.range).toEqual(range);
    expect(both.failures).toHaveLength(1);
    first.state.widths.length = 0;
    const alone = createPoolOn([first.node]);
    await expect(alone.client.getLogs(logFilter, range, false, never)).rejects.toMatchObject(UNAVAILABLE_ERROR);
    first.state.maxBlocks = Number.POSITIVE_INFINITY;
    expect((await alone.client.getLogs(logFilter, everything, false, never))?.range).toEqual(everything);
    expect(first.state.widths).toEqual([20_001, Number.POSITIVE_INFINITY]);
  });
});

describe("endpoints that time out", () => {
  const member = (name: string): Upstream => ({
    endpoint: { name, sendBatch: () => Promise.reject(new Error("not used")) } satisfies Endpoint,
    breaker: createCircuitBreaker(() => 0),
  });
  /** Creates a reader of upstreams that respond if `responds` returns true and time out otherwise. */
  function setup(upstreams: readonly Upstream[], responds: (member: Upstream, width: number) => boolean) {
    const requests: [string, number][] = [];
    const failed: string[] = [];
    const healthy = new Set(upstreams);
    const logs = createAdaptiveLogReader({
      upstreams,
      isHealthy: (upstream) => healthy.has(upstream),
      now: () => 0,
      async request([call], _, rules) {
        const { fromBlock, toBlock } = (call?.params[0] ?? {}) as { fromBlock?: string; toBlock?: string };
        const width = toBlock === "latest" ? Number.POSITIVE_INFINITY : Number(toBlock) - Number(fromBlock) + 1;
        for (const upstream of upstreams.filter((candidate) => rules?.isEligible(candidate))) {
          requests.push([upstream.endpoint.name, width]);
          if (responds(upstream, width)) return [{ result: [] }];
          if (!rules?.isRangeTooWide(upstream, late, true)) failed.push(upstream.endpoint.name);
        }
        throw new ServiceError("UPSTREAM_UNAVAILABLE", "none");
      },
    });
    return { logs, requests, failed, healthy };
  }

  test("on a wide search get a smaller range, without counting as failing", async () => {
    const { logs, requests, failed } = setup([member("a")], (_, width) => width <= 10_000);
    expect((await logs(logFilter, { from: 0, to: head }, false, never))?.range.to).toBe(9_999);
    expect(requests.map(([, width]) => width)).toEqual([head + 1, 10_000]);
    expect(failed).toEqual([]);
  });

  test("on a narrow search count as failing, and get a smaller range the next time", async () => {
    const { logs, requests, failed } = setup([member("a")], () => false);
    await expect(logs(logFilter, { from: 0, to: head }, false, never)).rejects.toMatchObject({ message: "none" });
    await expect(logs(logFilter, { from: 0, to: head }, false, never)).rejects.toMatchObject({ message: "none" });
    expect(requests.map(([, width]) => width)).toEqual([head + 1, 10_000, 5_000]);
    expect(failed).toEqual(["a", "a"]);
  });

  test("and are unhealthy are used when the others have failed, whatever their range", async () => {
    const [narrow, unhealthy] = [member("narrow"), member("unhealthy")];
    const { logs, requests, healthy } = setup(
      [narrow, unhealthy],
      (upstream, width) => upstream === unhealthy || width <= 10_000,
    );
    healthy.delete(unhealthy);
    // At first no limit is known.
    expect((await logs(logFilter, everything, false, never))?.range).toEqual(everything);
    requests.length = 0;
    expect((await logs(logFilter, { from: 0, to: head }, false, never))?.range.to).toBe(9_999);
    expect(requests).toEqual([["narrow", 10_000]]);
  });

  test("because of a cooldown are skipped", async () => {
    const { node } = await startLogNode([], 500);
    const resting = await startLogNode([], Number.POSITIVE_INFINITY);
    resting.node.chainId = 5;
    const { client } = createPoolOn([resting.node, node]);
    expect((await client.getLogs(logFilter, { from: 0, to: head }, false, never))?.range.to).toBe(499);
    expect((await client.getLogs(logFilter, { from: 0, to: head }, false, never))?.range.to).toBe(499);
  });
});

test("the requester distinguishes searches that time out from those that fail", async () => {
  vi.useFakeTimers();
  const endpoints = [
    (signal: AbortSignal) => new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(late))),
    () => Promise.reject(new UpstreamError("answered 500", { status: 500 })),
  ];
  const members = endpoints.map((ask): Upstream => {
    const endpoint = { name: "a", id: "a", sendBatch: (_: unknown, signal: AbortSignal) => ask(signal) };
    return { endpoint, breaker: createCircuitBreaker(() => 0) };
  });
  const isLate: boolean[] = [];
  const read = createHedgedRequester({
    slug: "optimism",
    listCandidates: () => members,
    isHealthy: () => false,
    onFailure: () => {},
    closing: never,
    requestTimeoutMs: 60_000,
    eventLoopDelay: NO_DELAY,
    now: () => 0,
    random: () => 0,
    sleep: async () => {},
  });
  const rules = {
    isEligible: () => true,
    isRangeTooWide(_: Upstream, __: UpstreamError, each: boolean) {
      isLate.push(each);
      return true;
    },
  };
  const search = read([{ method: "eth_getLogs", params: [] }], never, rules);
  search.catch(() => {});
  await vi.advanceTimersByTimeAsync(5_000);
  await expect(search).rejects.toMatchObject(UNAVAILABLE_ERROR);
  expect(isLate).toEqual([true, false]);
});

test("a caller that leaves ends the search at once, and no limit is learned", async () => {
  const { node, state } = await startLogNode([], Number.POSITIVE_INFINITY);
  const { client, send, failures } = createPoolOn([node]);
  await send();
  const leaving = new AbortController();
  // The caller leaves once the node has the request.
  node.intercept = () => {
    leaving.abort();
    return true;
  };
  const search = client.getLogs(logFilter, everything, false, leaving.signal);
  await expect(search).rejects.toMatchObject(UNAVAILABLE_ERROR);
  node.intercept = () => false;
  await client.getLogs(logFilter, everything, false, never);
  expect([state.widths, failures]).toEqual([[Number.POSITIVE_INFINITY], []]);
});

describe("each request of a log search", () => {
  const range = { from: 0, to: 999 };

  test("is reported before it is sent, rejected ones and those to other endpoints included", async () => {
    const { node, state } = await startLogNode([], 500, rangeErrors["does not name the limit"]);
    const failing = await startRpcNodeStub({ respond: () => ({ error: { code: -32603, message: "internal" } }) });
    for (const nodes of [[node], [failing, node]]) {
      let reported = 0;
      const before = state.widths.length + failing.requests.length;
      const { client } = createPoolOn(nodes);
      await client.getLogs(logFilter, range, false, never, () => {
        reported += 1;
      });
      expect(reported).toBeGreaterThan(1);
      expect(state.widths.length + failing.requests.length - before).toBe(reported);
    }
  });

  test("is not sent when the report throws, which ends the search", async () => {
    const { node, state } = await startLogNode([], 500);
    const { client } = createPoolOn([node]);
    let remaining = 1;
    const refusal = new Error("no more requests");
    const search = client.getLogs(logFilter, range, false, never, () => {
      if (remaining === 0) throw refusal;
      remaining -= 1;
    });
    await expect(search).rejects.toBe(refusal);
    expect(state.widths).toEqual([1_000]);
  });
});
