import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { MIGRATIONS, migrateIndex } from "../../../../../src/transfers/index/database/migrations.js";
import { openSqlite } from "../../../../../src/transfers/index/database/sqlite-database.js";
import { openIndex } from "../../../../support/index/open-index.js";
import { useTemporaryFolder } from "../../../../support/temporary-folder.js";
import { getChain, hashFromName } from "../support/hop-events.js";

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
  const index = await openIndex(file);
  const { reader, store, changes } = index;
  expect(await reader.findByTransferId(hashFromName("bonded"))).toMatchObject([
    { sent: { source: getChain("optimism") }, delivery: { transactionHash: hashFromName("bonds") }, isFinal: true },
  ]);
  expect(await reader.findByTransferId(hashFromName("pending"))).toMatchObject([{ delivery: undefined }]);
  expect(await changes.readSequence()).toBe(0);
  const cursor = await store.readCursor(10);
  if (cursor === undefined) throw new Error("no cursor");
  await store.rollBack(cursor, { number: 0, hash: hashFromName("block 0"), timestamp: 1_700_000_000 });
  expect(await reader.findByTransferId(hashFromName("bonded"))).toEqual([]);
  expect(await changes.readChanges(0, 10)).toMatchObject({ sequence: 2, isComplete: true });
  await index.close();
});

test("an index of the version before, which recorded its migrations elsewhere, is used as it is", async () => {
  const file = await createFirstVersionFile("before");
  await (await openIndex(file)).close();
  const connection = await openSqlite(file);
  connection.exec("drop table index_migrations; drop table leases");
  connection.close();
  const index = await openIndex(file);
  expect(await index.reader.findByTransferId(hashFromName("bonded"))).toHaveLength(1);
  await index.close();
});

test("an index that a newer version has changed beyond compatibility is refused", async () => {
  const file = await createFirstVersionFile("newer");
  const index = await openIndex(file);
  const removeColumn = ["2099-02-contract", async () => {}] as const;
  await migrateIndex(index.database, [...MIGRATIONS, removeColumn], "2099-02-contract");
  await expect(index.migrate()).rejects.toThrow("newer version");
  await index.close();
});
