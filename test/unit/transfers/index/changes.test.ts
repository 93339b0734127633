import { describe, expect, onTestFinished, test, vi } from "vitest";
import { openSqlite } from "../../../../src/transfers/index/database/sqlite-database.js";
import type { TransferIndex } from "../../../../src/transfers/index/transfer-index.js";
import { openIndex } from "../../../support/index/open-index.js";
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
let files = 0;

async function open(file = `${folder()}/index-${files++}`) {
  const index = await openIndex(file);
  onTestFinished(() => index.close());
  const writer = createIndexWriter(index);
  await writer.initialize([OPTIMISM_CHAIN_ID, ARBITRUM_CHAIN_ID], 0);
  return { index, writer };
}

const send = (name: string) => createSendRow(bytesFromName(name), `sends ${name}`);

async function readIds(index: TransferIndex, after: number): Promise<readonly string[]> {
  return (await index.changes.readChanges(after, 1_000)).changed.map(({ transferId }) => transferId);
}

describe("a change feed", () => {
  test("tells of a transfer when it is sent, delivered, and changed back by a reorg", async () => {
    const { index, writer } = await open();
    await writer.advance(OPTIMISM_CHAIN_ID, 1, { sends: [send("a"), send("b")] });
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
    await writer.advance(ARBITRUM_CHAIN_ID, 1, { deliveries: [createDeliveryRow(bytesFromName("a"), "bonds a")] });
    const delivered = { ...expected, deliveryHash: hashFromName("bonds a") };
    expect(await index.changes.readChanges(2, 10)).toMatchObject({ sequence: 3, changed: [delivered] });
    await writer.rollBack(ARBITRUM_CHAIN_ID, 0);
    expect(await index.changes.readChanges(3, 10)).toMatchObject({ sequence: 4, changed: [delivered] });
  });

  test("gives the changes of each transaction a nonce of their own", async () => {
    const { index, writer } = await open();
    await writer.advance(OPTIMISM_CHAIN_ID, 1, { sends: [send("a"), send("b")] });
    await writer.advance(OPTIMISM_CHAIN_ID, 2, { sends: [send("c")] });
    const [a, b, c] = (await index.changes.readChanges(0, 10)).changed;
    expect(a?.nonce).toBeGreaterThan(0);
    expect([b?.nonce, c?.nonce === a?.nonce]).toEqual([a?.nonce, false]);
  });

  test("tells of a transfer that a reorg has removed, with its accounts", async () => {
    const { index, writer } = await open();
    await writer.advance(OPTIMISM_CHAIN_ID, 1, { sends: [send("gone")] });
    await writer.rollBack(OPTIMISM_CHAIN_ID, 0);
    expect(await index.changes.readChanges(1, 10)).toMatchObject({
      sequence: 2,
      changed: [{ transferId: hashFromName("gone"), account: addressFromName("by") }],
    });
  });

  test("tells once of a transfer whose blocks have become final", async () => {
    const { index, writer } = await open();
    const row = send("a");
    await writer.advance(OPTIMISM_CHAIN_ID, 1, { sends: [row] });
    await writer.finalize(OPTIMISM_CHAIN_ID, 1, { sends: [row] });
    expect(await index.changes.readChanges(1, 10)).toMatchObject({ sequence: 2, changed: [expect.anything()] });
    const delivery = createDeliveryRow(bytesFromName("a"), "bonds a");
    await writer.advance(ARBITRUM_CHAIN_ID, 1, { deliveries: [delivery] });
    expect(await index.reader.findByTransferId(hashFromName("a"))).toMatchObject([{ isFinal: false }]);
    await writer.finalize(ARBITRUM_CHAIN_ID, 1, { deliveries: [delivery] });
    expect(await index.reader.findByTransferId(hashFromName("a"))).toMatchObject([{ isFinal: true }]);
  });

  test("tells nothing of events that were indexed before, and of deliveries of unknown transfers", async () => {
    const { index, writer } = await open();
    const row = send("a");
    await writer.advance(OPTIMISM_CHAIN_ID, 1, { sends: [row] });
    await writer.advance(OPTIMISM_CHAIN_ID, 2, { sends: [row] });
    expect(await index.changes.readSequence()).toBe(1);
    await writer.advance(ARBITRUM_CHAIN_ID, 1, { deliveries: [createDeliveryRow(bytesFromName("x"), "bonds x")] });
    expect(await index.changes.readChanges(1, 10)).toEqual({
      sequence: 2,
      changed: [],
      hasMore: false,
      isComplete: true,
    });
  });

  test("is read in parts, each change once", async () => {
    const { index, writer } = await open();
    const names = Array.from({ length: 250 }, (_, number) => `${number}`);
    await writer.advance(OPTIMISM_CHAIN_ID, 1, { sends: names.map(send) });
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
    const { index, writer } = await open();
    await writer.advance(OPTIMISM_CHAIN_ID, 1, { sends: [send("a"), send("b"), send("c")] });
    const connection = await openSqlite(index.file);
    onTestFinished(() => connection.close());
    connection.exec("delete from changes where sequence <= 1");
    expect(await index.changes.readChanges(0, 10)).toMatchObject({ sequence: 3, isComplete: false });
    for (const sequence of [1, 2, 3])
      expect(await index.changes.readChanges(sequence, 10)).toMatchObject({ isComplete: true });
    expect(await index.changes.readChanges(4, 10)).toMatchObject({ sequence: 3, changed: [], isComplete: false });
  });

  test("keeps the newest hundred thousand changes", async () => {
    const { index, writer } = await open();
    await writer.advance(OPTIMISM_CHAIN_ID, 1, { sends: [send("a"), send("b")] });
    const connection = await openSqlite(index.file);
    onTestFinished(() => connection.close());
    connection.exec("update change_counter set value = 100000");
    await writer.advance(OPTIMISM_CHAIN_ID, 2, { sends: [send("c")] });
    expect(connection.prepare("select sequence from changes", { returnArrays: true }).all()).toEqual([[2], [100_001]]);
  });

  test("wakes up subscribers after a write, and those of another process see it in the sequence", async () => {
    const { index, writer } = await open();
    const other = await openIndex(index.file);
    onTestFinished(() => other.close());
    const onWrite = vi.fn();
    const unsubscribe = index.changes.subscribe(onWrite);
    await writer.advance(OPTIMISM_CHAIN_ID, 1, {});
    expect(onWrite).not.toHaveBeenCalled();
    await writer.advance(OPTIMISM_CHAIN_ID, 2, { sends: [send("a")] });
    expect(onWrite).toHaveBeenCalledOnce();
    expect(await other.changes.readSequence()).toBe(1);
    expect(await readIds(other, 0)).toEqual([hashFromName("a")]);
    unsubscribe();
    await writer.advance(OPTIMISM_CHAIN_ID, 3, { sends: [send("b")] });
    expect(onWrite).toHaveBeenCalledOnce();
  });
});
