import { Agent } from "undici";
import { describe, expect, test } from "vitest";
import type { BlockRange } from "../../../../src/chain/chain-client.js";
import { createLogReader } from "../../../../src/chain/endpoints/adaptive-block-range.js";
import type { Endpoint } from "../../../../src/chain/endpoints/endpoint.js";
import { createReader, type Member } from "../../../../src/chain/endpoints/hedged-requests.js";
import { searchLogs } from "../../../../src/chain/read/log-search.js";
import { ServiceError } from "../../../../src/errors.js";
import { createHealth } from "../../../../src/resilience/circuit-breaker.js";
import { ExchangeError } from "../../../../src/resilience/fetch-json.js";
import { blocksOf, filter, headerOf, logIn } from "../support/log-chain-stub.js";
import { type Call, poolOn, type RpcNode, startNode, unavailable } from "../support/rpc-node-stub.js";

const never = new AbortController().signal;
const everything = { from: 0, to: Number.POSITIVE_INFINITY };
const head = 60_000;
const minutes = 60_000;
const late = new ExchangeError("did not answer in time");

/** What a node says to more blocks than it gives. */
const refusals = {
  "the number": (most: number) => ({ code: -32602, message: `at most ${most} blocks` }),
  "no number": () => ({ code: -32000, message: "range is too large" }),
};

/** A node with logs in some blocks, which notes how many blocks it is asked for. */
async function logNode(blocks: readonly number[], most: number, refuse = refusals["the number"]) {
  const state = { most, widths: [] as number[], refused: 0, refuse };
  const answer = ({ method, params }: Call): { result: unknown } | { error: unknown } => {
    if (method !== "eth_getLogs") return { result: "0x1" };
    const { fromBlock, toBlock } = params[0] as { fromBlock: string; toBlock: string };
    const [from, to] = [Number(fromBlock), toBlock === "latest" ? Number.POSITIVE_INFINITY : Number(toBlock)];
    state.widths.push(to - from + 1);
    if (to - from + 1 > state.most) {
      state.refused += 1;
      return { error: state.refuse(state.most) };
    }
    return { result: blocks.filter((block) => block >= from && block <= to).map((block) => logIn(block)) };
  };
  const node: RpcNode = await startNode({ answer, head: headerOf(head) });
  return { node, state };
}

const searchAll = (client: Parameters<typeof searchLogs>[0]) =>
  searchLogs(client, filter, { from: 0, to: "latest" }, { newestFirst: false }, never);

describe("an endpoint that gives what was not asked for", () => {
  const asked = { from: 10, to: 20 };
  const upper = { ...logIn(12), topics: [(filter.topics[0] as string).toUpperCase().replace("0X", "0x")] };
  const saying = (result: unknown) => startNode({ answer: () => ({ result }), head: headerOf(head) });

  test.each([
    ["of an earlier block", [logIn(9)]],
    ["of a later block", [logIn(21)]],
    ["of another contract", [logIn(12), { ...logIn(13), address: `0x${"b2".repeat(20)}` }]],
    ["with another topic", [{ ...logIn(14), topics: [logIn(14).blockHash] }]],
    ["with no topic", [{ ...logIn(14), topics: [] }]],
    ["that is none", [{ ...logIn(14), blockHash: "0x" }]],
    ["in no list", {}],
  ])("a log %s, is not believed: another is asked", async (_, result) => {
    const alone = poolOn([await saying(result)]);
    await expect(alone.client.logs(filter, asked, false, never)).rejects.toMatchObject(unavailable);
    expect(alone.failures).toMatchObject([{ problem: "answered what its chain could not" }]);
    const { client } = poolOn([await saying(result), await saying([logIn(12)])]);
    expect(await client.logs(filter, asked, false, never)).toEqual({ result: [logIn(12)], range: asked });
  });

  test("is not one that writes topics otherwise, or tells of a log that was undone", async () => {
    const logs = [upper, { ...logIn(15), removed: true }];
    const { client } = poolOn([await saying(logs)]);
    expect(await client.logs(filter, asked, false, never)).toEqual({ result: logs, range: asked });
  });
});

describe("an endpoint that gives few blocks of logs at once", () => {
  test.each([
    [500, "the number", 1],
    [500, "no number", 6],
    [2_000, "the number", 1],
    [2_000, "no number", 4],
  ] as const)("of %i, and says %s of them, is found out once", async (most, words, attempts) => {
    const blocks = [0, 499, 500, 1_999, 2_000, 33_333, head];
    const { node, state } = await logNode(blocks, most, refusals[words]);
    const { client, failures } = poolOn([node]);
    expect(blocksOf(await searchAll(client))).toEqual(blocks);
    expect(state.refused).toBe(attempts);
    expect(blocksOf(await searchAll(client))).toEqual(blocks);
    expect(state.refused).toBe(attempts);
    expect(failures).toEqual([]);
  });

  test.each([false, true])("is asked for the part that is wanted first, newest first: %j", async (newestFirst) => {
    const { client } = poolOn([(await logNode([], 500)).node]);
    const answer = await client.logs(filter, { from: 1_000, to: 9_000 }, newestFirst, never);
    expect(answer?.range).toEqual(newestFirst ? { from: 8_501, to: 9_000 } : { from: 1_000, to: 1_499 });
  });

  test("does not have all there is", async () => {
    const { node, state } = await logNode([], 500);
    const { client } = poolOn([node]);
    expect(await client.logs(filter, everything, false, never)).toBeUndefined();
    expect(await client.logs(filter, everything, false, never)).toBeUndefined();
    expect(state.widths).toEqual([Number.POSITIVE_INFINITY]);
  });

  test("stands back for one that gives more", async () => {
    const [narrow, wide] = [await logNode([7], 500), await logNode([7], 20_000)];
    const { client } = poolOn([narrow.node, wide.node]);
    expect(blocksOf(await searchAll(client))).toEqual([7]);
    // The one block that is left at the end is little enough for the first.
    expect(narrow.state.widths).toEqual([Number.POSITIVE_INFINITY, 1]);
    expect(wide.state.widths).toEqual([Number.POSITIVE_INFINITY, 20_000, 20_000, 20_000]);
  });

  test("lets one that gives everything answer alone", async () => {
    const [narrow, wide] = [await logNode([7], 500), await logNode([7], Number.POSITIVE_INFINITY)];
    const { client } = poolOn([narrow.node, wide.node]);
    await searchAll(client);
    await searchAll(client);
    expect([narrow.state.widths.length, wide.state.widths.length]).toEqual([1, 2]);
  });

  test("takes the place of one that is gone", async () => {
    const [narrow, gone] = [await logNode([7], 30_000), await logNode([7], Number.POSITIVE_INFINITY)];
    gone.node.treat = ({ response }) => {
      response.writeHead(500).end();
      return true;
    };
    const { client, failures } = poolOn([narrow.node, gone.node]);
    expect(blocksOf(await searchAll(client))).toEqual([7]);
    expect(failures.length).toBeGreaterThan(0);
  });

  test("is believed for ten minutes: then it may be a better one", async () => {
    const { node, state } = await logNode([7], 500);
    const { client, clock } = poolOn([node]);
    await client.logs(filter, everything, false, never);
    state.most = Number.POSITIVE_INFINITY;
    clock.ms += 10 * minutes - 1;
    expect(await client.logs(filter, everything, false, never)).toBeUndefined();
    clock.ms += 1;
    expect(await client.logs(filter, everything, false, never)).toMatchObject({ range: everything });
  });

  test("is tried with twice as much after a bad moment, not with all", async () => {
    const { node, state } = await logNode([], 700, refusals["no number"]);
    const { client, clock } = poolOn([node]);
    const range: BlockRange = { from: 0, to: head };
    await client.logs(filter, range, false, never);
    expect(state.widths).toEqual([head + 1, 10_000, 5_000, 2_500, 1_250, 625]);
    state.widths.length = 0;
    state.most = 2_000;
    for (const [asked, blocks] of [
      [[head + 1, 1_250], 1_250],
      [[head + 1, 2_500, 1_250], 1_250],
    ] as const) {
      clock.ms += 10 * minutes;
      expect((await client.logs(filter, range, false, never))?.range.to).toBe(blocks - 1);
      expect(state.widths.splice(0)).toEqual(asked);
    }
  });

  test("has stopped meaning the width when it refuses next to nothing", async () => {
    const { node, state } = await logNode([], 0, refusals["no number"]);
    const { client, failures, clock } = poolOn([node]);
    await expect(client.logs(filter, { from: 0, to: head }, false, never)).rejects.toMatchObject(unavailable);
    expect(state.widths.slice(0, 3)).toEqual([head + 1, 10_000, 5_000]);
    expect(state.widths.at(-1)).toBe(10);
    expect(failures).toMatchObject([{ method: "eth_getLogs", problem: "answered JSON-RPC error -32000" }]);
    state.widths.length = 0;
    await expect(client.logs(filter, { from: 0, to: head }, false, never)).rejects.toMatchObject(unavailable);
    expect(state.widths).toEqual([10]);
    clock.ms += 30_000;
    state.most = Number.POSITIVE_INFINITY;
    expect(await client.logs(filter, everything, false, never)).toMatchObject({ range: everything });
  });

  test("is none the worse for it: its other answers are asked for first", async () => {
    const [narrow, other] = [await logNode([], 10, refusals["no number"]), await logNode([], 10)];
    const { client, send } = poolOn([narrow.node, other.node]);
    for (let round = 0; round < 3; round++) await client.logs(filter, { from: 0, to: head }, false, never);
    await send();
    expect(
      [narrow.node, other.node].map(({ requests }) => requests.flat().filter((each) => each === "eth_call")),
    ).toEqual([["eth_call"], []]);
  });

  test.each([400, 413, 504])("may say so by answering %i", async (status) => {
    const { node } = await logNode([], Number.POSITIVE_INFINITY);
    const { client, send } = poolOn([node]);
    await send();
    node.treat = ({ calls, response }) => {
      const { fromBlock, toBlock } = (calls[0]?.params[0] ?? {}) as { fromBlock?: string; toBlock?: string };
      const isWide = Number(toBlock) - Number(fromBlock) >= 10_000;
      if (isWide) response.writeHead(status).end("{}");
      return isWide;
    };
    expect((await client.logs(filter, { from: 0, to: head }, false, never))?.range.to).toBe(9_999);
  });

  test.each([
    ["the HTTP client", new Agent({ maxResponseSize: 10_000 })],
    ["the exchange", new Agent()],
  ])("may answer more than %s reads", async (_, dispatcher) => {
    const { node, state } = await logNode([], Number.POSITIVE_INFINITY);
    const usual = node.answer;
    node.answer = (call) => {
      const answer = usual(call);
      return (state.widths.at(-1) ?? 0) > 10_000 ? { result: "f".repeat(20_000) } : answer;
    };
    const { client, failures } = poolOn([node], { dispatcher });
    expect((await client.logs(filter, { from: 0, to: head }, false, never))?.range.to).toBe(9_999);
    expect(failures).toEqual([]);
    await dispatcher.destroy();
  });
});

describe("a refusal that is not about the width", () => {
  test.each([
    { code: -32005, message: "rate limit of 100 reached" },
    { code: 429, message: "no" },
    { code: -32000, message: "range ends beyond current head block" },
    { code: -32601, message: "no such method" },
  ])("sends the search to the next endpoint, and is a failure where there is none: %j", async (error) => {
    const [first, second] = [await logNode([], 0, () => error), await logNode([7], 30_000)];
    const both = poolOn([first.node, second.node]);
    const range = { from: 0, to: 20_000 };
    expect((await both.client.logs(filter, range, false, never))?.range).toEqual(range);
    expect(both.failures).toHaveLength(1);
    first.state.widths.length = 0;
    const alone = poolOn([first.node]);
    await expect(alone.client.logs(filter, range, false, never)).rejects.toMatchObject(unavailable);
    first.state.most = Number.POSITIVE_INFINITY;
    expect((await alone.client.logs(filter, everything, false, never))?.range).toEqual(everything);
    expect(first.state.widths).toEqual([20_001, Number.POSITIVE_INFINITY]);
  });
});

describe("endpoints that say nothing", () => {
  const member = (name: string): Member => ({
    endpoint: { name, digits: name, ask: () => Promise.reject(new Error("not asked")) } satisfies Endpoint,
    health: createHealth(() => 0),
  });
  /** Members each of which answers as `answer` says; undefined: late. */
  function setup(members: readonly Member[], takes: (member: Member, width: number) => boolean) {
    const asked: [string, number][] = [];
    const held: string[] = [];
    const isWell = new Set(members);
    const logs = createLogReader({
      members,
      isWell: (each) => isWell.has(each),
      now: () => 0,
      async read([call], _, rules) {
        const { fromBlock, toBlock } = (call?.params[0] ?? {}) as { fromBlock?: string; toBlock?: string };
        const width = toBlock === "latest" ? Number.POSITIVE_INFINITY : Number(toBlock) - Number(fromBlock) + 1;
        for (const each of members.filter((one) => rules?.mayAsk(one))) {
          asked.push([each.endpoint.name, width]);
          if (takes(each, width)) return [{ result: [] }];
          if (!rules?.isTooWide(each, late, true)) held.push(each.endpoint.name);
        }
        throw new ServiceError("UPSTREAM_UNAVAILABLE", "none");
      },
    });
    return { logs, asked, held, isWell };
  }

  test("to a wide search are asked for less, and it is not held against them", async () => {
    const { logs, asked, held } = setup([member("a")], (_, width) => width <= 10_000);
    expect((await logs(filter, { from: 0, to: head }, false, never))?.range.to).toBe(9_999);
    expect(asked.map(([, width]) => width)).toEqual([head + 1, 10_000]);
    expect(held).toEqual([]);
  });

  test("to a narrow one either have failed, and are asked for less the next time", async () => {
    const { logs, asked, held } = setup([member("a")], () => false);
    await expect(logs(filter, { from: 0, to: head }, false, never)).rejects.toMatchObject({ message: "none" });
    await expect(logs(filter, { from: 0, to: head }, false, never)).rejects.toMatchObject({ message: "none" });
    expect(asked.map(([, width]) => width)).toEqual([head + 1, 10_000, 5_000]);
    expect(held).toEqual(["a", "a"]);
  });

  test("and are not well are asked when the others have failed, whatever they may give", async () => {
    const [narrow, ill] = [member("narrow"), member("ill")];
    const { logs, asked, isWell } = setup([narrow, ill], (each, width) => each === ill || width <= 10_000);
    isWell.delete(ill);
    // At first nothing is known of either.
    expect((await logs(filter, everything, false, never))?.range).toEqual(everything);
    asked.length = 0;
    expect((await logs(filter, { from: 0, to: head }, false, never))?.range.to).toBe(9_999);
    expect(asked).toEqual([["narrow", 10_000]]);
  });

  test("because they rest are passed over", async () => {
    const { node } = await logNode([], 500);
    const resting = await logNode([], Number.POSITIVE_INFINITY);
    resting.node.chainId = 5;
    const { client } = poolOn([resting.node, node]);
    expect((await client.logs(filter, { from: 0, to: head }, false, never))?.range.to).toBe(499);
    expect((await client.logs(filter, { from: 0, to: head }, false, never))?.range.to).toBe(499);
  });
});

test("a reader tells who was late from who failed", async () => {
  const endpoints = [
    (signal: AbortSignal) => new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(late))),
    () => Promise.reject(new ExchangeError("answered 500", { status: 500 })),
  ];
  const members = endpoints.map((ask): Member => {
    const endpoint = { name: "a", digits: "a", ask: (_: unknown, signal: AbortSignal) => ask(signal) };
    return { endpoint, health: createHealth(() => 0) };
  });
  const isLate: boolean[] = [];
  const read = createReader({
    slug: "optimism",
    inOrder: () => members,
    isWell: () => false,
    onFailure: () => {},
    closing: never,
    attemptMs: 20,
    now: () => 0,
    random: () => 0,
  });
  const rules = {
    mayAsk: () => true,
    isTooWide(_: Member, __: ExchangeError, each: boolean) {
      isLate.push(each);
      return true;
    },
  };
  await expect(read([{ method: "a", params: [] }], never, rules)).rejects.toMatchObject(unavailable);
  expect(isLate).toEqual([true, false]);
});

test("a caller who leaves ends the search at once, and nothing is learnt", async () => {
  const { node, state } = await logNode([], Number.POSITIVE_INFINITY);
  const { client, send, failures } = poolOn([node]);
  await send();
  node.treat = () => true;
  const leaving = new AbortController();
  const search = client.logs(filter, everything, false, leaving.signal);
  setTimeout(() => leaving.abort(), 30);
  await expect(search).rejects.toMatchObject(unavailable);
  node.treat = () => false;
  await client.logs(filter, everything, false, never);
  expect([state.widths, failures]).toEqual([[Number.POSITIVE_INFINITY], []]);
});
