import { type Kysely, sql } from "kysely";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { IndexTables } from "../../../../../src/transfers/index/database/schema.js";
import { openSqlite, openSqliteDatabase } from "../../../../../src/transfers/index/database/sqlite-database.js";
import { useTemporaryFolder } from "../../../../support/temporary-folder.js";

const folder = useTemporaryFolder();
afterEach(() => {
  vi.doUnmock("@photostructure/sqlite");
});

test("a driver that is missing, or has no binary for the platform, is reported with a remedy", async () => {
  vi.doMock("@photostructure/sqlite", () => {
    throw new Error("Cannot find package");
  });
  await expect(openSqlite(`${folder()}/new`)).rejects.toMatchObject({
    name: "IndexUnavailableError",
    message: expect.stringContaining("the package @photostructure/sqlite"),
  });
});

describe("a transaction", () => {
  async function start(name: string) {
    const database = await openSqliteDatabase(`${folder()}/${name}`);
    await sql`create table numbers (value integer)`.execute(database.builder);
    const insert = (db: Kysely<IndexTables>, value: number) => sql`insert into numbers values (${value})`.execute(db);
    const values = async () =>
      (await sql<{ value: number }>`select value from numbers`.execute(database.builder)).rows.map(
        ({ value }) => value,
      );
    return { database, insert, values };
  }

  test("is rolled back on failure and rethrows the error, also when SQLite has rolled back by itself", async () => {
    const { database, insert, values } = await start("failing");
    for (const isRolledBack of [false, true]) {
      const failing = database.transact(async (transaction) => {
        await insert(transaction, 1);
        if (isRolledBack) await sql`rollback`.execute(transaction);
        throw new Error("the disk is full");
      });
      await expect(failing).rejects.toThrow("the disk is full");
      expect(await values()).toEqual([]);
    }
    await database.transact((transaction) => insert(transaction, 2));
    expect(await values()).toEqual([2]);
    await database.close();
  });

  test("gives up after it has waited five seconds for another process", async () => {
    const { database } = await start("waiting");
    const other = await openSqlite(`${folder()}/waiting`);
    other.exec("begin immediate");
    const startedAt = performance.now();
    await expect(database.transact(async () => {})).rejects.toThrow("database is locked");
    expect(performance.now() - startedAt).toBeGreaterThan(4_900);
    other.close();
    await database.close();
  });
});
