import { sql } from "kysely";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { getNetwork } from "../../src/hop/networks.js";
import type { ChangedTransfer } from "../../src/transfers/index/store/changes/index-changes.js";
import { openIndex } from "../../src/transfers/index/store/open-index.js";
import type { DeliveredRow } from "../../src/transfers/index/store/pages/delivered-statement.js";
import {
  LIST_START,
  type ListPosition,
  type TransferPage,
} from "../../src/transfers/index/store/pages/transfer-page.js";
import { createPostgresPool } from "../../src/transfers/index/store/postgres/connection/connection.js";
import { createPostgresKysely } from "../../src/transfers/index/store/postgres/connection/database.js";
import { copyIndexFile } from "../../src/transfers/index/store/postgres/copy-file.js";
import { MIGRATIONS, migrateDatabase } from "../../src/transfers/index/store/postgres/migrate-database.js";
import type { PostgresIndex } from "../../src/transfers/index/store/postgres/postgres-index.js";
import type { TransferIndexReader } from "../../src/transfers/index/store/transfer-index.js";
import { createTiedSends, expectExactPages, PAGE_FILTERS, TIED_CHAIN_IDS } from "../support/index/paging.js";
import { createRandom, createRandomEvents, listQueries, selectEvents } from "../support/index/random-events.js";
import { writeEvents } from "../support/index/write-events.js";
import { useTemporaryFolder } from "../support/temporary-folder.js";
import { type PgBouncer, startPgBouncer } from "./support/pgbouncer.js";
import { type PostgresServer, startPostgres } from "./support/postgres-server.js";
import { openTestPostgresIndex, parseLocation } from "./support/postgres-test-index.js";
import { leftOut, pgBouncerProgram, postgresPrograms } from "./support/server-programs.js";

const network = getNetwork("mainnet");
const isLeftOut = postgresPrograms === undefined || pgBouncerProgram === undefined;

describe.skipIf(isLeftOut)(`the index in PostgreSQL${leftOut(postgresPrograms, pgBouncerProgram)}`, () => {
  const folder = useTemporaryFolder();
  const cleanups: (() => unknown)[] = [];
  let server: PostgresServer;
  let bouncer: PgBouncer;

  beforeAll(async () => {
    server = await startPostgres();
    bouncer = await startPgBouncer(server);
  });
  afterEach(async () => {
    for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp();
  });
  afterAll(async () => {
    await bouncer?.close();
    await server?.close();
  });

  /** Creates a database and returns its URLs through the pooler and without it. */
  async function createDatabase() {
    const direct = await server.createDatabase();
    return { direct, pooled: bouncer.url(new URL(direct).pathname.slice(1)) };
  }

  async function open(url: string, options?: Parameters<typeof openTestPostgresIndex>[1]): Promise<PostgresIndex> {
    const index = await openTestPostgresIndex(url, options);
    cleanups.push(() => index.close());
    return index;
  }

  test.each([
    [1, "pooled"],
    [2, "direct"],
  ] as const)("gives the answers of SQLite for every ID, hash and account, seed %i, %s", async (seed, connection) => {
    const { sends, deliveries, chainIds } = createRandomEvents(createRandom(seed), 250);
    const { [connection]: url } = await createDatabase();
    const [postgres, sqlite] = [await open(url), await openIndex(`${folder()}/equal-${seed}`, network)];
    cleanups.push(() => sqlite.close());
    await postgres.migrate();
    for (const { store } of [postgres, sqlite]) await writeEvents(store, { sends, deliveries }, chainIds);

    const { ids, hashes, accounts } = listQueries({ sends, deliveries });
    let found = 0;
    async function compare(query: (reader: TransferIndexReader) => unknown): Promise<void> {
      const expected = query(sqlite.reader);
      expect(await postgres.reader.read(query)).toEqual(expected);
      found += (expected as readonly unknown[]).length;
    }
    for (const id of ids) await compare((reader) => reader.findByTransferId(id));
    for (const hash of hashes) await compare((reader) => reader.findByTransactionHash(hash));
    await compare((reader) => [...network.chains.keys()].map((slug) => reader.getCoverage(slug)));
    expect(found).toBeGreaterThan(500);

    let listed = 0;
    for (const [i, account] of accounts.entries()) {
      for (const filter of i < 2 ? PAGE_FILTERS : PAGE_FILTERS.slice(0, 1)) {
        for (let after: ListPosition | undefined = LIST_START; after !== undefined; ) {
          const rows = filter === PAGE_FILTERS[0] ? 7 : 80;
          const request = { account, after, rows, limit: Math.min(rows, 30), filter };
          const page: TransferPage = sqlite.reader.readPage(request);
          expect(await postgres.reader.read((reader) => reader.readPage(request))).toEqual(page);
          listed += page.entries.length;
          after = page.next;
        }
      }
    }
    expect(listed).toBeGreaterThan(250);

    const newest = { block: Number.MAX_SAFE_INTEGER, logIndex: Number.MAX_SAFE_INTEGER };
    const byValues = (rows: readonly DeliveredRow[]) =>
      new Set(rows.map((row) => JSON.stringify(Object.entries(row).toSorted())));
    for (const chainId of chainIds)
      expect(byValues(await postgres.readDelivered(chainId, newest, 1_000))).toEqual(
        byValues(await sqlite.readDelivered(chainId, newest, 1_000)),
      );

    expect(await postgres.changes.readSequence()).toBe(sqlite.changes.readSequence());
    for (const [after, limit] of [
      [0, 100_000],
      [57, 3],
      [100_000_000, 5],
    ] as const) {
      const { changed, ...changes } = await postgres.changes.readChanges(after, limit);
      const { changed: expected, ...rest } = await sqlite.changes.readChanges(after, limit);
      expect(changes).toEqual(rest);
      // A database returns the rows that it inserts or deletes in an order of its own.
      const withoutPlaces = (changes: readonly ChangedTransfer[]) =>
        new Set(changes.map(({ sequence: _, nonce: __, ...change }) => change));
      if (limit === 100_000) expect(withoutPlaces(changed)).toEqual(withoutPlaces(expected));
    }
  });

  test.each([
    ["are lost", "deallocate all", "26000"],
    ["return other types", "alter table sends alter column log_index type bigint", "0A000"],
  ])("statements are prepared by the server itself, not through a pooler, until they %s", async (_, change, code) => {
    const { sends, deliveries, chainIds } = createRandomEvents(createRandom(3), 50);
    const { direct, pooled } = await createDatabase();
    const index = await open(direct);
    await index.migrate();
    await writeEvents(index.store, { sends, deliveries }, chainIds);
    const { hashes } = listQueries({ sends, deliveries });
    async function readAll(reader: PostgresIndex["reader"]): Promise<readonly unknown[]> {
      const found: unknown[] = [];
      for (const hash of hashes) found.push(await reader.read((read) => read.findByTransactionHash(hash)));
      return found;
    }
    // One read after the other takes the same connection.
    const listPrepared = ({ read }: PostgresIndex["pools"]) =>
      read.query("select name from pg_prepared_statements order by name");

    const found = await readAll(index.reader);
    expect(await listPrepared(index.pools)).toContainEqual({ name: "transfersByHash" });
    const behindPooler = await open(pooled);
    expect(await readAll(behindPooler.reader)).toEqual(found);
    expect(await listPrepared(behindPooler.pools)).toEqual([]);
    await index.pools.read.query(change);
    const executed = index.pools.read.query(`execute "transfersByHash" ('')`);
    await expect(executed).rejects.toMatchObject({ code });
    expect(await readAll(index.reader)).toEqual(found);
    await index.pools.read.query("deallocate all");
    expect(await readAll(index.reader)).toEqual(found);
    expect(await listPrepared(index.pools)).toEqual([]);
  });

  test("pages of sends with the same time, transaction and key are exact", async () => {
    const { pooled } = await createDatabase();
    const postgres = await open(pooled);
    await postgres.migrate();
    const sends = createTiedSends();
    await writeEvents(postgres.store, { sends, deliveries: [] }, TIED_CHAIN_IDS);
    await expectExactPages((request) => postgres.reader.read((reader) => reader.readPage(request)), sends);
  });

  test("an index file is copied with everything that it knows, also after an interruption", async () => {
    const { sends, deliveries, chainIds } = createRandomEvents(createRandom(5), 300);
    const file = `${folder()}/copied`;
    const sqlite = await openIndex(file, network);
    cleanups.push(() => sqlite.close());
    await writeEvents(sqlite.store, { sends, deliveries }, chainIds);
    const postgres = await open((await createDatabase()).pooled);
    await postgres.migrate();
    const interrupted = new AbortController();
    const options = { file, index: postgres, network, onProgress: () => {}, signal: interrupted.signal };
    expect(await copyIndexFile({ ...options, onProgress: () => interrupted.abort() })).toBe(false);
    expect(await postgres.reader.read((reader) => reader.getCoverage("optimism"))).toBeUndefined();
    expect(await copyIndexFile({ ...options, signal: new AbortController().signal })).toBe(true);

    const { ids, hashes } = listQueries({ sends, deliveries });
    for (const id of ids.slice(0, 50))
      expect(await postgres.reader.read((reader) => reader.findByTransferId(id))).toEqual(
        sqlite.reader.findByTransferId(id),
      );
    for (const hash of hashes.slice(0, 50))
      expect(await postgres.reader.read((reader) => reader.findByTransactionHash(hash))).toEqual(
        sqlite.reader.findByTransactionHash(hash),
      );
    const [copied, original] = [
      await postgres.changes.readChanges(0, 100_000),
      await sqlite.changes.readChanges(0, 100_000),
    ];
    // Of the sends that one delivery may belong to, each database returns another one first.
    expect({ ...copied, changed: new Set(copied.changed) }).toEqual({
      ...original,
      changed: new Set(original.changed),
    });
    await expect(copyIndexFile({ ...options, signal: new AbortController().signal })).rejects.toThrow("not empty");
    // The sync goes on where the file ends.
    const cursor = await postgres.store.readCursor(10);
    expect(cursor).toEqual(await sqlite.store.readCursor(10));
  });

  test("a file is not copied while a replica follows the chains", async () => {
    const { pooled } = await createDatabase();
    const [replica, target] = [await open(pooled), await open(pooled)];
    await replica.migrate();
    const lease = await replica.leases.acquire("history.optimism");
    const options = { file: `${folder()}/unused`, network, onProgress: () => {}, signal: new AbortController().signal };
    await expect(copyIndexFile({ ...options, index: target })).rejects.toThrow(`process ${process.pid} is filling`);
    if ("release" in lease) await lease.release();
    expect(await copyIndexFile({ ...options, index: target })).toBe(true);
  });

  test("a lease has one holder, ends with its release, and is lost to a later holder", async () => {
    const { pooled, direct } = await createDatabase();
    const [first, second] = [await open(pooled), await open(pooled, { listenUrl: direct })];
    await first.migrate();
    await second.watch();
    const lease = await first.leases.acquire("follow");
    expect(await second.leases.acquire("follow")).toEqual({ pid: process.pid });
    if (!("release" in lease)) throw new Error("the lease is not free");
    // A waiting process is told of the release.
    const never = () => new Promise<void>(() => {});
    const woken = second.leases.waitForRelease(never, new AbortController().signal);
    await expect
      .poll(async () => {
        await lease.release();
        return Promise.race([woken.then(() => "woken"), new Promise((resolve) => setTimeout(resolve, 100, "waiting"))]);
      })
      .toBe("woken");
    const taken = await second.leases.acquire("follow");
    expect(taken).toHaveProperty("release");

    // Time passes without a heartbeat: another one takes over, and what the first one writes is refused.
    await sql`update leases set expires_at = now() - interval '1 second'`.execute(first.db);
    expect(await first.leases.acquire("follow")).toHaveProperty("release");
    const block = { number: 1, hash: `0x${"01".repeat(32)}`, timestamp: 1 };
    await expect(second.store.initializeCursor(10, block)).rejects.toThrow("another process has taken over");
    expect("lost" in taken && taken.lost.aborted).toBe(true);
    await first.store.initializeCursor(10, block);
    expect(await first.store.readCursor(10)).toMatchObject({ to_block: 1 });
  });

  test("changes are noticed within a poll when their notification is lost", async () => {
    const { pooled, direct } = await createDatabase();
    const [writer, listening, polling] = [
      await open(pooled),
      await open(pooled, { listenUrl: direct }),
      await open(pooled),
    ];
    await writer.migrate();
    for (const index of [listening, polling]) await index.watch();
    const block = { number: 50, hash: `0x${"01".repeat(32)}`, timestamp: 1 };
    for (const index of [listening, polling]) await expect.poll(() => index.monitor.isAvailable()).toBe(true);
    const changed = [listening, polling].map(
      (index) => new Promise<void>((resolve) => void index.changes.subscribe(resolve)),
    );
    const { sends, deliveries } = createRandomEvents(createRandom(6), 50);
    await writer.store.initializeCursor(10, block);
    const cursor = await writer.store.readCursor(10);
    if (cursor === undefined) throw new Error("no cursor");
    await writer.store.prepend(cursor, 0, 0, selectEvents({ sends, deliveries }, 10, 1, 50));
    await Promise.all(changed);
    expect(polling.getCoverage("optimism")).toMatchObject({ fromBlock: 0, toBlock: 50 });
  });

  test("several replicas that start at once create the tables once", async () => {
    const { pooled } = await createDatabase();
    const replicas = await Promise.all(Array.from({ length: 6 }, () => open(pooled)));
    await Promise.all(replicas.map((replica) => replica.migrate()));
    const rows = await sql<{ name: string }>`select name from index_migrations`.execute(replicas[0]?.db as never);
    expect(rows.rows.map(({ name }) => name).toSorted()).toEqual(MIGRATIONS.map(([name]) => name));
  });

  test("has the tables and columns of SQLite", async () => {
    const { pooled } = await createDatabase();
    const postgres = await open(pooled);
    await postgres.migrate();
    const sqlite = await openIndex(`${folder()}/schema`, network);
    sqlite.close();
    const { openSqlite, createKysely } = await import("../../src/transfers/index/store/sqlite/sqlite.js");
    const connection = await openSqlite(`${folder()}/schema`);
    cleanups.push(() => connection.close());
    const listColumns = (
      tables: readonly { name: string; columns: readonly { name: string; isNullable: boolean }[] }[],
    ) =>
      tables
        .filter(({ name }) => !["leases", "index_migrations"].includes(name))
        .flatMap(({ name, columns }) => columns.map((column) => `${name}.${column.name} ${column.isNullable}`))
        .toSorted();
    expect(listColumns(await postgres.db.introspection.getTables())).toEqual(
      listColumns(await createKysely(connection).introspection.getTables()),
    );
  });

  test("two versions of the service run side by side, and one that is too old refuses", async () => {
    const { pooled } = await createDatabase();
    const pool = await createPostgresPool(parseLocation(pooled), { maxConnections: 2, responseTimeoutMs: 10_000 });
    cleanups.push(() => pool.end());
    const db = createPostgresKysely<never>(pool);
    const old = await open(pooled);
    await old.migrate();
    const addColumn = [
      "2099-01-expand",
      { up: async (later: typeof db) => void (await sql`alter table sends add column note text`.execute(later)) },
    ] as const;
    const newer = [...MIGRATIONS, addColumn] as never;
    // The new version expands the tables; the old one keeps writing and reading, and starts again.
    const { sends, deliveries, chainIds } = createRandomEvents(createRandom(4), 100);
    await migrateDatabase(db, newer);
    await writeEvents(old.store, { sends, deliveries }, chainIds);
    const restarted = await open(pooled);
    await restarted.migrate();
    const id = listQueries({ sends, deliveries }).ids[0] ?? "";
    expect(await restarted.reader.read((reader) => reader.findByTransferId(id))).toHaveLength(1);
    await migrateDatabase(db, newer);
    // A later version removes what the old one uses: it says so in advance.
    const removeColumn = [
      "2099-02-contract",
      { up: async (later: typeof db) => void (await sql`alter table sends drop column note`.execute(later)) },
    ] as const;
    await migrateDatabase(db, [...MIGRATIONS, addColumn, removeColumn] as never, "2099-01-expand");
    await migrateDatabase(db, newer);
    await expect(restarted.migrate()).rejects.toThrow("newer version");
  });
});
