import { setMaxListeners } from "node:events";
import { setImmediate } from "node:timers/promises";
import type { OpenIndex } from "../../../../../src/transfers/index/store/open-index.js";
import { openSqlite } from "../../../../../src/transfers/index/store/sqlite.js";
import { indexedChain } from "../../../../../src/transfers/index/sync/indexed-chain.js";
import { followChain } from "../../../../../src/transfers/index/sync/realtime-sync.js";
import type { ChainStub } from "../../../../support/stubs/chain-stub.js";
import { chainOf, mainnet } from "./hop-events.js";

/** One chain being followed on clocks of the test. */
export interface Following {
  /** Pauses that were asked for so far, in milliseconds. */
  readonly pauses: readonly number[];
  readonly troubles: readonly unknown[];
  /** Depths of the reorgs seen. */
  readonly reorgs: readonly number[];
  /** Resolves when it has nothing to do but wait. */
  idle(): Promise<void>;
  /** Ends the pause, so much later on the clocks, and resolves when the next one begins. */
  tick(ms?: number): Promise<void>;
  stop(): Promise<void>;
}

export function follow(index: OpenIndex, stub: ChainStub, startedAt = 1_800_000_000_000): Following {
  const stopping = new AbortController();
  // One for each pause.
  setMaxListeners(0, stopping.signal);
  const pauses: number[] = [];
  const troubles: unknown[] = [];
  const reorgs: number[] = [];
  let now = startedAt;
  let wake: (() => void) | undefined;
  const done = followChain({
    indexed: indexedChain(mainnet, chainOf(stub.client.slug), stub.client),
    store: index.store,
    wallNow: () => now,
    steadyNow: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        pauses.push(ms);
        wake = resolve;
        signal.addEventListener("abort", () => resolve(), { once: true });
      }),
    onTrouble: (_, error) => troubles.push(error),
    onReorg: (_, depth) => reorgs.push(depth),
    signal: stopping.signal,
  });

  async function idle(): Promise<void> {
    while (wake === undefined) await setImmediate();
  }

  return {
    pauses,
    troubles,
    reorgs,
    idle,
    async tick(ms = 2_000) {
      await idle();
      now += ms;
      const go = wake;
      wake = undefined;
      go?.();
      await idle();
    },
    async stop() {
      stopping.abort();
      await done;
    },
  };
}

/** All rows of a file's tables: what was sent and delivered, and how much of the chains is there. */
export async function contentsOf(file: string) {
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
