import type { Client, Notification } from "pg";
import { sleep } from "../../../resilience/clock.js";
import type { IndexTopic } from "./index-database.js";
import type { PostgresLocation } from "./postgres-location.js";
import { toDriverOptions } from "./postgres-pool.js";

// Notifications wake readers earlier than their polls would. They need a session of their own, which a pooler that assigns
// servers per transaction does not give, and they may be lost: polling tells the truth.

const CHANNEL_PREFIX = "hop_index_";
const CONNECT_TIMEOUT_MS = 5_000;
const RETRY_INTERVAL_MS = 1_000;
/** Interval of a statement that proves that the connection still works. */
const PROBE_INTERVAL_MS = 15_000;

/** Returns the statement that tells other processes. */
export function toNotifyStatement(topic: IndexTopic): string {
  return `notify ${CHANNEL_PREFIX}${topic}`;
}

/**
 * Listens with one connection until the signal fires, and connects again whenever it is lost.
 * @param onNotification called for each notification, and after each new connection, since some may have been lost before it
 */
export async function listenForNotifications(
  location: PostgresLocation,
  onNotification: (topic: IndexTopic) => void,
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
async function listen(client: Client, onNotification: (topic: IndexTopic) => void, signal: AbortSignal): Promise<void> {
  let isLost = false;
  const lose = (): void => {
    isLost = true;
  };
  client.on("error", lose);
  client.on("end", lose);
  client.on("notification", ({ channel }: Notification) =>
    onNotification(channel.slice(CHANNEL_PREFIX.length) as IndexTopic),
  );
  await client.connect();
  await client.query(`listen ${CHANNEL_PREFIX}changes; listen ${CHANNEL_PREFIX}leases`);
  onNotification("changes");
  while (!isLost && !signal.aborted) {
    await sleep(PROBE_INTERVAL_MS, signal);
    if (!signal.aborted) await client.query("select 1");
  }
}
