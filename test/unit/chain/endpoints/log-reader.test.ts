import { Agent } from "undici";
import { describe, expect, test, vi } from "vitest";
import type { BlockRange, ChainClient } from "../../../../src/chain/chain-client.js";
import { Endpoint } from "../../../../src/chain/endpoints/endpoint.js";
import { readLogs } from "../../../../src/chain/endpoints/log-reader.js";
import { type Log, parseLogs } from "../../../../src/chain/json-rpc/parse-results.js";
import { searchLogs } from "../../../../src/chain/read/log-search.js";
import { UpstreamError } from "../../../../src/resilience/http-client/upstream-error.js";
import { blockNumbersOf, createHeader, createRpcLog, logFilter } from "../support/log-chain-stub.js";
import {
  answerStatus,
  createPoolOn,
  down,
  healthy,
  type NodeCall,
  never,
  rejecting,
  returning,
  startPool,
  startRpcNodeStub,
  UNAVAILABLE_ERROR,
} from "../support/rpc-node-stub.js";

const HEAD = 60_000;
const TEN_MINUTES = 10 * 60_000;
const everything = { from: 0, to: Number.POSITIVE_INFINITY };
const upToHead = { from: 0, to: HEAD };

/** Errors of nodes for too many blocks. */
const rangeErrors = {
  "names the limit": (maxBlocks: number) => ({ code: -32602, message: `at maxBlocks ${maxBlocks} blocks` }),
  "does not name the limit": () => ({ code: -32000, message: "range is too large" }),
};

/** Returns the number of blocks that a call searches. */
function widthOf(call: Pick<NodeCall, "params"> | undefined): number {
  const { fromBlock, toBlock } = (call?.params[0] ?? {}) as { fromBlock?: string; toBlock?: string };
  return toBlock === "latest" ? Number.POSITIVE_INFINITY : Number(toBlock) - Number(fromBlock) + 1;
}

/** Starts a node with logs in some blocks that records how many blocks it was to search. */
async function startLogNode(
  blocks: readonly number[] = [],
  maxBlocks = Number.POSITIVE_INFINITY,
  reject: (maxBlocks: number) => unknown = rangeErrors["names the limit"],
) {
  const state = { maxBlocks, widths: [] as number[], rejected: 0 };
  const respond = (call: NodeCall): { result: unknown } | { error: unknown } => {
    if (call.method !== "eth_getLogs") return { result: "0x1" };
    const width = widthOf(call);
    state.widths.push(width);
    if (width > state.maxBlocks) {
      state.rejected += 1;
      return { error: reject(state.maxBlocks) };
    }
    const from = Number((call.params[0] as { fromBlock: string }).fromBlock);
    const found = blocks.filter((block) => block >= from && block < from + width);
    return { result: found.map((block) => createRpcLog(block)) };
  };
  return { state, node: await startRpcNodeStub({ respond, head: createHeader(HEAD) }) };
}

/** Starts a node with a limit, and creates a pool on it alone. */
async function startLimited(...node: Parameters<typeof startLogNode>) {
  const started = await startLogNode(...node);
  return { ...started, ...createPoolOn([started.node]) };
}

/** Searches up to the head, in one request where an endpoint accepts that. */
async function searchAll(client: ChainClient): Promise<readonly Log[]> {
  const whole = await client.getLogs({ filter: logFilter, range: everything }, never);
  if (whole !== undefined) return parseLogs(client, whole.result);
  return searchLogs(client, { filter: logFilter, range: upToHead }, never);
}

describe("an endpoint that returns logs that do not match", () => {
  const range = { from: 10, to: 20 };
  const upper = { ...createRpcLog(12), topics: [(logFilter.topics[0] as string).toUpperCase().replace("0X", "0x")] };

  test.each([
    ["of an earlier block", [createRpcLog(9)]],
    ["of a later block", [createRpcLog(21)]],
    ["of another contract", [createRpcLog(12), { ...createRpcLog(13), address: `0x${"b2".repeat(20)}` }]],
    ["with another topic", [{ ...createRpcLog(14), topics: [createRpcLog(14).blockHash] }]],
    ["with no topic", [{ ...createRpcLog(14), topics: [] }]],
    ["that is invalid", [{ ...createRpcLog(14), blockHash: "0x" }]],
    ["outside a list", {}],
  ])("is skipped for the next one: a log %s", async (_, result) => {
    const alone = await startPool([returning(result)]);
    await expect(alone.getLogs({ range })).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(alone.failures).toMatchObject([{ error: "returned an impossible result" }]);
    const { getLogs } = await startPool([returning(result), returning([createRpcLog(12)])]);
    expect(await getLogs({ range })).toEqual({ result: [createRpcLog(12)], range });
  });

  test("is not one that uses upper case or returns a removed log", async () => {
    const logs = [upper, { ...createRpcLog(15), removed: true }];
    const { getLogs } = await startPool([returning(logs)]);
    expect(await getLogs({ range })).toEqual({ result: logs, range });
  });
});

describe("an endpoint with a small block range", () => {
  test.each([
    [500, "names the limit", 1],
    [500, "does not name the limit", 6],
    [2_000, "names the limit", 1],
    [2_000, "does not name the limit", 4],
  ] as const)("of %i is learned once when its error %s", async (maxBlocks, rangeError, attempts) => {
    const blocks = [0, 499, 500, 1_999, 2_000, 33_333, HEAD];
    const { client, failures, state } = await startLimited(blocks, maxBlocks, rangeErrors[rangeError]);
    expect(blockNumbersOf(await searchAll(client))).toEqual(blocks);
    expect(state.rejected).toBe(attempts);
    expect(blockNumbersOf(await searchAll(client))).toEqual(blocks);
    expect(state.rejected).toBe(attempts);
    expect(failures).toEqual([]);
  });

  test.each([
    [false, { from: 1_000, to: 1_499 }],
    [true, { from: 8_501, to: 9_000 }],
  ])("gets the part that is needed first, newest first: %j", async (newestFirst, range) => {
    const { getLogs } = await startLimited([], 500);
    expect(await getLogs({ range: { from: 1_000, to: 9_000 }, newestFirst })).toMatchObject({ range });
  });

  test("does not return an open range", async () => {
    const { getLogs, state } = await startLimited([], 500);
    expect(await getLogs({ range: everything })).toBeUndefined();
    expect(await getLogs({ range: everything })).toBeUndefined();
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
    const [narrow, wide] = [await startLogNode([7], 500), await startLogNode([7])];
    const { client } = createPoolOn([narrow.node, wide.node]);
    await searchAll(client);
    await searchAll(client);
    expect([narrow.state.widths.length, wide.state.widths.length]).toEqual([1, 2]);
  });

  test("replaces one that is down", async () => {
    const [narrow, gone] = [await startLogNode([7], 30_000), await startRpcNodeStub({ intercept: down })];
    const { client, failures } = createPoolOn([narrow.node, gone]);
    expect(blockNumbersOf(await searchAll(client))).toEqual([7]);
    expect(failures.length).toBeGreaterThan(0);
  });

  test("is limited for ten minutes, then tried again", async () => {
    const { getLogs, clock, state } = await startLimited([7], 500);
    await getLogs({ range: everything });
    state.maxBlocks = Number.POSITIVE_INFINITY;
    clock.ms += TEN_MINUTES - 1;
    expect(await getLogs({ range: everything })).toBeUndefined();
    clock.ms += 1;
    expect(await getLogs({ range: everything })).toMatchObject({ range: everything });
  });

  test("gets twice as many blocks when a limit expires, not all", async () => {
    const { getLogs, clock, state } = await startLimited([], 700, rangeErrors["does not name the limit"]);
    await getLogs({ range: upToHead });
    expect(state.widths.splice(0)).toEqual([HEAD + 1, 10_000, 5_000, 2_500, 1_250, 625]);
    state.maxBlocks = 2_000;
    for (const requests of [
      [HEAD + 1, 1_250],
      [HEAD + 1, 2_500, 1_250],
    ]) {
      clock.ms += TEN_MINUTES;
      expect(await getLogs({ range: upToHead })).toMatchObject({ range: { from: 0, to: 1_249 } });
      expect(state.widths.splice(0)).toEqual(requests);
    }
  });

  test("is not limited further when it rejects the smallest range", async () => {
    const { getLogs, failures, clock, state } = await startLimited([], 0, rangeErrors["does not name the limit"]);
    await expect(getLogs({ range: upToHead })).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(state.widths.slice(0, 3)).toEqual([HEAD + 1, 10_000, 5_000]);
    expect(state.widths.at(-1)).toBe(10);
    expect(failures).toMatchObject([{ method: "eth_getLogs", error: "answered JSON-RPC error -32000" }]);
    state.widths.length = 0;
    await expect(getLogs({ range: upToHead })).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(state.widths).toEqual([10]);
    clock.ms += 30_000;
    state.maxBlocks = Number.POSITIVE_INFINITY;
    expect(await getLogs({ range: everything })).toMatchObject({ range: everything });
  });

  test("stays the first choice for other reads", async () => {
    const narrow = await startLogNode([], 10, rangeErrors["does not name the limit"]);
    const other = await startLogNode([], 10);
    const { getLogs, send } = createPoolOn([narrow.node, other.node]);
    for (let round = 0; round < 3; round++) await getLogs({ range: upToHead });
    await send();
    const countCalls = ({ requests }: typeof narrow.node) =>
      requests.flat().filter((method) => method === "eth_call").length;
    expect([narrow.node, other.node].map(countCalls)).toEqual([1, 0]);
  });

  test.each([400, 413, 504])("may reject a range with HTTP %i", async (status) => {
    const { node, getLogs, send } = await startLimited();
    await send();
    const reject = answerStatus(status);
    node.intercept = (request) => widthOf(request.calls[0]) > 10_000 && reject(request);
    expect((await getLogs({ range: upToHead }))?.range.to).toBe(9_999);
  });

  test.each([
    ["the limit of the HTTP client", new Agent({ maxResponseSize: 10_000 })],
    ["the response limit", new Agent()],
  ])("learns a limit from a response that exceeds %s", async (_, dispatcher) => {
    const respond = (call: NodeCall) => ({ result: widthOf(call) > 10_000 ? "f".repeat(20_000) : [] });
    const { getLogs, failures } = await startPool([{ respond }], { dispatcher });
    expect((await getLogs({ range: upToHead }))?.range.to).toBe(9_999);
    expect(failures).toEqual([]);
    await dispatcher.destroy();
  });
});

test.each([
  { code: -32005, message: "rate limit of 100 reached" },
  { code: 429, message: "no" },
  { code: -32000, message: "range ends beyond current head block" },
  { code: -32601, message: "no such method" },
])("a rejection for another reason sends the search to the next endpoint, and fails without one: %j", async (error) => {
  const [first, second] = [await startLogNode([], 0, () => error), await startLogNode([7], 30_000)];
  const both = createPoolOn([first.node, second.node]);
  const range = { from: 0, to: 20_000 };
  expect((await both.getLogs({ range }))?.range).toEqual(range);
  expect(both.failures).toHaveLength(1);
  first.state.widths.length = 0;
  const alone = createPoolOn([first.node]);
  await expect(alone.getLogs({ range })).rejects.toMatchObject(UNAVAILABLE_ERROR);
  first.state.maxBlocks = Number.POSITIVE_INFINITY;
  expect((await alone.getLogs({ range: everything }))?.range).toEqual(everything);
  expect(first.state.widths).toEqual([20_001, Number.POSITIVE_INFINITY]);
});

describe("endpoints that time out", () => {
  /** Searches at endpoints that respond if `responds` returns true and time out otherwise. */
  function setup(names: readonly string[], responds: (name: string, width: number) => boolean) {
    vi.useFakeTimers();
    const requests: [string, number][] = [];
    const failed: string[] = [];
    const unhealthy = new Set<string>();
    const options = { url: "http://a", chainId: 1, dispatcher: new Agent(), maxBytes: 1, now: () => 0 };
    const endpoints = names.map((name) => {
      const endpoint = new Endpoint({ name, ...options });
      vi.spyOn(endpoint, "send").mockImplementation(([call], signal) => {
        const width = widthOf(call);
        requests.push([name, width]);
        if (responds(name, width)) return Promise.resolve([{ result: [] }]);
        const late = new UpstreamError("did not answer in time");
        return new Promise((_, reject) => signal.addEventListener("abort", () => reject(late)));
      });
      return endpoint;
    });
    const source = {
      slug: "optimism",
      listCandidates: () => endpoints,
      isHealthy: ({ name }: Endpoint) => !unhealthy.has(name),
      onFailure: ({ name }: Endpoint) => failed.push(name),
      closing: never,
    };
    async function search(range: BlockRange) {
      const result = readLogs(source, { filter: logFilter, range, newestFirst: false }, never);
      result.catch(() => {});
      await vi.advanceTimersByTimeAsync(60_000);
      return result;
    }
    return { requests, failed, unhealthy, search };
  }

  test("on a wide search get a smaller range, without counting as failing", async () => {
    const { search, requests, failed } = setup(["a"], (_, width) => width <= 10_000);
    expect((await search(upToHead))?.range.to).toBe(9_999);
    expect(requests.map(([, width]) => width)).toEqual([HEAD + 1, 10_000]);
    expect(failed).toEqual([]);
  });

  test("on a narrow search count as failing, and get a smaller range the next time", async () => {
    const { search, requests, failed } = setup(["a"], () => false);
    await expect(search(upToHead)).rejects.toMatchObject(UNAVAILABLE_ERROR);
    await expect(search(upToHead)).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(requests.map(([, width]) => width)).toEqual([HEAD + 1, 10_000, 5_000]);
    expect(failed).toEqual(["a", "a"]);
  });

  test("and are unhealthy are used when the others have failed, whatever their range", async () => {
    const { search, requests, unhealthy } = setup(
      ["narrow", "unhealthy"],
      (name, width) => name === "unhealthy" || width <= 10_000,
    );
    unhealthy.add("unhealthy");
    // At first no limit is known.
    expect((await search(everything))?.range).toEqual(everything);
    requests.length = 0;
    expect((await search(upToHead))?.range.to).toBe(9_999);
    expect(requests).toEqual([["narrow", 10_000]]);
  });

  test("because of a cooldown are skipped", async () => {
    const [resting, { node }] = [await startRpcNodeStub({ chainId: 5 }), await startLogNode([], 500)];
    const { getLogs } = createPoolOn([resting, node]);
    expect((await getLogs({ range: upToHead }))?.range.to).toBe(499);
    expect((await getLogs({ range: upToHead }))?.range.to).toBe(499);
  });
});

test("a caller that leaves ends the search at once, and no limit is learned", async () => {
  const { node, state, getLogs, send, failures } = await startLimited();
  await send();
  const leaving = new AbortController();
  // The caller leaves once the node has the request.
  node.intercept = () => {
    leaving.abort();
    return true;
  };
  await expect(getLogs({ range: everything }, leaving.signal)).rejects.toMatchObject(UNAVAILABLE_ERROR);
  node.intercept = healthy;
  await getLogs({ range: everything });
  expect([state.widths, failures]).toEqual([[Number.POSITIVE_INFINITY], []]);
});

describe("each request of a log search", () => {
  const range = { from: 0, to: 999 };

  test("is reported before it is sent, rejected ones and those to other endpoints included", async () => {
    const { node, state } = await startLogNode([], 500, rangeErrors["does not name the limit"]);
    const failing = await startRpcNodeStub(rejecting({ code: -32603, message: "internal" }));
    for (const nodes of [[node], [failing, node]]) {
      let reported = 0;
      const before = state.widths.length + failing.requests.length;
      const onRequest = () => {
        reported += 1;
      };
      await createPoolOn(nodes).getLogs({ range, onRequest });
      expect(reported).toBeGreaterThan(1);
      expect(state.widths.length + failing.requests.length - before).toBe(reported);
    }
  });

  test("is not sent when the report throws, which ends the search", async () => {
    const { state, getLogs } = await startLimited([], 500);
    let remaining = 1;
    const refusal = new Error("no more requests");
    const onRequest = () => {
      remaining -= 1;
      if (remaining < 0) throw refusal;
    };
    await expect(getLogs({ range, onRequest })).rejects.toBe(refusal);
    expect(state.widths).toEqual([1_000]);
  });
});
