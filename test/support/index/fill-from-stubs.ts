import { setTimeout as sleep } from "node:timers/promises";
import { backfillIndex } from "../../../src/transfers/index/sync/index-sync.js";
import { mainnetNetwork } from "../../unit/transfers/index/support/hop-events.js";
import { readAllRows } from "../../unit/transfers/index/support/sync-harness.js";
import type { ChainStub } from "../stubs/chain-stub.js";
import { openIndex } from "./open-index.js";

/** Fills an index with the history of stubs in one undisturbed run, and returns its rows. */
export async function fillFromStubs(file: string, stubs: readonly ChainStub[]) {
  const index = await openIndex(file);
  await backfillIndex({
    index,
    network: mainnetNetwork,
    chains: {
      getClient: (slug) => stubs.find(({ client }) => client.slug === slug)?.client as never,
      hasCustomEndpoint: () => false,
    },
    blockAt: async () => 100,
    from: { timestamp: 0, blocks: new Map([["optimism", 0]]) },
    sleep: (ms) => sleep(ms),
    events: { onError: () => {}, onLeaseHeld: () => {}, onBackfillProgress: () => {} },
    signal: new AbortController().signal,
  });
  await index.close();
  return readAllRows(file);
}
