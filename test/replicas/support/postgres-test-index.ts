import { getNetwork } from "../../../src/hop/networks.js";
import {
  openPostgresDatabase,
  type PostgresDatabase,
} from "../../../src/transfers/index/database/postgres-database.js";
import { type PostgresLocation, parsePostgresUrl } from "../../../src/transfers/index/database/postgres-location.js";
import { TransferIndex } from "../../../src/transfers/index/transfer-index.js";

/** An index of mainnet on a server. */
export interface ServerIndex {
  readonly index: TransferIndex;
  readonly database: PostgresDatabase;
}

export function parseLocation(url: string): PostgresLocation {
  const location = parsePostgresUrl(url);
  if (location === undefined) throw new Error("the URL of the test is not valid");
  return location;
}

/** Opens an index as a replica does. */
export async function openTestPostgresIndex(
  url: string,
  {
    listenUrl,
    readUrl,
    statementTimeoutMs = 10_000,
  }: { readonly listenUrl?: string; readonly readUrl?: string; readonly statementTimeoutMs?: number } = {},
): Promise<ServerIndex> {
  const location = {
    primary: parseLocation(url),
    read: readUrl === undefined ? undefined : parseLocation(readUrl),
    listen: listenUrl === undefined ? undefined : parseLocation(listenUrl),
    poolSize: 5,
    statementTimeoutMs,
  };
  const database = await openPostgresDatabase(location, () => {});
  return { database, index: new TransferIndex(database, getNetwork("mainnet")) };
}
