import { getNetwork } from "../hop/networks.js";
import { monotonicNow, sleep } from "../resilience/clock.js";
import type { PostgresIndexLocation } from "../transfers/index/store/postgres/connection/location.js";
import type { PostgresIndex } from "../transfers/index/store/postgres/postgres-index.js";

/**
 * Opens an index in PostgreSQL for a command, and creates its tables.
 * @throws IndexUnavailableError when the server cannot be used now
 */
export async function openPostgres(location: PostgresIndexLocation, signal: AbortSignal): Promise<PostgresIndex> {
  const { openPostgresIndex } = await import("../transfers/index/store/postgres/postgres-index.js");
  const index = await openPostgresIndex({
    ...{ location, network: getNetwork("mainnet"), now: monotonicNow, sleep, signal },
    onAvailability: () => {},
  });
  await index.migrate().catch(async (error: unknown) => {
    await index.close();
    throw error;
  });
  return index;
}
