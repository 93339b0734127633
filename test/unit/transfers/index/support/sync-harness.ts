import { setMaxListeners } from "node:events";
import { setImmediate } from "node:timers/promises";
import type { IndexHandle } from "../../../../../src/transfers/index/store/open-index.js";
import { openSqlite } from "../../../../../src/transfers/index/store/sqlite.js";
import { createIndexedChain } from "../../../../../src/transfers/index/sync/indexed-chain.js";
import { syncChainRealtime } from "../../../../../src/transfers/index/sync/realtime-sync.js";
import type { ChainStub } from "../../../../support/stubs/chain-stub.js";
import { getChain, mainnetNetwork } from "./hop-events.js";

/** One chain being followed on clocks of the test. */
export interface SyncHarness {
  /** Pauses that were asked for so far, in milliseconds. */
  readonly pauses: readonly number[];
  readonly errors: readonly unknown[];
  /** Depths of the reorgs seen. */
  readonly reorgs: readonly number[];
  /** Resolves when it has nothing to do but wait. */
  waitUntilIdle(): Promise<void>;
  /** Ends the pause, so much later on the clocks, and resolves when the next one begins. */
  advance(ms?: number): Promise<void>;
  stop(): Promise<void>;
}

export function startSync(index: IndexHandle, stub: ChainStub, startedAt = 1_800_000_000_000): SyncHarness {
  const stopping = new AbortController();
  // One for each pause.
  setMaxListeners(0, stopping.signal);
  const pauses: number[] = [];
  const errors: unknown[] = [];
  const reorgs: number[] = [];
  let now = startedAt;
  let wake: (() => void) | undefined;
  const done = syncChainRealtime({
    indexed: createIndexedChain(mainnetNetwork, getChain(stub.client.slug), stub.client),
    store: index.store,
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
    signal: stopping.signal,
  });

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
      const go = wake;
      wake = undefined;
      go?.();
      await waitUntilIdle();
    },
    async stop() {
      stopping.abort();
      await done;
    },
  };
}

/** All rows of a file's tables: what was sent and delivered, and how much of the chains is there. */
export async function readAllRows(file: string) {
  const connection = await openSqlite(file, { readonly: true });
  try {
    const all = (table: string, order: string) => connection.prepare(`select * from ${table} order by ${order}`).all();
    return {
      sends: all("sends", "chain_id, block_number, log_index"),
      deliveries: all("deliveries", "chain_id, block_number, log_index"),
      cursors: all("cursors", "chain_id"),
      blocks: all("blocks", "chain_id, number"),
    };
  } finally {
    connection.close();
  }
}
