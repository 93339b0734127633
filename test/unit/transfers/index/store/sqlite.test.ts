import { sql } from "kysely";
import { afterEach, describe, expect, test, vi } from "vitest";
import {
  createKysely,
  createTransactionRunner,
  openSqlite,
} from "../../../../../src/transfers/index/store/sqlite/sqlite.js";
import { useTemporaryFolder } from "../../../../support/temporary-folder.js";

const folder = useTemporaryFolder();
afterEach(() => {
  vi.doUnmock("better-sqlite3");
  vi.doUnmock("node:fs/promises");
  vi.unstubAllGlobals();
  vi.resetModules();
});

class SqliteError extends Error {}

test.each([
  [
    "is not installed",
    () => {
      throw new Error("Cannot find package");
    },
  ],
  [
    "is not built",
    () => ({
      default: Object.assign(
        class {
          constructor() {
            throw new Error("Could not locate the bindings file");
          }
        },
        { SqliteError },
      ),
    }),
  ],
])("a driver that %s is reported with a remedy", async (_, driver) => {
  vi.doMock("better-sqlite3", driver);
  await expect(openSqlite(`${folder()}/new`)).rejects.toMatchObject({
    name: "IndexUnavailableError",
    message: expect.stringContaining("run `npm run build:sqlite`"),
  });
});

describe("a driver whose binary removes hooks", () => {
  /** Opens a file in a version of Node.js, where npm has left such a binary. */
  async function openWith(version: string): Promise<unknown> {
    const paths: unknown[] = [];
    vi.doMock("node:fs/promises", () => ({
      async readFile(path: string) {
        paths.push(path);
        return Buffer.from("\0node::RemoveEnvironmentCleanupHook\0");
      },
    }));
    vi.stubGlobal("process", Object.create(process, { version: { value: version } }));
    vi.resetModules();
    const sqlite = await import("../../../../../src/transfers/index/store/sqlite/sqlite.js");
    const connection = await sqlite.openSqlite(":memory:");
    connection.close();
    return paths;
  }

  test("is refused with a remedy in Node.js 24, which it would end", async () => {
    await expect(openWith("v24.19.0")).rejects.toMatchObject({
      name: "IndexUnavailableError",
      message: expect.stringMatching(/would end the process .* run `npm run build:sqlite` in a checkout/),
    });
  });

  test.each(["v22.20.0", "v26.1.0"])("is used in Node.js %s, and not even read", async (version) => {
    expect(await openWith(version)).toEqual([]);
  });
});

test("a file that cannot be opened is reported by its name", async () => {
  await expect(openSqlite(folder())).rejects.toMatchObject({
    name: "IndexUnavailableError",
    message: expect.stringContaining(`the index file ${folder()} cannot be opened`),
  });
});

describe("a transaction", () => {
  async function start(name: string, sleep: (ms: number) => Promise<void> = async () => {}) {
    const file = `${folder()}/${name}`;
    const connection = await openSqlite(file);
    connection.exec("create table numbers (value integer)");
    const db = createKysely<{ numbers: { value: number } }>(connection);
    const transact = createTransactionRunner(connection, db, sleep);
    const values = () => connection.prepare("select value from numbers").pluck().all();
    return { file, connection, transact, values };
  }

  test("is rolled back on failure and rethrows the error, also when SQLite has rolled back by itself", async () => {
    const { transact, values, connection } = await start("failing");
    for (const isRolledBack of [false, true]) {
      const failing = transact(async (transaction) => {
        await transaction.insertInto("numbers").values({ value: 1 }).execute();
        if (isRolledBack) await sql`rollback`.execute(transaction);
        throw new Error("the disk is full");
      });
      await expect(failing).rejects.toThrow("the disk is full");
      expect(values()).toEqual([]);
    }
    await transact(async (transaction) => {
      await transaction.insertInto("numbers").values({ value: 2 }).execute();
    });
    expect(values()).toEqual([2]);
    connection.close();
  });

  test("waits five seconds for another process, and no longer", async () => {
    let waitedMs = 0;
    const { file, transact, connection } = await start("waiting", async (ms) => {
      waitedMs += ms;
    });
    const other = await openSqlite(file);
    other.exec("begin immediate");
    await expect(transact(async () => {})).rejects.toMatchObject({ code: "SQLITE_BUSY" });
    expect(waitedMs).toBe(5_000);
    other.close();
    connection.close();
  });
});
