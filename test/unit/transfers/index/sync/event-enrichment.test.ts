import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import type { ChainClient } from "../../../../../src/chain/chain-client.js";
import type { Log } from "../../../../../src/chain/read/chain-reads.js";
import { ServiceError } from "../../../../../src/errors.js";
import { createBridgeEventParser } from "../../../../../src/transfers/index/sync/bridge-event-parser.js";
import { enrichEvents } from "../../../../../src/transfers/index/sync/event-enrichment.js";
import type { StubEvent } from "../../../../support/stubs/chain-stub.js";
import {
  addressFromName,
  cctpTransferSentEvent,
  getChain,
  hashFromName,
  mainnetNetwork,
  messageReceivedEvent,
  transferFromL1CompletedEvent,
  transferSentEvent,
  transferSentToL2Event,
  withdrawalBondedEvent,
  withdrewEvent,
} from "../support/hop-events.js";

const block = hashFromName("block");
const logOf = ({ from: _, ...event }: StubEvent): Log => ({
  ...event,
  blockNumber: 5,
  blockHash: block,
  logIndex: 2,
});
const header = { number: "0x5", hash: block, timestamp: "0x65" };
const leg = { from: "optimism", to: "base" };

/** What is kept of an event, by a chain that answers so. */
async function complete(
  slug: string,
  event: StubEvent,
  answers: { readonly transaction?: unknown; readonly block?: unknown } = {},
) {
  const { transaction = { from: addressFromName("sender") }, block: answered = header } = answers;
  const asked: string[] = [];
  const client: ChainClient = {
    slug,
    send: () => Promise.reject(new Error("nothing is sent alone")),
    getLogs: () => Promise.reject(new Error("no logs are searched")),
    sendBatch: async (calls) =>
      calls.map(({ method }) => {
        asked.push(method);
        return { result: method === "eth_getTransactionByHash" ? transaction : answered };
      }),
  };
  const read = createBridgeEventParser(mainnetNetwork, getChain(slug)).parse(logOf(event));
  if (read === undefined) throw new Error("the event is not kept");
  const { sends, deliveries } = await enrichEvents(client, [read], new AbortController().signal);
  return { row: sends[0] ?? deliveries[0], asked };
}

const [sender, time] = ["eth_getTransactionByHash", "eth_getBlockByHash"];

test.each<[string, string, StubEvent, string[], object]>([
  ["TransferSent", "optimism", transferSentEvent("a", leg), [sender, time], { timestamp: 101, kind: "l2" }],
  [
    "TransferSentToL2",
    "ethereum",
    transferSentToL2Event("v", "s", { to: "base" }),
    [sender, time],
    { timestamp: 101, kind: "l1" },
  ],
  ["CCTPTransferSent", "optimism", cctpTransferSentEvent(5n, leg), [sender, time], { timestamp: 101, kind: "cctp" }],
  ["WithdrawalBonded", "base", withdrawalBondedEvent("a", leg), [sender], { timestamp: null }],
  ["Withdrew", "base", withdrewEvent("a", leg), [], { timestamp: null, bonder: null }],
  [
    "TransferFromL1Completed",
    "base",
    transferFromL1CompletedEvent("v", "c", { to: "base" }),
    [time],
    { timestamp: 101, bonder: null },
  ],
  ["MessageReceived", "base", messageReceivedEvent(5n, leg), [], { timestamp: null, bonder: null }],
])("of %s no more is asked than is kept", async (_, slug, event, methods, values) => {
  const { row, asked } = await complete(slug, event);
  expect(asked).toEqual(methods);
  expect(row).toMatchObject({ chain_id: getChain(slug).chainId, block_number: 5, log_index: 2, ...values });
});

test("a bonder is who sent the bonding transaction", async () => {
  const { row } = await complete("base", withdrawalBondedEvent("a", leg));
  expect(row).toMatchObject({ bonder: Buffer.from(addressFromName("sender").slice(2), "hex") });
});

test.each([
  ["no such transaction", { transaction: null }],
  ["a transaction without a sender", { transaction: {} }],
  ["a sender that is none", { transaction: { from: "0x12" } }],
  ["no such block", { block: null }],
  ["another block", { block: { ...header, hash: hashFromName("other") } }],
  ["a block without a time", { block: { ...header, timestamp: undefined } }],
  ["no object at all", { block: "0x1", transaction: 7 }],
])("%s is no answer", async (_, answers) => {
  await expect(complete("optimism", transferSentEvent("a", leg), answers)).rejects.toMatchObject({
    reason: "UPSTREAM_UNAVAILABLE",
    message: "optimism gives an answer that Hop's chain could not give",
  });
});

test("the first failure ends all other requests", async () => {
  const signals: AbortSignal[] = [];
  const client: ChainClient = {
    slug: "optimism",
    send: () => Promise.reject(new Error("nothing is sent alone")),
    getLogs: () => Promise.reject(new Error("no logs are searched")),
    async sendBatch(calls, signal) {
      signals.push(signal);
      await setImmediate();
      if (calls[0]?.params[0] === hashFromName("transaction send 0"))
        throw new ServiceError("UPSTREAM_UNAVAILABLE", "optimism is gone");
      return calls.map(() => ({ result: { from: addressFromName("sender") } }));
    },
  };
  const { parse } = createBridgeEventParser(mainnetNetwork, getChain("optimism"));
  const events = Array.from(
    { length: 500 },
    (_, place) => parse(logOf(transferSentEvent(`${place}`, leg))) ?? [],
  ).flat();
  expect(events).toHaveLength(500);
  await expect(enrichEvents(client, events, new AbortController().signal)).rejects.toThrow("optimism is gone");
  for (let turn = 0; turn < 20; turn++) await setImmediate();
  expect(signals).toHaveLength(4);
  expect(signals.every(({ aborted }) => aborted)).toBe(true);
});

test.each<[string, string, Log]>([
  [
    "of a contract that is not Hop's",
    "optimism",
    { ...logOf(transferSentEvent("a", leg)), address: addressFromName("other") },
  ],
  ["of another chain's contract", "gnosis", logOf(transferSentEvent("a", leg))],
  ["that is cut short", "optimism", { ...logOf(transferSentEvent("a", leg)), data: "0x01" }],
  ["with a nonce that is none", "optimism", logOf(cctpTransferSentEvent(1n << 64n, leg))],
  ["that arrived with such a nonce", "base", logOf(messageReceivedEvent(1n << 64n, leg))],
  ["from a domain that does not exist", "base", logOf(messageReceivedEvent(5n, { from: "gnosis", to: "base" }, "0x"))],
  [
    "to a chain whose number is none",
    "optimism",
    {
      ...logOf(transferSentEvent("a", leg)),
      topics: [
        ...logOf(transferSentEvent("a", leg)).topics.slice(0, 2),
        hashFromName("chain"),
        hashFromName("recipient"),
      ],
    },
  ],
])("a log %s is not kept", (_, slug, log) => {
  expect(createBridgeEventParser(mainnetNetwork, getChain(slug)).parse(log)).toBeUndefined();
});
