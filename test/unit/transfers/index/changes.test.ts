import { describe, expect, test } from "vitest";
import type { DeliveryRow, SendRow } from "../../../../src/transfers/index/database/schema.js";
import { openSqlite } from "../../../../src/transfers/index/database/sqlite-database.js";
import { closeAfterTest } from "../../../support/close-after-test.js";
import { useTestIndexes } from "../../../support/index/open-index.js";
import { createIndexWriter } from "./list/list-harness.js";
import { addressFromName, hashFromName } from "./support/hop-events.js";
import {
  ARBITRUM_CHAIN_ID,
  bytesFromName,
  createDeliveryRow,
  createSendRow,
  OPTIMISM_CHAIN_ID,
} from "./support/index-rows.js";

const indexes = useTestIndexes();

/** Opens an index of Optimism and Arbitrum, and its file. */
async function open() {
  const index = await indexes.open();
  const writer = createIndexWriter(index);
  await writer.initialize([OPTIMISM_CHAIN_ID, ARBITRUM_CHAIN_ID], 0);
  return {
    index,
    readChanges: async (after: number, limit = 10) => index.changes.readChanges(after, limit),
    openFile: async () => closeAfterTest(await openSqlite(index.file)),
    send: (block: number, ...sends: SendRow[]) => writer.advance(OPTIMISM_CHAIN_ID, block, { sends }),
    deliver: (block: number, ...deliveries: DeliveryRow[]) => writer.advance(ARBITRUM_CHAIN_ID, block, { deliveries }),
    rollBack: writer.rollBack,
    finalize: writer.finalize,
  };
}

const createSend = (name: string) => createSendRow(bytesFromName(name), `sends ${name}`);
const createDelivery = (name: string) => createDeliveryRow(bytesFromName(name), `bonds ${name}`);

describe("a change feed", () => {
  test("tells of a transfer when it is sent, delivered, and changed back by a reorg", async () => {
    const { readChanges, send, deliver, rollBack } = await open();
    await send(1, createSend("a"), createSend("b"));
    const expected = {
      transferId: hashFromName("a"),
      transactionHash: hashFromName("sends a"),
      deliveryHash: undefined,
      account: addressFromName("by"),
      recipient: addressFromName("to"),
    };
    expect(await readChanges(0, 10)).toEqual({
      sequence: 2,
      changed: [
        { ...expected, sequence: 1, nonce: expect.any(Number) },
        expect.objectContaining({ transferId: hashFromName("b") }),
      ],
      hasMore: false,
      isComplete: true,
    });
    await deliver(1, createDelivery("a"));
    const delivered = { ...expected, deliveryHash: hashFromName("bonds a") };
    expect(await readChanges(2, 10)).toMatchObject({ sequence: 3, changed: [delivered] });
    await rollBack(ARBITRUM_CHAIN_ID, 0);
    expect(await readChanges(3, 10)).toMatchObject({ sequence: 4, changed: [delivered] });
  });

  test("tells once of a transfer whose blocks have become final", async () => {
    const { index, readChanges, send, deliver, finalize } = await open();
    const row = createSend("a");
    await send(1, row);
    await finalize(OPTIMISM_CHAIN_ID, 1, { sends: [row] });
    expect(await readChanges(1, 10)).toMatchObject({ sequence: 2, changed: [expect.anything()] });
    const delivery = createDelivery("a");
    await deliver(1, delivery);
    expect(await index.reader.findByTransferId(hashFromName("a"))).toMatchObject([{ isFinal: false }]);
    await finalize(ARBITRUM_CHAIN_ID, 1, { deliveries: [delivery] });
    expect(await index.reader.findByTransferId(hashFromName("a"))).toMatchObject([{ isFinal: true }]);
  });

  test("tells nothing of events that were indexed before, and of deliveries of unknown transfers", async () => {
    const { index, readChanges, send, deliver } = await open();
    const row = createSend("a");
    await send(1, row);
    await send(2, row);
    expect(await index.changes.readSequence()).toBe(1);
    await deliver(1, createDelivery("x"));
    expect(await readChanges(1, 10)).toEqual({ sequence: 2, changed: [], hasMore: false, isComplete: true });
  });

  test("is read in parts, each change once", async () => {
    const { readChanges, send } = await open();
    const names = Array.from({ length: 250 }, (_, number) => `${number}`);
    await send(1, ...names.map(createSend));
    const ids: string[] = [];
    let sequence = 0;
    for (let hasMore = true; hasMore; ) {
      const part = await readChanges(sequence, 99);
      ids.push(...part.changed.map(({ transferId }) => transferId));
      ({ sequence, hasMore } = part);
    }
    expect(ids).toEqual(names.map(hashFromName));
  });

  test("says when changes are missing, and when a sequence is of another index", async () => {
    const { readChanges, openFile, send } = await open();
    await send(1, createSend("a"), createSend("b"), createSend("c"));
    const connection = await openFile();
    connection.exec("delete from changes where sequence <= 1");
    expect(await readChanges(0, 10)).toMatchObject({ sequence: 3, isComplete: false });
    for (const sequence of [1, 2, 3]) expect(await readChanges(sequence, 10)).toMatchObject({ isComplete: true });
    expect(await readChanges(4, 10)).toMatchObject({ sequence: 3, changed: [], isComplete: false });
  });

  test("keeps the newest hundred thousand changes", async () => {
    const { openFile, send } = await open();
    await send(1, createSend("a"), createSend("b"));
    const connection = await openFile();
    connection.exec("update change_counter set value = 100000");
    await send(2, createSend("c"));
    expect(connection.prepare("select sequence from changes", { returnArrays: true }).all()).toEqual([[2], [100_001]]);
  });
});
