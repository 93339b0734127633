import { afterEach, describe, expect, test, vi } from "vitest";
import type { ChainClient, RpcCall } from "../../../../src/chain/chain-client.js";
import { ContractRegistry } from "../../../../src/hop/contract-registry.js";
import { getNetwork } from "../../../../src/hop/networks.js";
import {
  EVENT_TOPICS,
  encodeIsTransferIdSpentCall,
  encodeTopic,
  encodeUsedNoncesCall,
} from "../../../../src/hop/transfer-events.js";
import {
  askChain,
  createAppearanceQuestion,
  createDeliveryQuestion,
  joinLogFilters,
  type Question,
} from "../../../../src/transfers/watch/chain-questions.js";
import {
  createSentTransfer,
  getChain,
  repeatedByteAddress,
  repeatedByteHash,
} from "../../../support/stubs/transfer-fixtures.js";
import { createWatchWorld, hashOf, type WatchWorld } from "./watch-world.js";

const network = getNetwork("mainnet");
const contracts = new ContractRegistry(network);
const arbitrum = getChain("arbitrum");
const bridge = contracts.findBridge("ETH", arbitrum);
const sendersOf = (slug: string, kind: string) =>
  [...contracts.getSendingContracts(getChain(slug))].filter(([, sender]) => sender.kind === kind).map(([each]) => each);

describe("the question whether a transfer was delivered", () => {
  const { event } = createSentTransfer();

  test("from an L2 is the flag of its ID at the bridge", () => {
    const data = encodeIsTransferIdSpentCall(repeatedByteHash("1a"));
    expect(createDeliveryQuestion(createSentTransfer(), contracts)).toEqual({
      kind: "flag",
      call: { to: bridge, data },
    });
  });

  test("by CCTP is the flag of its nonce at the MessageTransmitter", () => {
    const sent = createSentTransfer({ kind: "cctp", id: "258", token: "USDC" });
    expect(createDeliveryQuestion(sent, contracts)).toEqual({
      kind: "flag",
      call: { to: contracts.findMessageTransmitter(arbitrum), data: encodeUsedNoncesCall(2, 258n) },
    });
    for (const chain of [{ destination: getChain("gnosis") }, { source: getChain("gnosis") }]) {
      expect(createDeliveryQuestion({ ...sent, ...chain }, contracts)).toBeUndefined();
    }
  });

  test("from L1 is the log of its completion, which names recipient and relayer", () => {
    const relayer = repeatedByteAddress("e3");
    const sent = createSentTransfer({ kind: "l1", event: { ...event, relayer } });
    expect(createDeliveryQuestion(sent, contracts)).toEqual({
      kind: "log",
      address: [bridge],
      topics: [EVENT_TOPICS.transferFromL1Completed, encodeTopic(event.recipient), encodeTopic(relayer)],
    });
    expect(createDeliveryQuestion(createSentTransfer({ kind: "l1" }), contracts)).toBeUndefined();
  });

  test("is none on a route that does not exist", () => {
    expect(createDeliveryQuestion(createSentTransfer({ token: "none" }), contracts)).toBeUndefined();
  });
});

describe("the question whether a transfer has appeared", () => {
  const [hash, nonce] = [repeatedByteHash("2b"), "258"];
  const ask = (kind: "id" | "hash", value: string, slug: string) =>
    createAppearanceQuestion({ kind, value }, getChain(slug), contracts);

  test("of a transaction is its receipt, and so is that of an ID on L1", () => {
    expect(ask("hash", hash, "arbitrum")).toEqual({ kind: "receipt", hash });
    expect(ask("id", hash, "ethereum")).toEqual({ kind: "receipt", hash });
  });

  test("of an ID on an L2 is a log of its bridges", () => {
    const address = sendersOf("arbitrum", "l2");
    expect(address).toContain(bridge);
    const topics = [EVENT_TOPICS.transferSent, hash];
    expect(ask("id", hash, "arbitrum")).toEqual({ kind: "log", address, topics });
  });

  test.each(["arbitrum", "ethereum"])("of a nonce on %s is a log of its CCTP contract", (slug) => {
    const address = sendersOf(slug, "cctp");
    expect(address).toHaveLength(1);
    const topics = [EVENT_TOPICS.cctpTransferSent, encodeTopic(258n)];
    expect(ask("id", nonce, slug)).toEqual({ kind: "log", address, topics });
  });

  test("of a nonce is none on a chain without CCTP", () => {
    expect(ask("id", nonce, "gnosis")).toBeUndefined();
  });
});

test("log questions of one event are one filter, which matches all that each of them does", () => {
  const [first, second] = [repeatedByteAddress("c1"), repeatedByteAddress("c2")];
  const question = (address: string[], ...topics: (string | null)[]) => ({ kind: "log", address, topics }) as const;
  expect(
    joinLogFilters([
      question([first], "sent", "1"),
      question([first, second], "sent", "2"),
      question([second], "completed", "3", "4", "5"),
      question([second], "completed", null, "4"),
    ]),
  ).toEqual([
    { address: [first, second], topics: [["sent"], ["1", "2"]] },
    { address: [second], topics: [["completed"], null, ["4"]] },
  ]);
  expect(joinLogFilters([])).toEqual([]);
});

const MULTICALL = `0x${"ca".repeat(20)}`;
const CONTRACT = `0x${"c0".repeat(20)}`;
const TOPIC = hashOf(1);

const receiptOf = (hash: string): Question => ({ kind: "receipt", hash });
const flag = (data: string): Question => ({ kind: "flag", call: { to: CONTRACT, data } });
const log = (...topics: (string | null)[]): Question => ({ kind: "log", address: [CONTRACT], topics });

let world: WatchWorld | undefined;
afterEach(() => world?.close());

/** Asks a chain, and notes the batches that it got. */
function createChain({
  results,
  searchedTo,
}: {
  readonly results?: (calls: readonly RpcCall[]) => readonly unknown[];
  /** The last block whose logs the endpoint searches at once. */
  readonly searchedTo?: number;
} = {}) {
  const created = createWatchWorld();
  world = created;
  const facts = created.getFacts("optimism");
  const inner = created.getClient("optimism");
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
    client.getLogs = async ({ range }) => ({ range: { ...range, to: searchedTo }, result: [] }) as never;
  }
  const ask = (questions: readonly Question[], hasMulticall = true) =>
    askChain(
      client,
      {
        questions,
        multicallAddress: hasMulticall ? MULTICALL : undefined,
        getFirstLogBlock: (head) => head - 10,
      },
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
  expect(getLogs.mock.calls.map(([{ range, newestFirst = false }]) => [range, newestFirst])).toEqual([
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
