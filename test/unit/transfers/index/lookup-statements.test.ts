import { beforeAll, expect, onTestFinished, test } from "vitest";
import { hexToBytes } from "../../../../src/chain/hex.js";
import type { MaybePromise } from "../../../../src/resilience/maybe-async.js";
import { encodeCctpKey } from "../../../../src/transfers/index/correlation-key.js";
import type { SendRow } from "../../../../src/transfers/index/database/schema.js";
import type { IndexReader } from "../../../../src/transfers/index/index-reader.js";
import { LIST_START } from "../../../../src/transfers/index/list/transfer-lister.js";
import { openIndex } from "../../../support/index/open-index.js";
import { explainQuery, openRecordedIndex } from "../../../support/index/recorded-statements.js";
import { useTemporaryFolder } from "../../../support/temporary-folder.js";
import { createIndexWriter } from "./list/list-harness.js";
import { addressFromName, hashFromName } from "./support/hop-events.js";
import {
  ARBITRUM_CHAIN_ID,
  bytesFromName,
  createDeliveryRow,
  createSendRow,
  OPTIMISM_CHAIN_ID,
} from "./support/index-rows.js";

const folder = useTemporaryFolder();
let file: string;
beforeAll(async () => {
  file = `${folder()}/index`;
  await fillIndex();
});

/** The statements that the reader has run. */
const executed: string[] = [];
async function openReader(): Promise<IndexReader> {
  const index = await openRecordedIndex(file, executed);
  onTestFinished(() => index.close());
  executed.length = 0;
  return index.reader;
}

async function fillIndex(): Promise<void> {
  const index = await openIndex(file);
  const nonce = encodeCctpKey(2, 77n) ?? Buffer.alloc(0);
  // Anybody can send and deliver as many in one transaction.
  const hundred = Array.from({ length: 100 }, (_, index) => bytesFromName(`one of a hundred ${index}`));
  const account = hexToBytes(addressFromName("sender of pairs"));
  const send = (name: string, transaction: string, more?: Partial<SendRow>) =>
    createSendRow(bytesFromName(name), transaction, more);
  const deliver = (name: string, transaction: string) => createDeliveryRow(bytesFromName(name), transaction);
  const fromL1 = { kind: "l1" } as const;
  const sends = [
    ...hundred.map((key) => createSendRow(key, "sends a hundred")),
    ...hundred.map(() => send("a hundred", "sends a hundred from L1", fromL1)),
    ...hundred.map((_, index) => send(`one of a pair ${index}`, `sends pair ${index >> 1}`, { account })),
    send("pending", "sends pending"),
    send("bonded", "sends bonded"),
    send("first of two", "sends two"),
    send("second of two", "sends two"),
    createSendRow(nonce, "burns", { kind: "cctp" }),
    send("values", "sends from L1", fromL1),
    send("delivered values", "sends from L1, delivered", fromL1),
    send("equal values", "first", fromL1),
    send("equal values", "second", fromL1),
    send("twice", "sends from L1, delivered twice", fromL1),
  ];
  const deliveries = [
    ...hundred.map((key) => createDeliveryRow(key, "bonds a hundred")),
    deliver("bonded", "bonds one"),
    deliver("first of two", "bonds two"),
    deliver("second of two", "bonds two"),
    deliver("delivered values", "completes"),
    deliver("twice", "completes"),
    deliver("twice", "completes"),
  ];
  const writer = createIndexWriter(index);
  await writer.initialize([OPTIMISM_CHAIN_ID, ARBITRUM_CHAIN_ID], 0);
  await writer.advance(OPTIMISM_CHAIN_ID, 1, { sends });
  await writer.advance(ARBITRUM_CHAIN_ID, 1, { deliveries });
  index.close();
}

const byId = (name: string) => (reader: IndexReader) => reader.findByTransferId(hashFromName(name));
const byHash = (name: string) => (reader: IndexReader) => reader.findByTransactionHash(hashFromName(name));
const lookups: readonly [string, number, (reader: IndexReader) => MaybePromise<readonly unknown[]>, number][] = [
  ["a bonded transfer by ID", 1, byId("bonded"), 1],
  ["a pending transfer by ID", 1, byId("pending"), 1],
  ["a transfer by its sending transaction", 1, byHash("sends bonded"), 1],
  ["a transfer by its delivering transaction", 3, byHash("bonds one"), 1],
  ["a CCTP transfer by nonce", 1, (reader) => reader.findByTransferId("77"), 1],
  ["an unknown nonce", 1, (reader) => reader.findByTransferId("78"), 0],
  ["an unknown ID", 2, byId("unknown"), 0],
  ["an unknown transaction", 2, byHash("unknown"), 0],
  // A transaction around them, so that they read one state.
  ["one of two transfers of a transaction", 1 + 4, byId("second of two"), 1],
  ["two transfers by their sending transaction", 1 + 3, byHash("sends two"), 2],
  ["two transfers by their delivering transaction", 2 + 5, byHash("bonds two"), 2],
  ["a hundred transfers by their delivering transaction", 2 + 5, byHash("bonds a hundred"), 100],
  ["a transfer from L1 by its transaction", 1, byHash("sends from L1"), 1],
  ["a transfer from L1 by ID", 2, byId("sends from L1, delivered"), 1],
  ["one of two equal transfers from L1 by its transaction", 1 + 5, byHash("first"), 1],
  ["one of two equal transfers from L1 by ID", 2 + 6, byId("second"), 1],
  ["a hundred equal transfers from L1 by their transaction", 1 + 5, byHash("sends a hundred from L1"), 100],
  ["a transfer from L1 with two deliveries", 1 + 5, byHash("sends from L1, delivered twice"), 1],
];

test.each(lookups)("%s takes %i statements", async (_, statements, find, found) => {
  const reader = await openReader();
  expect(await find(reader)).toHaveLength(found);
  expect(executed, executed.join("\n")).toHaveLength(statements);
});

test("a page of transfers whose transactions sent several takes one statement for all of those", async () => {
  const reader = await openReader();
  const account = addressFromName("sender of pairs");
  const page = await reader.readPage({ account, after: LIST_START, rows: 100, limit: 100, filter: {} });
  expect(page.entries).toHaveLength(100);
  expect(page.entries.map(({ transfer }) => transfer.otherTransferIds.length)).toEqual(Array(100).fill(1));
  // The first attempt finds out that the page takes further statements, of one state.
  expect(executed, executed.join("\n")).toHaveLength(1 + 4);
});

test("the coverage of all chains takes one statement", async () => {
  const reader = await openReader();
  expect((await reader.readCoverage()).get("optimism")).toMatchObject({ toBlock: 1 });
  expect(executed).toHaveLength(1);
});

test("a lookup together with the coverage reads one state", async () => {
  const reader = await openReader();
  const query = { transactionHash: hashFromName("unknown"), transferId: undefined };
  const { transfers, coverage } = await reader.findCovered(query);
  expect([transfers.length, coverage.size]).toEqual([0, 2]);
  expect([executed[0], executed.at(-1), executed.length]).toEqual(["begin", "commit", 5]);
});

test("the tree of a transfer takes one statement, which reads the rows of one bridge and destination alone", async () => {
  const reader = await openReader();
  const [transfer] = await reader.findByTransferId(hashFromName("pending"));
  if (transfer === undefined) throw new Error("no transfer");
  executed.length = 0;
  await reader.readTree(transfer.sent);
  expect(executed, executed.join("\n")).toHaveLength(1);
  const plan = await explainQuery(file, executed[0] ?? "");
  const bridge = "chain_id=? AND token=? AND destination_chain_id=?";
  expect(plan.filter((step) => step.startsWith("SEARCH r "))).toEqual([
    `SEARCH r USING INDEX commits_bridge (${bridge} AND (block_number,log_index)>(?,?))`,
    `SEARCH r USING INDEX sends_bridge (${bridge} AND (block_number,log_index)>(?,?) AND (block_number,log_index)<(?,?))`,
    `SEARCH r USING INDEX commits_bridge (${bridge} AND (block_number,log_index)<(?,?))`,
  ]);
  // What two of the steps have found: one row each.
  const scans = new Set(plan.filter((step) => step.startsWith("SCAN")));
  expect(scans).toEqual(new Set(["SCAN earlier LEFT-JOIN", "SCAN later LEFT-JOIN"]));
});

test("no statement reads more rows than those of its key", async () => {
  const reader = await openReader();
  for (const [, , find] of lookups) await find(reader);
  const statements = [...new Set(executed)].filter((statement) =>
    / where .*(arrival_key|transaction_hash)/.test(statement),
  );
  const plans = await Promise.all(statements.map((statement) => explainQuery(file, statement)));
  const steps = plans
    .flat()
    .filter((detail) => !detail.startsWith("USE TEMP B-TREE") && !detail.startsWith("CORRELATED"));
  expect(steps.length).toBeGreaterThan(0);
  const keyed = /^SEARCH .* USING (COVERING )?INDEX ((sends|deliveries)_(arrival_key|transaction_hash)|\S*cursors\S*) /;
  expect(steps.filter((detail) => !keyed.test(detail))).toEqual([]);
});
