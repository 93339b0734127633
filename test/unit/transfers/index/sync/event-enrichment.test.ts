import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import type { ChainClient } from "../../../../../src/chain/chain-client.js";
import type { Log } from "../../../../../src/chain/read/chain-reads.js";
import { ServiceError } from "../../../../../src/errors.js";
import { BridgeEventParser } from "../../../../../src/transfers/index/sync/bridge-event-parser.js";
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
const logOf = ({ from: _, ...event }: StubEvent): Log => ({ ...event, blockNumber: 5, blockHash: block, logIndex: 2 });
const header = { number: "0x5", hash: block, timestamp: "0x65" };
const leg = { from: "optimism", to: "base" };

const createClient = (slug: string, sendBatch: ChainClient["sendBatch"]): ChainClient => ({
  slug,
  send: () => Promise.reject(new Error("enrichment sends batches only")),
  getLogs: () => Promise.reject(new Error("enrichment reads no logs")),
  sendBatch,
});
const parse = (slug: string, log: Log) => new BridgeEventParser(mainnetNetwork, getChain(slug)).parse(log);

/** Enriches one event on a chain that returns these results. */
async function enrich(
  slug: string,
  event: StubEvent,
  results: { readonly transaction?: unknown; readonly block?: unknown } = {},
) {
  const { transaction = { from: addressFromName("sender") }, block: blockResult = header } = results;
  const methods: string[] = [];
  const client = createClient(slug, async (calls) =>
    calls.map(({ method }) => {
      methods.push(method);
      return { result: method === "eth_getTransactionByHash" ? transaction : blockResult };
    }),
  );
  const parsed = parse(slug, logOf(event));
  if (parsed === undefined) throw new Error("the event is not indexed");
  const { sends, deliveries } = await enrichEvents(client, [parsed], new AbortController().signal);
  return { row: sends[0] ?? deliveries[0], methods };
}

const [sender, time] = ["eth_getTransactionByHash", "eth_getBlockByHash"];
const bonder = Buffer.from(addressFromName("sender").slice(2), "hex");
const l1Send = transferSentToL2Event("v", "s", { to: "base" });
const completion = transferFromL1CompletedEvent("v", "c", { to: "base" });

test.each<[string, string, StubEvent, string[], object]>([
  ["TransferSent", "optimism", transferSentEvent("a", leg), [sender, time], { kind: "l2" }],
  ["TransferSentToL2", "ethereum", l1Send, [sender, time], { kind: "l1" }],
  ["CCTPTransferSent", "optimism", cctpTransferSentEvent(5n, leg), [sender, time], { kind: "cctp" }],
  ["WithdrawalBonded", "base", withdrawalBondedEvent("a", leg), [sender, time], { bonder }],
  ["Withdrew", "base", withdrewEvent("a", leg), [time], { bonder: null }],
  ["TransferFromL1Completed", "base", completion, [time], { bonder: null }],
  ["MessageReceived", "base", messageReceivedEvent(5n, leg), [time], { bonder: null }],
])("reads for %s only what is stored", async (_, slug, event, expectedMethods, values) => {
  const { row, methods } = await enrich(slug, event);
  expect(methods).toEqual(expectedMethods);
  const place = { chain_id: getChain(slug).chainId, block_number: 5, log_index: 2 };
  expect(row).toMatchObject({ ...place, timestamp: 101, ...values });
});

test.each([
  ["no such transaction", { transaction: null }],
  ["a transaction without a sender", { transaction: {} }],
  ["an invalid sender", { transaction: { from: "0x12" } }],
  ["no such block", { block: null }],
  ["another block", { block: { ...header, hash: hashFromName("other") } }],
  ["a block without a time", { block: { ...header, timestamp: undefined } }],
  ["no object at all", { block: "0x1", transaction: 7 }],
])("rejects %s", async (_, results) => {
  await expect(enrich("optimism", transferSentEvent("a", leg), results)).rejects.toMatchObject({
    reason: "UPSTREAM_UNAVAILABLE",
    message: "optimism returned an invalid result",
  });
});

test("aborts all other requests at the first failure", async () => {
  const signals: AbortSignal[] = [];
  const client = createClient("optimism", async (calls, signal) => {
    signals.push(signal);
    await setImmediate();
    if (calls[0]?.params[0] === hashFromName("transaction send 0"))
      throw new ServiceError("UPSTREAM_UNAVAILABLE", "optimism is gone");
    return calls.map(() => ({ result: { from: addressFromName("sender") } }));
  });
  const logs = Array.from({ length: 500 }, (_, index) => logOf(transferSentEvent(`${index}`, leg)));
  const events = logs.flatMap((log) => parse("optimism", log) ?? []);
  expect(events).toHaveLength(500);
  await expect(enrichEvents(client, events, new AbortController().signal)).rejects.toThrow("optimism is gone");
  for (let tick = 0; tick < 20; tick++) await setImmediate();
  expect(signals).toHaveLength(4);
  expect(signals.every(({ aborted }) => aborted)).toBe(true);
});

const sendLog = logOf(transferSentEvent("a", leg));
const toUnknownChain = [...sendLog.topics.slice(0, 2), hashFromName("chain"), hashFromName("recipient")];
test.each<[string, string, Log]>([
  ["of a foreign contract", "optimism", { ...sendLog, address: addressFromName("other") }],
  ["of a contract of another chain", "gnosis", sendLog],
  ["with truncated data", "optimism", { ...sendLog, data: "0x01" }],
  ["with a nonce beyond 64 bits", "optimism", logOf(cctpTransferSentEvent(1n << 64n, leg))],
  ["of a delivery with a nonce beyond 64 bits", "base", logOf(messageReceivedEvent(1n << 64n, leg))],
  ["from an unknown CCTP domain", "base", logOf(messageReceivedEvent(5n, { from: "gnosis", to: "base" }, "0x"))],
  ["to a chain ID beyond 2^53", "optimism", { ...sendLog, topics: toUnknownChain }],
])("does not index a log %s", (_, slug, log) => {
  expect(parse(slug, log)).toBeUndefined();
});
