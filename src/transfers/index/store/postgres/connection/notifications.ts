import type { Client, Notification } from "pg";
import { toDriverOptions } from "./connection.js";
import type { PostgresLocation } from "./location.js";

// Notifications wake readers earlier than their polls would. They need a session of their own, which a pooler that assigns
// servers per transaction does not give, and they may be lost: polling tells the truth.

/** Sent after a batch of changes. */
export const CHANGES_CHANNEL = "hop_index_changes";
/** Sent after a lease was released. */
export const LEASES_CHANNEL = "hop_index_leases";

export interface ListenerOptions {
  readonly location: PostgresLocation;
  /** Called for each notification, and after each new connection, since some may have been lost before it. */
  readonly onNotification: (channel: string) => void;
  /** Resolves when the time has passed or the signal fires. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly signal: AbortSignal;
}

const CONNECT_TIMEOUT_MS = 5_000;
const RETRY_INTERVAL_MS = 1_000;
/** Interval of a statement that proves that the connection still works. */
const PROBE_INTERVAL_MS = 15_000;

/** Listens with one connection until the signal fires, and connects again whenever it is lost. */
export async function listenForNotifications({
  location,
  onNotification,
  sleep,
  signal,
}: ListenerOptions): Promise<void> {
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
    await listen(client, onNotification, sleep, signal).catch(() => {});
    // A broken connection does not answer the request to end it.
    client.end().catch(() => {});
    if (!signal.aborted) await sleep(RETRY_INTERVAL_MS, signal);
  }
}

/** Resolves or rejects when the connection is lost. */
async function listen(
  client: Client,
  onNotification: ListenerOptions["onNotification"],
  sleep: ListenerOptions["sleep"],
  signal: AbortSignal,
): Promise<void> {
  let isLost = false;
  client.on("error", () => {
    isLost = true;
  });
  client.on("end", () => {
    isLost = true;
  });
  client.on("notification", ({ channel }: Notification) => onNotification(channel));
  await client.connect();
  await client.query(`listen ${CHANGES_CHANNEL}; listen ${LEASES_CHANNEL}`);
  onNotification(CHANGES_CHANNEL);
  while (!isLost && !signal.aborted) {
    await sleep(PROBE_INTERVAL_MS, signal);
    if (!signal.aborted) await client.query("select 1");
  }
}
