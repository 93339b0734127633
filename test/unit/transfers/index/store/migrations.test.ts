import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { openIndex } from "../../../../../src/transfers/index/store/open-index.js";
import { openSqlite } from "../../../../../src/transfers/index/store/sqlite/sqlite.js";
import { useTemporaryFolder } from "../../../../support/temporary-folder.js";
import { getChain, hashFromName, mainnetNetwork } from "../support/hop-events.js";

const folder = useTemporaryFolder();

/** Creates an index file as the first version of the service wrote it: one bonded and one pending transfer. */
async function createFirstVersionFile(name: string): Promise<string> {
  const file = `${folder()}/${name}`;
  const connection = await openSqlite(file);
  connection.exec(await readFile(new URL("../support/first-version.sql", import.meta.url), "utf8"));
  connection.close();
  return file;
}

test("an index of the first version keeps its transfers and can be written", async () => {
  const file = await createFirstVersionFile("upgraded");
  const { reader, store, changes, close } = await openIndex(file, mainnetNetwork);
  expect(reader.findByTransferId(hashFromName("bonded"))).toMatchObject([
    { sent: { source: getChain("optimism") }, delivery: { transactionHash: hashFromName("bonds") }, isFinal: true },
  ]);
  expect(reader.findByTransferId(hashFromName("pending"))).toMatchObject([{ delivery: undefined }]);
  expect(await changes.readSequence()).toBe(0);
  const cursor = await store.readCursor(10);
  if (cursor === undefined) throw new Error("no cursor");
  await store.rollBack(cursor, { number: 0, hash: hashFromName("block 0"), timestamp: 1_700_000_000 });
  expect(reader.findByTransferId(hashFromName("bonded"))).toEqual([]);
  expect(await changes.readChanges(0, 10)).toMatchObject({ sequence: 2, isComplete: true });
  close();
});

test("a migration that was killed before it was recorded is done again", async () => {
  const file = await createFirstVersionFile("killed");
  (await openIndex(file, mainnetNetwork)).close();
  const connection = await openSqlite(file);
  connection.exec("delete from kysely_migration where name <> '2026-07-transfers'");
  connection.close();
  const { reader, close } = await openIndex(file, mainnetNetwork);
  expect(reader.findByTransferId(hashFromName("bonded"))).toHaveLength(1);
  close();
});
