import { setMaxListeners } from "node:events";
import { setImmediate } from "node:timers/promises";
import { vi } from "vitest";
import { openSqlite } from "../../../../../src/transfers/index/database/sqlite-database.js";
import { ChainIndexReader } from "../../../../../src/transfers/index/sync/chain-index-reader.js";
import { RealtimeSync } from "../../../../../src/transfers/index/sync/realtime-sync.js";
import type { TransferIndex } from "../../../../../src/transfers/index/transfer-index.js";
import { type ChainStub, createChainStub } from "../../../../support/stubs/chain-stub.js";
import { getChain, mainnetNetwork } from "./hop-events.js";

/** Creates a chain of mainnet whose blocks are final up to `finalized`. */
export function createFinalChain(slug: string, head: number, finalized = head): ChainStub {
  return Object.assign(createChainStub({ slug, chainId: getChain(slug).chainId, head }), { finalized });
}

/**
 * Creates what a process needs to sync or backfill an index from the stubs of its chains; its pauses end at once.
 * @param firstBlock where the history begins
 */
export function createSyncOptions(index: TransferIndex, stubs: ReadonlyMap<string, ChainStub>, firstBlock = 0) {
  const stopping = new AbortController();
  const pauses: number[] = [];
  const events = { onError: vi.fn(), onReorg: vi.fn(), onLeaseHeld: vi.fn(), onBackfillProgress: vi.fn() };
  const options = {
    index,
    network: { ...mainnetNetwork, chains: new Map([...stubs.keys()].map((slug) => [slug, getChain(slug)])) },
    chains: { getClient: (slug: string) => (stubs.get(slug) as ChainStub).client, hasCustomEndpoint: () => false },
    blockAt: async () => firstBlock,
    from: { timestamp: 0, blocks: new Map<string, number>() },
    wallNow: () => 1_800_000_000_000,
    monotonicNow: () => 0,
    async sleep(ms: number): Promise<void> {
      pauses.push(ms);
      await setImmediate();
    },
    events,
    signal: stopping.signal,
  };
  return { options, events, pauses, stop: () => stopping.abort() };
}

/** Starts the realtime sync of one chain on a clock that the test controls. */
export function startSync(index: TransferIndex, stub: ChainStub) {
  const stopping = new AbortController();
  // One listener per pause.
  setMaxListeners(0, stopping.signal);
  const pauses: number[] = [];
  const errors: unknown[] = [];
  const reorgs: number[] = [];
  let now = 1_800_000_000_000;
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

  /** Resolves when the sync is sleeping. */
  async function waitUntilIdle(): Promise<void> {
    while (wake === undefined) await setImmediate();
  }

  return {
    /** Requested pauses so far, in milliseconds. */
    pauses,
    errors,
    /** Depths of the reported reorgs. */
    reorgs,
    waitUntilIdle,
    /** Moves the clock, ends the pause and resolves when the next pause begins. */
    async advance(ms = 2_000): Promise<void> {
      await waitUntilIdle();
      now += ms;
      const endPause = wake;
      wake = undefined;
      endPause?.();
      await waitUntilIdle();
    },
    async stop(): Promise<void> {
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
    const sends = readTable("sends", "chain_id, block_number, log_index");
    return {
      sends: sends.map(({ first_timestamp: _, ...others }): unknown => others),
      deliveries: readTable("deliveries", "chain_id, block_number, log_index"),
      cursors: readTable("cursors", "chain_id"),
      blocks: readTable("blocks", "chain_id, number"),
    };
  } finally {
    connection.close();
  }
}
