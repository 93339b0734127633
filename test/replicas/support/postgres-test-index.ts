import { setTimeout as delay } from "node:timers/promises";
import { getNetwork } from "../../../src/hop/networks.js";
import { monotonicNow } from "../../../src/resilience/clock.js";
import {
  type PostgresLocation,
  parsePostgresUrl,
} from "../../../src/transfers/index/store/postgres/connection/location.js";
import { openPostgresIndex, type PostgresIndex } from "../../../src/transfers/index/store/postgres/postgres-index.js";

export function parseLocation(url: string): PostgresLocation {
  const location = parsePostgresUrl(url);
  if (location === undefined) throw new Error("the URL of the test is not valid");
  return location;
}

/** Opens an index as a replica does. */
export async function openTestPostgresIndex(
  url: string,
  options: { readonly listenUrl?: string; readonly readUrl?: string } = {},
): Promise<PostgresIndex> {
  const { listenUrl, readUrl } = options;
  const stopping = new AbortController();
  const index = await openPostgresIndex({
    location: {
      primary: parseLocation(url),
      read: readUrl === undefined ? undefined : parseLocation(readUrl),
      listen: listenUrl === undefined ? undefined : parseLocation(listenUrl),
      poolSize: 5,
      statementTimeoutMs: 10_000,
    },
    network: getNetwork("mainnet"),
    now: monotonicNow,
    sleep: (ms, signal) => delay(ms, undefined, { signal }).catch(() => {}),
    onAvailability: () => {},
    signal: stopping.signal,
  });
  return {
    ...index,
    close() {
      stopping.abort();
      return index.close();
    },
  };
}
