import { sql } from "kysely";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { MaybePromise } from "../../src/resilience/maybe-async.js";
import type { ChangedTransfer } from "../../src/transfers/index/change-feed.js";
import type { IndexDatabase } from "../../src/transfers/index/database/index-database.js";
import { MIGRATIONS, type Migrations, migrateIndex } from "../../src/transfers/index/database/migrations.js";
import type { PostgresDatabase } from "../../src/transfers/index/database/postgres-database.js";
import type { IndexReader } from "../../src/transfers/index/index-reader.js";
import type { ListPosition, TransferPage } from "../../src/transfers/index/list/page-statement.js";
import { LIST_START } from "../../src/transfers/index/list/transfer-lister.js";
import type { DeliveredRow } from "../../src/transfers/index/statements.js";
import type { TransferIndex } from "../../src/transfers/index/transfer-index.js";
import { holdLease } from "../support/index/hold-lease.js";
import { openIndex } from "../support/index/open-index.js";
import { createTiedSends, expectExactPages, PAGE_FILTERS, TIED_CHAIN_IDS } from "../support/index/paging.js";
import { createRandom, createRandomEvents, listQueries, selectEvents } from "../support/index/random-events.js";
import { listExpectedTrees } from "../support/index/transfer-trees.js";
import { writeEvents } from "../support/index/write-events.js";
import { useTemporaryFolder } from "../support/temporary-folder.js";
import { type PgBouncer, startPgBouncer } from "./support/pgbouncer.js";
import { type PostgresServer, startPostgres } from "./support/postgres-server.js";
import { openTestPostgresIndex, type ServerIndex } from "./support/postgres-test-index.js";
import { leftOut, pgBouncerProgram, postgresPrograms } from "./support/server-programs.js";

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

  async function open(url: string, options?: Parameters<typeof openTestPostgresIndex>[1]): Promise<ServerIndex> {
    const opened = await openTestPostgresIndex(url, options);
    cleanups.push(() => opened.index.close());
    return opened;
  }

  test.each([
    [1, "pooled"],
    [2, "direct"],
  ] as const)("gives the answers of SQLite for every ID, hash and account, seed %i, %s", async (seed, connection) => {
    const { chainIds, ...events } = createRandomEvents(createRandom(seed), 250);
    const { [connection]: url } = await createDatabase();
    const [{ index: postgres }, sqlite] = [await open(url), await openIndex(`${folder()}/equal-${seed}`)];
    cleanups.push(() => sqlite.close());
    await postgres.migrate();
    for (const { store } of [postgres, sqlite]) await writeEvents(store, events, chainIds);

    const { ids, hashes, accounts } = listQueries(events);
    let found = 0;
    async function compare(query: (reader: IndexReader) => MaybePromise<readonly unknown[]>): Promise<void> {
      const expected = await query(sqlite.reader);
      expect(await query(postgres.reader)).toEqual(expected);
      found += expected.length;
    }
    for (const id of ids) await compare((reader) => reader.findByTransferId(id));
    for (const hash of hashes) await compare((reader) => reader.findByTransactionHash(hash));
    for (const transferId of ids) {
      const query = { transferId, transactionHash: undefined };
      await compare(async (reader) => (await reader.findCovered(query)).transfers);
    }
    await compare(async (reader) => [...(await reader.readCoverage())].toSorted());
    expect(found).toBeGreaterThan(500);

    let listed = 0;
    for (const [i, account] of accounts.entries()) {
      for (const filter of i < 2 ? PAGE_FILTERS : PAGE_FILTERS.slice(0, 1)) {
        for (let after: ListPosition | undefined = LIST_START; after !== undefined; ) {
          const rows = filter === PAGE_FILTERS[0] ? 7 : 80;
          const request = { account, after, rows, limit: Math.min(rows, 30), filter };
          const page: TransferPage = await sqlite.reader.readPage(request);
          expect(await postgres.reader.readPage(request)).toEqual(page);
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
      expect(byValues(await postgres.reader.readDelivered(chainId, newest, 1_000))).toEqual(
        byValues(await sqlite.reader.readDelivered(chainId, newest, 1_000)),
      );

    const trees = listExpectedTrees(events);
    expect(trees.filter(({ tree }) => tree?.commit !== undefined).length).toBeGreaterThan(20);
    for (const { query, tree } of trees) expect(await postgres.reader.readTree(query)).toEqual(tree);

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
    const { chainIds, ...events } = createRandomEvents(createRandom(3), 50);
    const { direct, pooled } = await createDatabase();
    const { index, database } = await open(direct);
    await index.migrate();
    await writeEvents(index.store, events, chainIds);
    const { hashes } = listQueries(events);
    async function readAll({ reader }: TransferIndex): Promise<readonly unknown[]> {
      const found: unknown[] = [];
      for (const hash of hashes) found.push(await reader.findByTransactionHash(hash));
      return found;
    }
    // One read after the other takes the same connection.
    const listPrepared = async ({ pools: { read } }: PostgresDatabase) => {
      const { rows } = await read.query<{ name: string }>(
        `select name from pg_prepared_statements where statement like '%from "sends"%'`,
      );
      return rows.map(({ name }) => name);
    };

    const found = await readAll(index);
    const [prepared = ""] = await listPrepared(database);
    expect(prepared).not.toBe("");
    const behindPooler = await open(pooled);
    expect(await readAll(behindPooler.index)).toEqual(found);
    expect(await listPrepared(behindPooler.database)).toEqual([]);
    await database.pools.read.query(change);
    await expect(database.pools.read.query(`execute "${prepared}" ('')`)).rejects.toMatchObject({ code });
    expect(await readAll(index)).toEqual(found);
    await database.pools.read.query("deallocate all");
    expect(await readAll(index)).toEqual(found);
    expect(await listPrepared(database)).toEqual([]);
  });

  test("pages of sends with the same time, transaction and key are exact", async () => {
    const { pooled } = await createDatabase();
    const { index: postgres } = await open(pooled);
    await postgres.migrate();
    const sends = createTiedSends();
    await writeEvents(postgres.store, { sends, deliveries: [], commits: [] }, TIED_CHAIN_IDS);
    await expectExactPages(async (request) => postgres.reader.readPage(request), sends);
  });

  test("a lease has one holder, ends with its release, and is lost to a later holder", async () => {
    const { pooled, direct } = await createDatabase();
    const [{ index: first, database }, { index: second }] = [
      await open(pooled),
      await open(pooled, { listenUrl: direct }),
    ];
    await first.migrate();
    await second.watch();
    const lease = await holdLease(first.leases);
    const [held, stopping] = [new AbortController(), new AbortController()];
    cleanups.push(() => stopping.abort());
    const taken = new Promise<AbortSignal>((resolve) => {
      const listener = {
        onLeaseHeld: () => held.abort(),
        onError: (error: unknown) => expect.unreachable(String(error)),
      };
      void second.leases.run("follow", listener, stopping.signal, async (lost) => {
        resolve(lost);
        await new Promise((end) => lost.addEventListener("abort", end));
      });
    });
    await expect.poll(() => held.signal.aborted).toBe(true);
    await lease.release();
    const lost = await taken;
    await expect(holdLease(first.leases)).rejects.toEqual({ pid: process.pid });

    // Time passes without a heartbeat: another one takes over, and what the first one writes is refused.
    await sql`update leases set expires_at = now() - interval '1 second'`.execute(database.builder);
    await holdLease(first.leases);
    const block = { number: 1, hash: `0x${"01".repeat(32)}`, timestamp: 1 };
    await expect(second.store.initializeCursor(10, block)).rejects.toThrow("another process has taken over");
    expect(lost.aborted).toBe(true);
    await first.store.initializeCursor(10, block);
    expect(await first.store.readCursor(10)).toMatchObject({ to_block: 1 });
  });

  test("changes are noticed within a poll when their notification is lost", async () => {
    const { pooled, direct } = await createDatabase();
    const { index: writer } = await open(pooled);
    await writer.migrate();
    const [listening, polling] = [await open(pooled, { listenUrl: direct }), await open(pooled)];
    for (const { index } of [listening, polling]) await index.watch();
    for (const { database } of [listening, polling]) expect(database.getServerStatus().isAvailable).toBe(true);
    const block = { number: 50, hash: `0x${"01".repeat(32)}`, timestamp: 1 };
    const changed = [listening, polling].map(
      ({ index }) => new Promise<void>((resolve) => void index.changes.subscribe(resolve)),
    );
    const events = createRandomEvents(createRandom(6), 50);
    await writer.store.initializeCursor(10, block);
    const cursor = await writer.store.readCursor(10);
    if (cursor === undefined) throw new Error("no cursor");
    await writer.store.prepend(cursor, { number: 0, timestamp: 0 }, selectEvents(events, 10, 1, 50));
    await Promise.all(changed);
    expect(polling.index.getCoverage("optimism")).toMatchObject({ fromBlock: 0, toBlock: 50 });
  });

  test("commits are filled into an index of a version without them", async () => {
    const { pooled } = await createDatabase();
    const { index, database } = await open(pooled);
    await migrateIndex(database, MIGRATIONS.slice(0, -1));
    await index.migrate();
    const { chainIds, ...events } = createRandomEvents(createRandom(7), 250);
    await writeEvents(index.store, events, chainIds);
    const forget = ["update sends set transfer_nonce = null, tree_index = null", "delete from commits"];
    for (const statement of [...forget, "update cursors set commits_from_block = 0, commits_to_block = -1"])
      await sql.raw(statement).execute(database.builder);
    const trees = listExpectedTrees(events).filter(({ tree }) => tree !== undefined);
    for (const { query } of trees) expect(await index.reader.readTree(query)).toBeUndefined();
    for (const chainId of chainIds) {
      await index.store.beginCommits(chainId);
      for (const from of [60, 0]) {
        const cursor = await index.store.readCursor(chainId);
        if (cursor === undefined) throw new Error("no cursor");
        const { sends, commits } = selectEvents(events, chainId, from, cursor.commits_from_block - 1);
        const leaves = sends.filter(({ kind }) => kind === "l2");
        await index.store.fillCommits(cursor, Math.max(from, cursor.from_block), leaves, commits);
      }
    }
    for (const { query, tree } of trees) expect(await index.reader.readTree(query)).toEqual(tree);
  });

  test("several replicas that start at once create the tables once", async () => {
    const { pooled } = await createDatabase();
    const replicas = await Promise.all(Array.from({ length: 6 }, () => open(pooled)));
    await Promise.all(replicas.map(({ index }) => index.migrate()));
    const rows = await sql<{ name: string }>`select name from index_migrations`.execute(
      (await open(pooled)).database.builder,
    );
    expect(rows.rows.map(({ name }) => name).toSorted()).toEqual(MIGRATIONS.map(([name]) => name));
  });

  test("a migration may take longer than other statements", async () => {
    const { pooled } = await createDatabase();
    const { database } = await open(pooled, { statementTimeoutMs: 100 });
    const slow: Migrations[number] = ["2099-01-slow", async (db) => void (await sql`select pg_sleep(1.5)`.execute(db))];
    await migrateIndex(database, [...MIGRATIONS, slow]);
    const done = await sql`select name from index_migrations`.execute(database.builder);
    expect(done.rows).toHaveLength(MIGRATIONS.length + 1);
  });

  test("a migration that was refused the lock leaves a usable connection", async () => {
    const { direct } = await createDatabase();
    const name = new URL(direct).pathname.slice(1);
    await server.query(`alter database ${name} set lock_timeout = 100`);
    const [{ database: holder }, { index }] = [await open(direct), await open(direct)];
    await holder.migrate(async () => {
      await expect(index.migrate()).rejects.toMatchObject({ code: "55P03" });
    });
    await index.migrate();
    expect(await index.store.readCursor(10)).toBeUndefined();
  });

  test("has the tables and columns of SQLite", async () => {
    const { pooled } = await createDatabase();
    const { index, database } = await open(pooled);
    await index.migrate();
    const sqlite = await openIndex(`${folder()}/schema`);
    cleanups.push(() => sqlite.close());
    const listColumns = async ({ builder }: IndexDatabase) =>
      (await builder.introspection.getTables())
        .flatMap(({ name, columns }) => columns.map((column) => `${name}.${column.name} ${column.isNullable}`))
        .toSorted();
    expect(await listColumns(database)).toEqual(await listColumns(sqlite.database));
  });

  test("two versions of the service run side by side, and one that is too old refuses", async () => {
    const { pooled } = await createDatabase();
    const { index: old, database } = await open(pooled);
    await old.migrate();
    const addColumn: Migrations[number] = [
      "2099-01-expand",
      async (db) => void (await sql`alter table sends add column note text`.execute(db)),
    ];
    const newer = [...MIGRATIONS, addColumn];
    // The new version expands the tables; the old one keeps writing and reading, and starts again.
    const { chainIds, ...events } = createRandomEvents(createRandom(4), 100);
    await migrateIndex(database, newer);
    await writeEvents(old.store, events, chainIds);
    const { index: restarted } = await open(pooled);
    await restarted.migrate();
    const id = listQueries(events).ids[0] ?? "";
    expect(await restarted.reader.findByTransferId(id)).toHaveLength(1);
    await migrateIndex(database, newer);
    // A later version removes what the old one uses: it says so in advance.
    const removeColumn: Migrations[number] = [
      "2099-02-contract",
      async (db) => void (await sql`alter table sends drop column note`.execute(db)),
    ];
    await migrateIndex(database, [...newer, removeColumn], "2099-01-expand");
    await migrateIndex(database, newer);
    await expect(restarted.migrate()).rejects.toThrow("newer version");
  });
});
