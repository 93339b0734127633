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
  createPoolOn,
  type NodeCall,
  type RpcNodeStub,
  startRpcNodeStub,
  UNAVAILABLE_ERROR,
} from "../support/rpc-node-stub.js";

const never = new AbortController().signal;
const dispatcher = new Agent();
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

/** Searches up to the head, in one request where an endpoint accepts that. */
async function searchAll(client: ChainClient): Promise<readonly Log[]> {
  const whole = await client.getLogs({ filter: logFilter, range: everything }, never);
  if (whole !== undefined) return parseLogs(client, whole.result);
  return searchLogs(client, { filter: logFilter, range: { from: 0, to: head } }, never);
}

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
    await expect(alone.client.getLogs({ filter: logFilter, range: requestedRange }, never)).rejects.toMatchObject(
      UNAVAILABLE_ERROR,
    );
    expect(alone.failures).toMatchObject([{ error: "returned an impossible result" }]);
    const { client } = createPoolOn([await startNodeReturning(result), await startNodeReturning([createRpcLog(12)])]);
    expect(await client.getLogs({ filter: logFilter, range: requestedRange }, never)).toEqual({
      result: [createRpcLog(12)],
      range: requestedRange,
    });
  });

  test("is not one that uses upper case or returns a removed log", async () => {
    const logs = [upper, { ...createRpcLog(15), removed: true }];
    const { client } = createPoolOn([await startNodeReturning(logs)]);
    expect(await client.getLogs({ filter: logFilter, range: requestedRange }, never)).toEqual({
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
    const page = await client.getLogs({ filter: logFilter, range: { from: 1_000, to: 9_000 }, newestFirst }, never);
    expect(page?.range).toEqual(newestFirst ? { from: 8_501, to: 9_000 } : { from: 1_000, to: 1_499 });
  });

  test("does not return an open range", async () => {
    const { node, state } = await startLogNode([], 500);
    const { client } = createPoolOn([node]);
    expect(await client.getLogs({ filter: logFilter, range: everything }, never)).toBeUndefined();
    expect(await client.getLogs({ filter: logFilter, range: everything }, never)).toBeUndefined();
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
    await client.getLogs({ filter: logFilter, range: everything }, never);
    state.maxBlocks = Number.POSITIVE_INFINITY;
    clock.ms += 10 * minutes - 1;
    expect(await client.getLogs({ filter: logFilter, range: everything }, never)).toBeUndefined();
    clock.ms += 1;
    expect(await client.getLogs({ filter: logFilter, range: everything }, never)).toMatchObject({ range: everything });
  });

  test("gets twice as many blocks when a limit expires, not all", async () => {
    const { node, state } = await startLogNode([], 700, rangeErrors["does not name the limit"]);
    const { client, clock } = createPoolOn([node]);
    const range: BlockRange = { from: 0, to: head };
    await client.getLogs({ filter: logFilter, range }, never);
    expect(state.widths).toEqual([head + 1, 10_000, 5_000, 2_500, 1_250, 625]);
    state.widths.length = 0;
    state.maxBlocks = 2_000;
    for (const [requests, blocks] of [
      [[head + 1, 1_250], 1_250],
      [[head + 1, 2_500, 1_250], 1_250],
    ] as const) {
      clock.ms += 10 * minutes;
      expect((await client.getLogs({ filter: logFilter, range }, never))?.range.to).toBe(blocks - 1);
      expect(state.widths.splice(0)).toEqual(requests);
    }
  });

  test("is not limited further when it rejects the smallest range", async () => {
    const { node, state } = await startLogNode([], 0, rangeErrors["does not name the limit"]);
    const { client, failures, clock } = createPoolOn([node]);
    await expect(client.getLogs({ filter: logFilter, range: { from: 0, to: head } }, never)).rejects.toMatchObject(
      UNAVAILABLE_ERROR,
    );
    expect(state.widths.slice(0, 3)).toEqual([head + 1, 10_000, 5_000]);
    expect(state.widths.at(-1)).toBe(10);
    expect(failures).toMatchObject([{ method: "eth_getLogs", error: "answered JSON-RPC error -32000" }]);
    state.widths.length = 0;
    await expect(client.getLogs({ filter: logFilter, range: { from: 0, to: head } }, never)).rejects.toMatchObject(
      UNAVAILABLE_ERROR,
    );
    expect(state.widths).toEqual([10]);
    clock.ms += 30_000;
    state.maxBlocks = Number.POSITIVE_INFINITY;
    expect(await client.getLogs({ filter: logFilter, range: everything }, never)).toMatchObject({ range: everything });
  });

  test("stays the first choice for other reads", async () => {
    const [narrow, other] = [
      await startLogNode([], 10, rangeErrors["does not name the limit"]),
      await startLogNode([], 10),
    ];
    const { client, send } = createPoolOn([narrow.node, other.node]);
    for (let round = 0; round < 3; round++)
      await client.getLogs({ filter: logFilter, range: { from: 0, to: head } }, never);
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
    expect((await client.getLogs({ filter: logFilter, range: { from: 0, to: head } }, never))?.range.to).toBe(9_999);
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
    expect((await client.getLogs({ filter: logFilter, range: { from: 0, to: head } }, never))?.range.to).toBe(9_999);
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
    expect((await both.client.getLogs({ filter: logFilter, range }, never))?.range).toEqual(range);
    expect(both.failures).toHaveLength(1);
    first.state.widths.length = 0;
    const alone = createPoolOn([first.node]);
    await expect(alone.client.getLogs({ filter: logFilter, range }, never)).rejects.toMatchObject(UNAVAILABLE_ERROR);
    first.state.maxBlocks = Number.POSITIVE_INFINITY;
    expect((await alone.client.getLogs({ filter: logFilter, range: everything }, never))?.range).toEqual(everything);
    expect(first.state.widths).toEqual([20_001, Number.POSITIVE_INFINITY]);
  });
});

describe("endpoints that time out", () => {
  /** Searches at endpoints that respond if `responds` returns true and time out otherwise. */
  function setup(names: readonly string[], responds: (name: string, width: number) => boolean) {
    vi.useFakeTimers();
    const requests: [string, number][] = [];
    const failed: string[] = [];
    const unhealthy = new Set<string>();
    const endpoints = names.map((name) => {
      const endpoint = new Endpoint({ name, url: "http://a", chainId: 1, dispatcher, maxBytes: 1, now: () => 0 });
      vi.spyOn(endpoint, "send").mockImplementation(([call], signal) => {
        const { fromBlock, toBlock } = (call?.params[0] ?? {}) as { fromBlock?: string; toBlock?: string };
        const width = toBlock === "latest" ? Number.POSITIVE_INFINITY : Number(toBlock) - Number(fromBlock) + 1;
        requests.push([name, width]);
        if (responds(name, width)) return Promise.resolve([{ result: [] }]);
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
    return {
      requests,
      failed,
      unhealthy,
      async search(range: BlockRange) {
        const result = readLogs(source, { filter: logFilter, range, newestFirst: false }, never);
        result.catch(() => {});
        await vi.advanceTimersByTimeAsync(60_000);
        return result;
      },
    };
  }

  test("on a wide search get a smaller range, without counting as failing", async () => {
    const { search, requests, failed } = setup(["a"], (_, width) => width <= 10_000);
    expect((await search({ from: 0, to: head }))?.range.to).toBe(9_999);
    expect(requests.map(([, width]) => width)).toEqual([head + 1, 10_000]);
    expect(failed).toEqual([]);
  });

  test("on a narrow search count as failing, and get a smaller range the next time", async () => {
    const { search, requests, failed } = setup(["a"], () => false);
    await expect(search({ from: 0, to: head })).rejects.toMatchObject(UNAVAILABLE_ERROR);
    await expect(search({ from: 0, to: head })).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(requests.map(([, width]) => width)).toEqual([head + 1, 10_000, 5_000]);
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
    expect((await search({ from: 0, to: head }))?.range.to).toBe(9_999);
    expect(requests).toEqual([["narrow", 10_000]]);
  });

  test("because of a cooldown are skipped", async () => {
    const { node } = await startLogNode([], 500);
    const resting = await startLogNode([], Number.POSITIVE_INFINITY);
    resting.node.chainId = 5;
    const { client } = createPoolOn([resting.node, node]);
    expect((await client.getLogs({ filter: logFilter, range: { from: 0, to: head } }, never))?.range.to).toBe(499);
    expect((await client.getLogs({ filter: logFilter, range: { from: 0, to: head } }, never))?.range.to).toBe(499);
  });
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
  const search = client.getLogs({ filter: logFilter, range: everything }, leaving.signal);
  await expect(search).rejects.toMatchObject(UNAVAILABLE_ERROR);
  node.intercept = () => false;
  await client.getLogs({ filter: logFilter, range: everything }, never);
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
      await client.getLogs(
        {
          filter: logFilter,
          range,
          onRequest: () => {
            reported += 1;
          },
        },
        never,
      );
      expect(reported).toBeGreaterThan(1);
      expect(state.widths.length + failing.requests.length - before).toBe(reported);
    }
  });

  test("is not sent when the report throws, which ends the search", async () => {
    const { node, state } = await startLogNode([], 500);
    const { client } = createPoolOn([node]);
    let remaining = 1;
    const refusal = new Error("no more requests");
    const search = client.getLogs(
      {
        filter: logFilter,
        range,
        onRequest: () => {
          if (remaining === 0) throw refusal;
          remaining -= 1;
        },
      },
      never,
    );
    await expect(search).rejects.toBe(refusal);
    expect(state.widths).toEqual([1_000]);
  });
});
