import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { POSTGRES_PASSWORD, POSTGRES_USER, type PostgresServer } from "./postgres-server.js";
import { createServerProcess, findFreePort, giveFolder, type ServerProcess } from "./server-process.js";
import { findServerUser, pgBouncerProgram } from "./server-programs.js";

/** PgBouncer with transaction pooling in front of a server. */
export interface PgBouncer extends ServerProcess {
  url(database: string): string;
  close(): Promise<void>;
}

export async function startPgBouncer(server: PostgresServer): Promise<PgBouncer> {
  const user = findServerUser("postgres");
  const folder = await mkdtemp(join(tmpdir(), "hop-pgbouncer-"));
  await giveFolder(folder, user);
  const port = await findFreePort();
  const users = join(folder, "users.txt");
  const settings = join(folder, "pgbouncer.ini");
  await writeFile(users, `"${POSTGRES_USER}" "${POSTGRES_PASSWORD}"\n`);
  await writeFile(
    settings,
    `[databases]
* = host=127.0.0.1 port=${server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${users}
pool_mode = transaction
default_pool_size = 5
max_client_conn = 200
server_login_retry = 1
`,
  );
  const url = (database: string): string =>
    `postgres://${POSTGRES_USER}:${POSTGRES_PASSWORD}@127.0.0.1:${port}/${database}`;
  const bouncer = createServerProcess({
    command: pgBouncerProgram ?? "",
    args: [settings],
    user,
    logFile: join(folder, "log"),
    async probe() {
      const client = new pg.Client({ connectionString: url("postgres"), connectionTimeoutMillis: 5_000 });
      client.on("error", () => {});
      await client.connect();
      await client.end();
    },
  });
  await bouncer.start();
  return {
    ...bouncer,
    url,
    async close() {
      await bouncer.kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
