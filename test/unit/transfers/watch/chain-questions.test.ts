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
import type { SentTransfer } from "../../../../src/transfers/status.js";
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
  const usdc = { kind: "cctp", id: "258", token: "USDC" } as const;
  const relayer = repeatedByteAddress("e3");
  const isSpent = { to: bridge, data: encodeIsTransferIdSpentCall(repeatedByteHash("1a")) };
  const isUsed = { to: contracts.findMessageTransmitter(arbitrum), data: encodeUsedNoncesCall(2, 258n) };
  const completion = [EVENT_TOPICS.transferFromL1Completed, encodeTopic(event.recipient), encodeTopic(relayer)];

  test.each<[string, Partial<SentTransfer>, object | undefined]>([
    ["from an L2 is the flag of its ID at the bridge", {}, { kind: "flag", call: isSpent }],
    ["by CCTP is the flag of its nonce at the MessageTransmitter", usdc, { kind: "flag", call: isUsed }],
    ["by CCTP is none to a chain without it", { ...usdc, destination: getChain("gnosis") }, undefined],
    ["by CCTP is none from a chain without it", { ...usdc, source: getChain("gnosis") }, undefined],
    [
      "from L1 is the log of its completion, which names recipient and relayer",
      { kind: "l1", event: { ...event, relayer } },
      { kind: "log", address: [bridge], topics: completion },
    ],
    ["from L1 is none while the relayer is unknown", { kind: "l1" }, undefined],
    ["is none on a route that does not exist", { token: "none" }, undefined],
  ])("%s", (_, sent, question) => {
    expect(createDeliveryQuestion(createSentTransfer(sent), contracts)).toEqual(question);
  });
});

describe("the question whether a transfer has appeared", () => {
  const hash = repeatedByteHash("2b");
  const receipt = { kind: "receipt", hash };
  const sentByBridge = { kind: "log", address: sendersOf("arbitrum", "l2"), topics: [EVENT_TOPICS.transferSent, hash] };
  const burned = [EVENT_TOPICS.cctpTransferSent, encodeTopic(258n)];
  const cctpOf = (slug: string) => [sendersOf(slug, "cctp")[0] ?? "none"];
  const sentByCctp = (slug: string) => ({ kind: "log", address: cctpOf(slug), topics: burned });

  test.each<[string, "id" | "hash", string, string, object | undefined]>([
    ["of a transaction is its receipt", "hash", hash, "arbitrum", receipt],
    ["of an ID on L1 is a receipt", "id", hash, "ethereum", receipt],
    ["of an ID on an L2 is a log of its bridges", "id", hash, "arbitrum", sentByBridge],
    ["of a nonce on an L2 is a log of its CCTP contract", "id", "258", "arbitrum", sentByCctp("arbitrum")],
    ["of a nonce on L1 is a log of its CCTP contract", "id", "258", "ethereum", sentByCctp("ethereum")],
    ["of a nonce is none on a chain without CCTP", "id", "258", "gnosis", undefined],
  ])("%s", (_, kind, value, slug, question) => {
    expect(createAppearanceQuestion({ kind, value }, getChain(slug), contracts)).toEqual(question);
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
  const ask = (questions: readonly Question[], hasMulticall = true) => {
    const multicallAddress = hasMulticall ? MULTICALL : undefined;
    const poll = { questions, multicallAddress, getFirstLogBlock: (head: number) => head - 10 };
    return askChain(client, poll, new AbortController().signal);
  };
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
});

test("logs are searched from the first new block up to the newest, oldest first, and told by address and topics", async () => {
  const { facts, ask, client } = createChain();
  const getLogs = vi.spyOn(client, "getLogs");
  facts.logs = [
    { address: CONTRACT, topics: [TOPIC, hashOf(9)] },
    { address: CONTRACT, topics: [TOPIC, hashOf(2), hashOf(3)] },
  ];
  const questions = [log(TOPIC, hashOf(2)), log(TOPIC, hashOf(9)), log(TOPIC, hashOf(7)), log(TOPIC, null, hashOf(3))];
  const answers = await ask(questions);
  expect(questions.map((each) => answers.getAnswer(each).isFound)).toEqual([true, true, false, true]);
  expect(answers.searchedTo).toBe(5_000);
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
