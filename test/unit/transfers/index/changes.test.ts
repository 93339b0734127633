import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { CursorRow, EventRows } from "../../../../src/transfers/index/database/schema.js";
import { openSqlite } from "../../../../src/transfers/index/database/sqlite-database.js";
import type { TransferIndex } from "../../../../src/transfers/index/transfer-index.js";
import { openIndex } from "../../../support/index/open-index.js";
import { useTemporaryFolder } from "../../../support/temporary-folder.js";
import { addressFromName, hashFromName } from "./support/hop-events.js";
import {
  ARBITRUM_CHAIN_ID,
  bytesFromName,
  createDeliveryRow,
  createSendRow,
  OPTIMISM_CHAIN_ID,
} from "./support/index-rows.js";

const folder = useTemporaryFolder();
let files = 0;

const block = (number: number) => ({
  number,
  hash: hashFromName(`block ${number}`),
  timestamp: 1_700_000_000 + number,
});
const NOTHING: EventRows = { sends: [], deliveries: [], commits: [] };

async function open(file = `${folder()}/index-${files++}`) {
  const index = await openIndex(file);
  onTestFinished(() => index.close());
  for (const chainId of [OPTIMISM_CHAIN_ID, ARBITRUM_CHAIN_ID]) await index.store.initializeCursor(chainId, block(0));
  return index;
}

async function readCursor({ store }: TransferIndex, chainId: number): Promise<CursorRow> {
  const cursor = await store.readCursor(chainId);
  if (cursor === undefined) throw new Error("no cursor");
  return cursor;
}

async function advance(index: TransferIndex, chainId: number, number: number, rows: Partial<EventRows>): Promise<void> {
  const options = { to: block(number), isFinal: false, observedAtMs: 0 };
  await index.store.advance(await readCursor(index, chainId), { ...NOTHING, ...rows }, options);
}

const send = (name: string) => createSendRow(bytesFromName(name), `sends ${name}`);

async function readIds(index: TransferIndex, after: number): Promise<readonly string[]> {
  return (await index.changes.readChanges(after, 1_000)).changed.map(({ transferId }) => transferId);
}

describe("a change feed", () => {
  test("tells of a transfer when it is sent, delivered, and changed back by a reorg", async () => {
    const index = await open();
    await advance(index, OPTIMISM_CHAIN_ID, 1, { sends: [send("a"), send("b")] });
    const expected = {
      transferId: hashFromName("a"),
      transactionHash: hashFromName("sends a"),
      deliveryHash: undefined,
      account: addressFromName("by"),
      recipient: addressFromName("to"),
    };
    expect(await index.changes.readChanges(0, 10)).toEqual({
      sequence: 2,
      changed: [
        { ...expected, sequence: 1, nonce: expect.any(Number) },
        expect.objectContaining({ transferId: hashFromName("b") }),
      ],
      hasMore: false,
      isComplete: true,
    });
    await advance(index, ARBITRUM_CHAIN_ID, 1, { deliveries: [createDeliveryRow(bytesFromName("a"), "bonds a")] });
    const delivered = { ...expected, deliveryHash: hashFromName("bonds a") };
    expect(await index.changes.readChanges(2, 10)).toMatchObject({ sequence: 3, changed: [delivered] });
    await index.store.rollBack(await readCursor(index, ARBITRUM_CHAIN_ID), block(0));
    expect(await index.changes.readChanges(3, 10)).toMatchObject({ sequence: 4, changed: [delivered] });
  });

  test("gives the changes of each transaction a nonce of their own", async () => {
    const index = await open();
    await advance(index, OPTIMISM_CHAIN_ID, 1, { sends: [send("a"), send("b")] });
    await advance(index, OPTIMISM_CHAIN_ID, 2, { sends: [send("c")] });
    const [a, b, c] = (await index.changes.readChanges(0, 10)).changed;
    expect(a?.nonce).toBeGreaterThan(0);
    expect([b?.nonce, c?.nonce === a?.nonce]).toEqual([a?.nonce, false]);
  });

  test("tells of a transfer that a reorg has removed, with its accounts", async () => {
    const index = await open();
    await advance(index, OPTIMISM_CHAIN_ID, 1, { sends: [send("gone")] });
    await index.store.rollBack(await readCursor(index, OPTIMISM_CHAIN_ID), block(0));
    expect(await index.changes.readChanges(1, 10)).toMatchObject({
      sequence: 2,
      changed: [{ transferId: hashFromName("gone"), account: addressFromName("by") }],
    });
  });

  test("tells once of a transfer whose blocks have become final", async () => {
    const index = await open();
    const row = send("a");
    await advance(index, OPTIMISM_CHAIN_ID, 1, { sends: [row] });
    await index.store.finalize(await readCursor(index, OPTIMISM_CHAIN_ID), block(1), { ...NOTHING, sends: [row] });
    expect(await index.changes.readChanges(1, 10)).toMatchObject({ sequence: 2, changed: [expect.anything()] });
    const delivery = createDeliveryRow(bytesFromName("a"), "bonds a");
    await advance(index, ARBITRUM_CHAIN_ID, 1, { deliveries: [delivery] });
    expect(await index.reader.findByTransferId(hashFromName("a"))).toMatchObject([{ isFinal: false }]);
    const final = { ...NOTHING, deliveries: [delivery] };
    await index.store.finalize(await readCursor(index, ARBITRUM_CHAIN_ID), block(1), final);
    expect(await index.reader.findByTransferId(hashFromName("a"))).toMatchObject([{ isFinal: true }]);
  });

  test("tells nothing of events that were indexed before, and of deliveries of unknown transfers", async () => {
    const index = await open();
    const row = send("a");
    await advance(index, OPTIMISM_CHAIN_ID, 1, { sends: [row] });
    await advance(index, OPTIMISM_CHAIN_ID, 2, { sends: [row] });
    expect(await index.changes.readSequence()).toBe(1);
    await advance(index, ARBITRUM_CHAIN_ID, 1, { deliveries: [createDeliveryRow(bytesFromName("x"), "bonds x")] });
    expect(await index.changes.readChanges(1, 10)).toEqual({
      sequence: 2,
      changed: [],
      hasMore: false,
      isComplete: true,
    });
  });

  test("is read in parts, each change once", async () => {
    const index = await open();
    const names = Array.from({ length: 250 }, (_, number) => `${number}`);
    await advance(index, OPTIMISM_CHAIN_ID, 1, { sends: names.map(send) });
    const ids: string[] = [];
    let sequence = 0;
    for (let hasMore = true; hasMore; ) {
      const part = await index.changes.readChanges(sequence, 99);
      ids.push(...part.changed.map(({ transferId }) => transferId));
      ({ sequence, hasMore } = part);
    }
    expect(ids).toEqual(names.map(hashFromName));
  });

  test("says when changes are missing, and when a sequence is of another index", async () => {
    const index = await open();
    await advance(index, OPTIMISM_CHAIN_ID, 1, { sends: [send("a"), send("b"), send("c")] });
    const connection = await openSqlite(index.file);
    onTestFinished(() => connection.close());
    connection.exec("delete from changes where sequence <= 1");
    expect(await index.changes.readChanges(0, 10)).toMatchObject({ sequence: 3, isComplete: false });
    for (const sequence of [1, 2, 3])
      expect(await index.changes.readChanges(sequence, 10)).toMatchObject({ isComplete: true });
    expect(await index.changes.readChanges(4, 10)).toMatchObject({ sequence: 3, changed: [], isComplete: false });
  });

  test("keeps the newest hundred thousand changes", async () => {
    const index = await open();
    await advance(index, OPTIMISM_CHAIN_ID, 1, { sends: [send("a"), send("b")] });
    const connection = await openSqlite(index.file);
    onTestFinished(() => connection.close());
    connection.exec("update change_counter set value = 100000");
    await advance(index, OPTIMISM_CHAIN_ID, 2, { sends: [send("c")] });
    expect(connection.prepare("select sequence from changes", { returnArrays: true }).all()).toEqual([[2], [100_001]]);
  });

  test("wakes up subscribers after a write, and those of another process see it in the sequence", async () => {
    const index = await open();
    const other = await openIndex(index.file);
    onTestFinished(() => other.close());
    const onWrite = vi.fn();
    const unsubscribe = index.changes.subscribe(onWrite);
    await advance(index, OPTIMISM_CHAIN_ID, 1, {});
    expect(onWrite).not.toHaveBeenCalled();
    await advance(index, OPTIMISM_CHAIN_ID, 2, { sends: [send("a")] });
    expect(onWrite).toHaveBeenCalledOnce();
    expect(await other.changes.readSequence()).toBe(1);
    expect(await readIds(other, 0)).toEqual([hashFromName("a")]);
    unsubscribe();
    await advance(index, OPTIMISM_CHAIN_ID, 3, { sends: [send("b")] });
    expect(onWrite).toHaveBeenCalledOnce();
  });
});
