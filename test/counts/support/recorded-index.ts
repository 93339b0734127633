import pg from "pg";
import { vi } from "vitest";
import type { IndexReader } from "../../../src/transfers/index/index-reader.js";
import type { TransferIndex } from "../../../src/transfers/index/transfer-index.js";
import { createRandom, createRandomEvents, listQueries } from "../../support/index/random-events.js";
import { writeEvents } from "../../support/index/write-events.js";

const SENDS = 250;
const { chainIds, ...events } = createRandomEvents(createRandom(1), SENDS);
const { ids, hashes } = listQueries(events);

/** How many statements a look-up takes on average, over transfers of all kinds, many of which share a transaction or a key. */
export interface StatementCounts {
  readonly byId: number;
  readonly byHash: number;
  /** Of the transfer together with what the index covers, for a status that the index alone cannot tell. */
  readonly withCoverage: number;
}

/** Fills an empty index. */
export async function fillIndex({ store }: Pick<TransferIndex, "store">): Promise<void> {
  await writeEvents(store, events, chainIds);
}

/** @param executed what has been executed so far; it grows with each statement */
export async function countStatements(reader: IndexReader, executed: readonly unknown[]): Promise<StatementCounts> {
  async function count(values: readonly string[], find: (value: string) => unknown): Promise<number> {
    const before = executed.length;
    for (const value of values) await find(value);
    return (executed.length - before) / values.length;
  }
  return {
    byId: await count(ids, (id) => reader.findByTransferId(id)),
    byHash: await count(hashes, (hash) => reader.findByTransactionHash(hash)),
    withCoverage: await count(ids, (transferId) => reader.findCovered({ transferId, transactionHash: undefined })),
  };
}

/** Records what this process sends to PostgreSQL until the test ends: several statements of one message count as one. */
export function recordPostgresMessages(): readonly unknown[] {
  return vi.spyOn(pg.Client.prototype, "query").mock.calls;
}
