import { afterEach, beforeAll, expect, test } from "vitest";
import { encodeCctpKey } from "../../../../../src/transfers/index/store/correlation-key.js";
import { openIndex } from "../../../../../src/transfers/index/store/open-index.js";
import { openSqlite } from "../../../../../src/transfers/index/store/sqlite/sqlite.js";
import { createSqliteSource } from "../../../../../src/transfers/index/store/sqlite/sqlite-statements.js";
import {
  createTransferIndex,
  type TransferIndexReader,
} from "../../../../../src/transfers/index/store/transfer-index.js";
import { useTemporaryFolder } from "../../../../support/temporary-folder.js";
import { hashFromName, mainnetNetwork } from "../support/hop-events.js";
import {
  ARBITRUM_CHAIN_ID,
  bytesFromName,
  createDeliveryRow,
  createSendRow,
  OPTIMISM_CHAIN_ID,
} from "../support/index-rows.js";

const folder = useTemporaryFolder();
let file: string;
beforeAll(async () => {
  file = `${folder()}/index`;
  await fillIndex();
});

/** The statements that the reader has run, with their values. */
let executed: string[] = [];
const close: (() => void)[] = [];
afterEach(() => {
  for (const end of close.splice(0)) end();
});

async function openReader(): Promise<TransferIndexReader> {
  const connection = await openSqlite(file, { readonly: true, verbose: (sql) => executed.push(String(sql)) });
  const reader = createTransferIndex(createSqliteSource(connection, mainnetNetwork), mainnetNetwork);
  close.push(() => reader.close());
  executed = [];
  return reader;
}

async function fillIndex(): Promise<void> {
  const index = await openIndex(file, mainnetNetwork);
  const nonce = encodeCctpKey(2, 77n) ?? Buffer.alloc(0);
  const sends = [
    createSendRow(bytesFromName("pending"), "sends pending"),
    createSendRow(bytesFromName("bonded"), "sends bonded"),
    createSendRow(bytesFromName("first of two"), "sends two"),
    createSendRow(bytesFromName("second of two"), "sends two"),
    createSendRow(nonce, "burns", { kind: "cctp" }),
    createSendRow(bytesFromName("values"), "sends from L1", { kind: "l1" }),
    createSendRow(bytesFromName("delivered values"), "sends from L1, delivered", { kind: "l1" }),
    createSendRow(bytesFromName("equal values"), "sends from L1", {
      kind: "l1",
      transaction_hash: bytesFromName("first"),
    }),
    createSendRow(bytesFromName("equal values"), "sends from L1", {
      kind: "l1",
      transaction_hash: bytesFromName("second"),
    }),
    createSendRow(bytesFromName("twice"), "sends from L1, delivered twice", { kind: "l1" }),
  ];
  const deliveries = [
    createDeliveryRow(bytesFromName("bonded"), "bonds one"),
    createDeliveryRow(bytesFromName("first of two"), "bonds two"),
    createDeliveryRow(bytesFromName("second of two"), "bonds two"),
    createDeliveryRow(bytesFromName("delivered values"), "completes"),
    createDeliveryRow(bytesFromName("twice"), "completes"),
    createDeliveryRow(bytesFromName("twice"), "completes"),
  ];
  for (const [chainId, rows] of [
    [OPTIMISM_CHAIN_ID, { sends, deliveries: [] }],
    [ARBITRUM_CHAIN_ID, { sends: [], deliveries }],
  ] as const) {
    const block = { number: 0, hash: hashFromName("block 0"), timestamp: 1_700_000_000 };
    await index.store.initializeCursor(chainId, block);
    const cursor = await index.store.readCursor(chainId);
    if (cursor === undefined) throw new Error("the index has no cursor");
    const to = { number: 1, hash: hashFromName("block 1"), timestamp: 1_700_000_002 };
    await index.store.advance(cursor, rows, { to, isFinal: true, observedAtMs: 0 });
  }
  index.close();
}

const byId = (name: string) => (reader: TransferIndexReader) => reader.findByTransferId(hashFromName(name));
const byHash = (name: string) => (reader: TransferIndexReader) => reader.findByTransactionHash(hashFromName(name));
const lookups: readonly [string, number, (reader: TransferIndexReader) => readonly unknown[], number][] = [
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
  ["two transfers by their delivering transaction", 2 + 6, byHash("bonds two"), 2],
  ["a transfer from L1 by its transaction", 1, byHash("sends from L1"), 1],
  ["a transfer from L1 by ID", 2, byId("sends from L1, delivered"), 1],
  ["one of two equal transfers from L1 by its transaction", 1 + 7, byHash("first"), 1],
  ["one of two equal transfers from L1 by ID", 2 + 7, byId("second"), 1],
  ["a transfer from L1 with two deliveries", 1 + 7, byHash("sends from L1, delivered twice"), 1],
];

test.each(lookups)("%s takes %i statements", async (_, statements, find, found) => {
  const reader = await openReader();
  expect(find(reader)).toHaveLength(found);
  expect(executed, executed.join("\n")).toHaveLength(statements);
});

test("the coverage of a chain takes one statement", async () => {
  const reader = await openReader();
  expect(reader.getCoverage("optimism")).toMatchObject({ toBlock: 1 });
  expect(executed).toHaveLength(1);
});

test("no statement reads more rows than those of its key", async () => {
  const reader = await openReader();
  for (const [, , find] of lookups) find(reader);
  reader.getCoverage("optimism");
  const connection = await openSqlite(file, { readonly: true });
  close.push(() => connection.close());
  const steps = [...new Set(executed)]
    .filter((statement) => statement.startsWith("select"))
    .flatMap((statement) => connection.prepare<[], { detail: string }>(`explain query plan ${statement}`).all())
    .map(({ detail }) => detail)
    .filter((detail) => !detail.startsWith("USE TEMP B-TREE") && !detail.startsWith("CORRELATED"));
  expect(steps.length).toBeGreaterThan(0);
  const keyed = /^SEARCH .* USING (COVERING )?INDEX ((sends|deliveries)_(arrival_key|transaction_hash)|\S*cursors\S*) /;
  expect(steps.filter((detail) => !keyed.test(detail))).toEqual([]);
});
