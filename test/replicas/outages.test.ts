import { afterAll, afterEach, beforeAll, describe, expect, inject, test, vi } from "vitest";
import { startGateway, type TestGateway } from "../support/service/in-process-gateway.js";
import { type PgBouncer, startPgBouncer } from "./support/pgbouncer.js";
import { type PostgresServer, startPostgres } from "./support/postgres-server.js";
import { leftOut, pgBouncerProgram, postgresPrograms } from "./support/server-programs.js";
import { startTcpSwitch, type TcpSwitch } from "./support/tcp-switch.js";

// Gateways over chains run by anvil, with an index in PostgreSQL: one through PgBouncer, one directly. Whatever happens to the
// server, quotes are unaffected and statuses are those of the chains.

const isLeftOut = postgresPrograms === undefined || pgBouncerProgram === undefined;
const { transfers } = inject("network");
const real = transfers.filter(({ expectedState }) => expectedState !== "NOT_FOUND");
const QUOTE = "/v1/quote?amount=1000000&token=USDC&fromChain=polygon&toChain=base&slippage=0.5&network=mainnet";

describe.skipIf(isLeftOut)(`an index in PostgreSQL${leftOut(postgresPrograms, pgBouncerProgram)}`, () => {
  let server: PostgresServer;
  let bouncer: PgBouncer;
  let network: TcpSwitch;
  let direct: URL;
  let database: string;
  const gateways: TestGateway[] = [];
  /** The chains' responses by form of the query: each form is a lookup of its own, which no cache answers. */
  const expected = {
    both: new Map<string, unknown>(),
    id: new Map<string, unknown>(),
    again: new Map<string, unknown>(),
  };

  beforeAll(async () => {
    const plain = await startGateway();
    for (const { transferId, transactionHash } of real) {
      const both = `transferId=${transferId}&transferHash=${transactionHash}`;
      const { body } = await plain.get(`/v1/transfer-status?${both}`);
      const { bondTransactionHash } = body as { bondTransactionHash: string };
      expected.both.set(both, body);
      // Only all chains together can tell whether a nonce identifies one transfer.
      if (!/^[0-9]+$/.test(transferId)) expected.id.set(`transferId=${transferId}`, body);
      if (bondTransactionHash !== "") expected.again.set(`transferHash=${bondTransactionHash}`, body);
    }
    await plain.stop();
    server = await startPostgres();
    bouncer = await startPgBouncer(server);
    network = await startTcpSwitch(server.port);
    direct = new URL(await server.createDatabase());
    database = direct.pathname.slice(1);
    // Until the index is filled, answers come from the chains, and are kept: each attempt takes a new gateway.
    await vi.waitFor(
      async () => {
        const gateway = await start(bouncer.url(database));
        await waitForDatabase(gateway, true);
        await new Promise((resolve) => setTimeout(resolve, 2_000));
        const sources = await ask(gateway, "both").finally(stopGateways);
        expect(sources).toEqual({ index: expected.both.size });
      },
      { timeout: 170_000, interval: 100 },
    );
  });
  afterEach(() => stopGateways());
  afterAll(async () => {
    await network?.close();
    await bouncer?.close();
    await server?.close();
  });

  async function start(url: string, more: Readonly<Record<string, string>> = {}): Promise<TestGateway> {
    const gateway = await startGateway({ INDEX: url, INDEX_FROM: "2020-01-01", ...more });
    gateways.push(gateway);
    return gateway;
  }

  async function stopGateways(): Promise<void> {
    await Promise.all(gateways.splice(0).map((gateway) => gateway.stop()));
  }

  function urlThroughSwitch(): string {
    const url = new URL(direct);
    url.port = String(network.port);
    return url.href;
  }

  /**
   * Asks for every status once, and returns how many came from each source. Each must be that of the chains.
   */
  async function ask(gateway: TestGateway, form: keyof typeof expected): Promise<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const [query, answer] of expected[form]) {
      const { status, body, headers } = await gateway.get(`/v1/transfer-status?${query}`);
      expect({ query, status, body: withoutSiblings(body) }).toEqual({
        query,
        status: 200,
        body: withoutSiblings(answer),
      });
      const source = headers.get("source") ?? "";
      counts[source] = (counts[source] ?? 0) + 1;
    }
    return counts;
  }

  /** A lookup of a second, as on a busy machine, is left to the chains. */
  async function expectFromIndex(gateway: TestGateway, form: keyof typeof expected): Promise<void> {
    const { index = 0 } = await ask(gateway, form);
    expect(index).toBeGreaterThan(expected[form].size / 2);
  }

  async function waitForDatabase(gateway: TestGateway, isUp: boolean): Promise<void> {
    const readMetric = async (): Promise<string | undefined> =>
      /^hop_gateway_index_database_up (\d)$/m.exec(await (await fetch(gateway.metricsUrl)).text())?.[1];
    await vi.waitFor(async () => expect(await readMetric()).toBe(isUp ? "1" : "0"), { timeout: 60_000, interval: 50 });
  }

  test("gives the answers of the chains through a pooler and without it", async () => {
    for (const url of [bouncer.url(database), direct.href]) {
      const gateway = await start(url, { INDEX_LISTEN_URL: direct.href });
      await waitForDatabase(gateway, true);
      for (const form of ["both", "id", "again"] as const) await expectFromIndex(gateway, form);
    }
  });

  test("a server that is killed and started again under load changes no answer", async () => {
    const started = [await start(bouncer.url(database), { INDEX_LISTEN_URL: direct.href }), await start(direct.href)];
    for (const gateway of started) await waitForDatabase(gateway, true);
    const loads = started.map(startLoad);
    for (const gateway of started) await ask(gateway, "both");
    await server.kill();
    // The first lookups find out.
    for (const gateway of started) expect(await ask(gateway, "id")).toEqual({ chain: expected.id.size });
    await server.start();
    const began = performance.now();
    for (const gateway of started) await waitForDatabase(gateway, true);
    process.stdout.write(`PostgreSQL is used ${Math.round(performance.now() - began)} ms after it answers again\n`);
    for (const gateway of started) await expectFromIndex(gateway, "again");
    for (const stop of loads) expect(await stop()).toEqual([]);
  });

  test("a server that stops answering without closing connections changes no answer", async () => {
    const gateway = await start(urlThroughSwitch());
    await waitForDatabase(gateway, true);
    const stopLoad = startLoad(gateway);
    network.hold();
    expect(await ask(gateway, "id")).toEqual({ chain: expected.id.size });
    network.resume();
    await waitForDatabase(gateway, true);
    await expectFromIndex(gateway, "again");
    expect(await stopLoad()).toEqual([]);
  });

  test("a lookup does not wait for a lock", async () => {
    const gateway = await start(bouncer.url(database));
    await waitForDatabase(gateway, true);
    const blocked = server.query(
      "begin; lock table sends in access exclusive mode; select pg_sleep(6); commit",
      database,
    );
    await vi.waitFor(
      async () => {
        const rows = await server.query("select 1 from pg_locks where mode = 'AccessExclusiveLock' and granted");
        expect(rows.length).toBeGreaterThan(0);
      },
      { timeout: 60_000 },
    );
    const [[query = "", answer] = []] = expected.id;
    const { headers, body } = await gateway.get(`/v1/transfer-status?${query}`);
    expect([headers.get("source"), withoutSiblings(body)]).toEqual(["chain", withoutSiblings(answer)]);
    await blocked;
    await waitForDatabase(gateway, true);
    await expectFromIndex(gateway, "again");
  });

  test("a server that cannot write answers what it knows, and the chains the rest", async () => {
    const gateway = await start(bouncer.url(database));
    await waitForDatabase(gateway, true);
    await server.query(
      `create function refuse() returns trigger language plpgsql as $$ begin raise exception using errcode = '53100'; end $$;
       create trigger refuse before insert or update on cursors for each row execute function refuse()`,
      database,
    );
    await ask(gateway, "id");
    await server.query("drop trigger refuse on cursors; drop function refuse()", database);
    await server.query(`alter database ${database} set default_transaction_read_only = on`);
    await bouncer.kill();
    await bouncer.start();
    await waitForDatabase(gateway, true);
    await ask(gateway, "again");
    await server.query(`alter database ${database} reset default_transaction_read_only`);
    await bouncer.kill();
    await bouncer.start();
  });

  test("a standby takes over", async () => {
    const gateway = await start(urlThroughSwitch());
    await waitForDatabase(gateway, true);
    const standby = await server.startStandby();
    try {
      const stopLoad = startLoad(gateway);
      await server.kill();
      expect(await ask(gateway, "id")).toEqual({ chain: expected.id.size });
      await standby.query("select pg_promote()");
      const began = performance.now();
      network.switchTo(standby.port);
      await waitForDatabase(gateway, true);
      process.stdout.write(`the standby is used ${Math.round(performance.now() - began)} ms after it can be reached\n`);
      await expectFromIndex(gateway, "again");
      expect(await stopLoad()).toEqual([]);
    } finally {
      await stopGateways();
      await standby.close();
      network.switchTo(server.port);
      await server.start();
    }
  });

  test("requests read from a standby, which does not take part in writing", async () => {
    const standby = await server.startStandby();
    try {
      const gateway = await start(bouncer.url(database), { INDEX_READ_URL: standby.url(database) });
      await waitForDatabase(gateway, true);
      await expectFromIndex(gateway, "again");
      // The primary is not read in its place.
      await standby.kill();
      expect(await ask(gateway, "id")).toEqual({ chain: expected.id.size });
    } finally {
      await stopGateways();
      await standby.close();
    }
  });

  test("a server that is away at the start delays only the index", async () => {
    await server.kill();
    const gateway = await start(direct.href);
    expect((await gateway.get(QUOTE)).status).toBe(200);
    expect(await ask(gateway, "id")).toEqual({ chain: expected.id.size });
    await server.start();
    await waitForDatabase(gateway, true);
    await expectFromIndex(gateway, "again");
  });

  test.each([
    ["a wrong password", (url: string) => url.replace(/:[^:@/]+@/, ":wrong@"), "the password is wrong (28P01)"],
    ["an unknown database", (url: string) => url.replace(/\/[^/]*$/, "/none"), "the database does not exist (3D000)"],
  ])("%s ends the start, and the message contains no part of the URL", async (_, change, message) => {
    const failure = startGateway({ INDEX: change(server.url(database)) });
    await expect(failure).rejects.toThrow(message);
    await expect(failure).rejects.not.toThrow(/127\.0\.0\.1|postgres:\/\//);
  });
});

/** Asks for quotes, one after the other, until it is stopped. @returns a function that stops it and returns the failures */
function startLoad(gateway: TestGateway): () => Promise<unknown[]> {
  const failures: unknown[] = [];
  let isStopped = false;
  const work = (async () => {
    while (!isStopped) {
      const { status, body } = await gateway.get(QUOTE);
      if (status !== 200) failures.push(body);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })();
  return async () => {
    isStopped = true;
    await work;
    return failures;
  };
}

function withoutSiblings(body: unknown): unknown {
  return { ...(body as object), otherTransferIds: [] };
}
