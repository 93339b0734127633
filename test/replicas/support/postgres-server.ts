import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { OPERATOR_KEY } from "../../support/service/planted-keys.js";
import { createServerProcess, findFreePort, giveFolder, runProgram, type ServerProcess } from "./server-process.js";
import { findServerUser, postgresPrograms } from "./server-programs.js";

/** The password of the only user: a planted key, for which all output is searched. */
export const POSTGRES_PASSWORD = OPERATOR_KEY;
export const POSTGRES_USER = "hop";

/** A PostgreSQL server in a temporary folder. */
export interface PostgresServer extends ServerProcess {
  readonly port: number;
  /** Returns the URL of a database. */
  url(database: string): string;
  /** Creates a database and returns its URL. */
  createDatabase(): Promise<string>;
  /** Runs SQL in a database of this server as its superuser. */
  query(sql: string, database?: string): Promise<readonly Record<string, unknown>[]>;
  /** Starts a standby that streams from this server. */
  startStandby(): Promise<PostgresServer>;
  /** Stops the server and removes its folder. */
  close(): Promise<void>;
}

/** Durable against the death of the server, which the tests cause; not against that of the machine. */
const SETTINGS = ["fsync=off", "max_connections=200", "shared_buffers=64MB", "wal_level=replica", "hot_standby=on"];

/** @param keptFolder folder whose data are used, created if they are missing, and kept; undefined: a temporary one */
export async function startPostgres(
  settings: readonly string[] = [],
  keptFolder: string | undefined = undefined,
): Promise<PostgresServer> {
  const user = findServerUser("postgres");
  const folder = keptFolder ?? (await mkdtemp(join(tmpdir(), "hop-postgres-")));
  await mkdir(folder, { recursive: true });
  const data = join(folder, "data");
  if (!existsSync(data)) await initializeData(folder, data, user);
  const server = await createServer(folder, data, settings, keptFolder !== undefined);
  await server.start();
  return server;
}

async function initializeData(folder: string, data: string, user: ReturnType<typeof findServerUser>): Promise<void> {
  await giveFolder(folder, user);
  const passwordFile = join(folder, "password");
  await writeFile(passwordFile, POSTGRES_PASSWORD, { mode: 0o644 });
  await runProgram(
    join(postgresPrograms ?? "", "initdb"),
    ["-D", data, "-U", POSTGRES_USER, "-A", "scram-sha-256", "--pwfile", passwordFile, "--no-sync", "-E", "UTF8"],
    { ...user, env: { LC_ALL: "C.UTF-8", PATH: process.env.PATH } },
  );
}

async function createServer(
  folder: string,
  data: string,
  settings: readonly string[],
  isKept = false,
): Promise<PostgresServer> {
  const user = findServerUser("postgres");
  const port = await findFreePort();
  const url = (database: string): string =>
    `postgres://${POSTGRES_USER}:${POSTGRES_PASSWORD}@127.0.0.1:${port}/${database}`;
  const options = [`port=${port}`, "listen_addresses=127.0.0.1", `unix_socket_directories=${folder}`];
  const server = createServerProcess({
    command: join(postgresPrograms ?? "", "postgres"),
    args: ["-D", data, ...[...options, ...SETTINGS, ...settings].flatMap((setting) => ["-c", setting])],
    user,
    logFile: join(folder, "log"),
    probe: () => query("select 1"),
  });

  async function query(sql: string, database = "postgres"): Promise<readonly Record<string, unknown>[]> {
    const client = new pg.Client({ connectionString: url(database), connectionTimeoutMillis: 5_000 });
    client.on("error", () => {});
    await client.connect();
    try {
      return (await client.query(sql)).rows ?? [];
    } finally {
      await client.end();
    }
  }

  let databases = 0;
  return {
    ...server,
    port,
    url,
    query,
    async createDatabase() {
      const name = `index_${process.pid}_${databases++}`;
      await query(`create database ${name}`);
      return url(name);
    },
    async startStandby() {
      const standbyFolder = await mkdtemp(join(tmpdir(), "hop-postgres-standby-"));
      await giveFolder(standbyFolder, user);
      const standbyData = join(standbyFolder, "data");
      await mkdir(standbyData, { mode: 0o700 });
      await giveFolder(standbyData, user);
      await runProgram(
        join(postgresPrograms ?? "", "pg_basebackup"),
        ["-D", standbyData, "-R", "--no-sync", "-c", "fast", "-d", url("postgres")],
        user,
      );
      const standby = await createServer(standbyFolder, standbyData, settings);
      await standby.start();
      return standby;
    },
    async close() {
      // SIGINT: it writes what is in memory, and waits for nobody.
      if (isKept) return server.stop("SIGINT");
      await server.kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
