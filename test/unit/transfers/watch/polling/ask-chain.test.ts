import { afterEach, describe, expect, test, vi } from "vitest";
import type { ChainClient, RpcCall } from "../../../../../src/chain/chain-client.js";
import { askChain } from "../../../../../src/transfers/watch/polling/ask-chain.js";
import type { Question } from "../../../../../src/transfers/watch/polling/questions.js";
import { createWatchWorld, hashOf, type WatchWorld } from "../watch-world.js";

const MULTICALL = `0x${"ca".repeat(20)}`;
const CONTRACT = `0x${"c0".repeat(20)}`;
const TOPIC = hashOf(1);

const receiptOf = (hash: string): Question => ({ kind: "receipt", hash });
const flag = (data: string): Question => ({ kind: "flag", call: { to: CONTRACT, data } });
const log = (...topics: (string | null)[]): Question => ({ kind: "log", address: [CONTRACT], topics });

let world: WatchWorld;
afterEach(() => world.close());

/** Asks a chain, and notes the batches that it got. */
function createChain({
  results,
  searchedTo,
}: {
  readonly results?: (calls: readonly RpcCall[]) => readonly unknown[];
  /** The last block whose logs the endpoint searches at once. */
  readonly searchedTo?: number;
} = {}) {
  world = createWatchWorld();
  const facts = world.getFacts("optimism");
  const inner = world.getClient("optimism");
  const batches: (readonly RpcCall[])[] = [];
  const client: ChainClient = {
    ...inner,
    async sendBatch(calls, ...rest) {
      batches.push(calls);
      if (results !== undefined) return results(calls).map((result) => ({ result })) as never;
      return inner.sendBatch(calls, ...rest);
    },
  };
  if (searchedTo !== undefined) {
    client.getLogs = async (_filter, range) => ({ range: { ...range, to: searchedTo }, result: [] }) as never;
  }
  const ask = (questions: readonly Question[], hasMulticall = true) =>
    askChain(
      client,
      { multicallAddress: hasMulticall ? MULTICALL : undefined },
      { questions, getFirstLogBlock: (head) => head - 10 },
      new AbortController().signal,
    );
  return { facts, batches, client, ask };
}

describe("one poll", () => {
  test("is one batch, in which equal questions are asked once", async () => {
    const { facts, batches, ask } = createChain();
    facts.receipts.set(hashOf(7), hashOf(70));
    facts.flags.add("0x02");
    const answers = await ask([
      ...[receiptOf(hashOf(7)), receiptOf(hashOf(8)), receiptOf(hashOf(7))],
      ...[flag("0x01"), flag("0x02"), flag("0x03"), flag("0x02")],
    ]);
    expect(batches.map((calls) => calls.map(({ method }) => method))).toEqual([
      ["eth_getBlockByNumber", "eth_call", "eth_getTransactionReceipt", "eth_getTransactionReceipt"],
    ]);
    expect(answers.head).toBe(5_000);
    expect(answers.getAnswer(receiptOf(hashOf(7))).receipt?.blockHash).toBe(hashOf(70));
    expect(answers.getAnswer(receiptOf(hashOf(8))).receipt).toBeUndefined();
    const found = ["0x01", "0x02", "0x03"].map((data) => answers.getAnswer(flag(data)).isFound);
    expect(found).toEqual([false, true, false]);
  });

  test.each([
    ["two flags", 2, true],
    ["flags on a chain without Multicall3", 4, false],
  ])("reads %s one by one", async (_, count, hasMulticall) => {
    const { facts, batches, ask } = createChain();
    facts.flags.add("0x01");
    const flags = Array.from({ length: count }, (__, index) => flag(`0x0${index}`));
    const answers = await ask(flags, hasMulticall);
    expect(batches[0]?.filter(({ method }) => method === "eth_call")).toHaveLength(count);
    expect(flags.map((each) => answers.getAnswer(each).isFound)).toEqual(flags.map((__, index) => index === 1));
  });

  test("tells a log by its address and its topics, of which some may be any", async () => {
    const { facts, ask } = createChain();
    facts.logs = [{ address: CONTRACT, topics: [TOPIC, hashOf(2), hashOf(3)] }];
    const questions = [log(TOPIC, hashOf(2)), log(TOPIC, hashOf(9)), log(TOPIC, null, hashOf(3))];
    const answers = await ask(questions);
    expect(questions.map((each) => answers.getAnswer(each).isFound)).toEqual([true, false, true]);
    expect(answers.searchedTo).toBe(5_000);
  });
});

test("logs are searched from the first new block up to the newest, oldest first", async () => {
  const { facts, ask, client } = createChain();
  const getLogs = vi.spyOn(client, "getLogs");
  facts.logs = [
    { address: CONTRACT, topics: [TOPIC, hashOf(9)] },
    { address: CONTRACT, topics: [TOPIC, hashOf(2)] },
  ];
  const questions = [log(TOPIC, hashOf(2)), log(TOPIC, hashOf(9)), log(TOPIC, hashOf(7))];
  const answers = await ask(questions);
  expect(questions.map((each) => answers.getAnswer(each).isFound)).toEqual([true, true, false]);
  expect(getLogs.mock.calls.map(([, range, newestFirst]) => [range, newestFirst])).toEqual([
    [{ from: 4_990, to: 5_000 }, false],
  ]);
});

test("flags are read at the newest block, and one that cannot be read is not set", async () => {
  const block = { number: "0x1388", hash: hashOf(1), timestamp: "0x1" };
  const { ask, batches } = createChain({ results: () => [block, "0x", "no hex"] });
  const answers = await ask([flag("0x01"), flag("0x02")]);
  expect(batches[0]?.slice(1).map(({ params }) => params)).toEqual([
    [{ to: CONTRACT, data: "0x01" }, "latest"],
    [{ to: CONTRACT, data: "0x02" }, "latest"],
  ]);
  expect([flag("0x01"), flag("0x02")].map((each) => answers.getAnswer(each).isFound)).toEqual([false, false]);
});

test("an endpoint may search fewer blocks at once, and the next poll goes on there", async () => {
  const { ask } = createChain({ searchedTo: 4_995 });
  expect(await ask([log(TOPIC)])).toMatchObject({ head: 5_000, searchedTo: 4_995 });
});

describe("what an endpoint cannot mean", () => {
  test("a poll without a block is an error of the endpoint", async () => {
    const { ask } = createChain({ results: (calls) => calls.map(() => null) });
    await expect(ask([receiptOf(hashOf(1))])).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE" });
  });

  test.each([["0x"], ["0x1234"], [null], [7]])("a Multicall3 that returns %s sets no flag", async (returned) => {
    const block = { number: "0x1388", hash: hashOf(1), timestamp: "0x1" };
    const { ask } = createChain({ results: () => [block, returned] });
    const flags = ["0x01", "0x02", "0x03"].map(flag);
    const answers = await ask(flags);
    expect(flags.map((each) => answers.getAnswer(each).isFound)).toEqual([false, false, false]);
  });
});
