import type { Client } from "pg";
import { sleep } from "../../../resilience/clock.js";
import type { PostgresLocation } from "./postgres-location.js";
import { toDriverOptions } from "./postgres-pool.js";

// Notifications wake readers earlier than their polls would. They need a session of their own, which a pooler that assigns
// servers per transaction does not give, and they may be lost: polling tells the truth.

/** The channel on which processes tell each other that there are changes. */
export const CHANNEL = "hop_index_changes";
const CONNECT_TIMEOUT_MS = 5_000;
const RETRY_INTERVAL_MS = 1_000;
/** Interval of a statement that proves that the connection still works. */
const PROBE_INTERVAL_MS = 15_000;

/**
 * Listens with one connection until the signal fires, and connects again whenever it is lost.
 * @param onNotification called for each notification, and after each new connection, since some may have been lost before it
 */
export async function listenForNotifications(
  location: PostgresLocation,
  onNotification: () => void,
  signal: AbortSignal,
): Promise<void> {
  const pg = (await import("pg")).default;
  // Once: later the file with the certificates may be gone, or no file can be opened.
  const options = {
    ...toDriverOptions(location),
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: CONNECT_TIMEOUT_MS,
    keepAlive: true,
  };
  while (!signal.aborted) {
    const client = new pg.Client(options);
    await listen(client, onNotification, signal).catch(() => {});
    // A broken connection does not answer the request to end it.
    client.end().catch(() => {});
    if (!signal.aborted) await sleep(RETRY_INTERVAL_MS, signal);
  }
}

/** Resolves or rejects when the connection is lost. */
async function listen(client: Client, onNotification: () => void, signal: AbortSignal): Promise<void> {
  let isLost = false;
  const lose = (): void => {
    isLost = true;
  };
  client.on("error", lose);
  client.on("end", lose);
  client.on("notification", onNotification);
  await client.connect();
  await client.query(`listen ${CHANNEL}`);
  onNotification();
  while (!isLost && !signal.aborted) {
    await sleep(PROBE_INTERVAL_MS, signal);
    if (!signal.aborted) await client.query("select 1");
  }
}
