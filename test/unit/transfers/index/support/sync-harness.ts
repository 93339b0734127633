import { setMaxListeners } from "node:events";
import { setImmediate } from "node:timers/promises";
import { openSqlite } from "../../../../../src/transfers/index/database/sqlite-database.js";
import { ChainIndexReader } from "../../../../../src/transfers/index/sync/chain-index-reader.js";
import { RealtimeSync } from "../../../../../src/transfers/index/sync/realtime-sync.js";
import type { TransferIndex } from "../../../../../src/transfers/index/transfer-index.js";
import type { ChainStub } from "../../../../support/stubs/chain-stub.js";
import { getChain, mainnetNetwork } from "./hop-events.js";

/** The realtime sync of one chain on a clock that the test controls. */
export interface SyncHarness {
  /** Requested pauses so far, in milliseconds. */
  readonly pauses: readonly number[];
  readonly errors: readonly unknown[];
  /** Depths of the reported reorgs. */
  readonly reorgs: readonly number[];
  /** Resolves when the sync is sleeping. */
  waitUntilIdle(): Promise<void>;
  /** Moves the clock, ends the pause and resolves when the next pause begins. */
  advance(ms?: number): Promise<void>;
  stop(): Promise<void>;
}

export function startSync(index: TransferIndex, stub: ChainStub, startedAt = 1_800_000_000_000): SyncHarness {
  const stopping = new AbortController();
  // One listener per pause.
  setMaxListeners(0, stopping.signal);
  const pauses: number[] = [];
  const errors: unknown[] = [];
  const reorgs: number[] = [];
  let now = startedAt;
  let wake: (() => void) | undefined;
  const options: ConstructorParameters<typeof RealtimeSync>[2] = {
    wallNow: () => now,
    monotonicNow: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        pauses.push(ms);
        wake = resolve;
        signal.addEventListener("abort", () => resolve(), { once: true });
      }),
    onError: (_, error) => errors.push(error),
    onReorg: (_, depth) => reorgs.push(depth),
  };
  const indexed = new ChainIndexReader(mainnetNetwork, getChain(stub.client.slug), stub.client);
  const done = new RealtimeSync(indexed, index.store, options, stopping.signal).run();

  async function waitUntilIdle(): Promise<void> {
    while (wake === undefined) await setImmediate();
  }

  return {
    pauses,
    errors,
    reorgs,
    waitUntilIdle,
    async advance(ms = 2_000) {
      await waitUntilIdle();
      now += ms;
      const endPause = wake;
      wake = undefined;
      endPause?.();
      await waitUntilIdle();
    },
    async stop() {
      stopping.abort();
      await done;
    },
  };
}

/** Reads all rows that describe the chains; `first_timestamp` describes the reorgs that the index has seen. */
export async function readAllRows(file: string) {
  const connection = await openSqlite(file, { readOnly: true });
  try {
    const readTable = (table: string, order: string) =>
      connection.prepare(`select * from ${table} order by ${order}`).all();
    return {
      sends: readTable("sends", "chain_id, block_number, log_index").map(withoutFirstTimestamp),
      deliveries: readTable("deliveries", "chain_id, block_number, log_index"),
      cursors: readTable("cursors", "chain_id"),
      blocks: readTable("blocks", "chain_id, number"),
    };
  } finally {
    connection.close();
  }
}

function withoutFirstTimestamp(row: unknown): unknown {
  const { first_timestamp: _, ...others } = row as Record<string, unknown>;
  return others;
}
