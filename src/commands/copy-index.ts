import { StartupError } from "../app/startup/startup-error.js";
import { ConfigError, loadConfig } from "../config/config.js";
import { getNetwork } from "../hop/networks.js";
import { IndexUnavailableError } from "../transfers/index/store/index-unavailable-error.js";
import type { PostgresIndexLocation } from "../transfers/index/store/postgres/connection/location.js";
import { copyIndexFile } from "../transfers/index/store/postgres/copy-file.js";
import { openPostgres } from "./open-postgres.js";

/** Rows between two lines of progress. */
const ROWS_PER_LINE = 100_000;

async function copy(file: string, location: PostgresIndexLocation, signal: AbortSignal): Promise<boolean> {
  const index = await openPostgres(location, signal);
  try {
    return await copyIndexFile({
      ...{ file, index, network: getNetwork("mainnet"), signal },
      onProgress: (table, rows) => {
        if (rows % ROWS_PER_LINE === 0) process.stdout.write(`${table}: ${rows} rows\n`);
      },
    });
  } finally {
    await index.close();
  }
}

/**
 * Copies an index file to the empty index in PostgreSQL that INDEX names.
 * @returns the exit code
 */
export async function runCopy(file: string, environment: NodeJS.ProcessEnv): Promise<number> {
  const { index } = loadConfig(environment);
  if (index?.location.kind !== "postgres") throw new ConfigError(["INDEX is not postgres://..."]);
  const interruption = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"]) {
    process.on(name, () => (interruption.signal.aborted ? process.exit(1) : interruption.abort()));
  }
  const isComplete = await copy(file, index.location, interruption.signal).catch((error: unknown) => {
    throw error instanceof IndexUnavailableError ? new StartupError(error.message) : error;
  });
  process.stdout.write(isComplete ? "the index is copied\n" : "interrupted; start the command again to begin anew\n");
  return isComplete ? 0 : 1;
}
