import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type PgBouncer, startPgBouncer } from "./support/pgbouncer.js";
import { type PostgresServer, startPostgres } from "./support/postgres-server.js";
import { leftOut, pgBouncerProgram, postgresPrograms } from "./support/server-programs.js";

const isLeftOut = postgresPrograms === undefined || pgBouncerProgram === undefined;

describe.skipIf(isLeftOut)(`the servers of these tests${leftOut(postgresPrograms, pgBouncerProgram)}`, () => {
  let server: PostgresServer;
  let bouncer: PgBouncer;

  beforeAll(async () => {
    server = await startPostgres();
    bouncer = await startPgBouncer(server);
  });
  afterAll(async () => {
    await bouncer?.close();
    await server?.close();
  });

  test("PostgreSQL starts again after it was killed, with what was committed", async () => {
    await server.query("create table kept (id int)");
    await server.kill();
    expect(server.isRunning()).toBe(false);
    await server.start();
    expect(await server.query("select count(*)::int as count from kept")).toEqual([{ count: 0 }]);
  });

  test("a standby follows the server and takes over", async () => {
    const standby = await server.startStandby();
    try {
      await server.query("create table replicated (id int)");
      await expect.poll(() => standby.query("select * from replicated").catch(() => undefined)).toEqual([]);
      await expect(standby.query("create table refused (id int)")).rejects.toThrow("read-only");
      await standby.query("select pg_promote()");
      await standby.query("create table accepted (id int)");
    } finally {
      await standby.close();
    }
  });
});
