import type { EventRows } from "../../../src/transfers/index/database/schema.js";
import type { IndexStore } from "../../../src/transfers/index/index-store.js";
import { selectEvents } from "./random-events.js";

/** Writes events as the sync does: a part, more of it, a reorg, final blocks, and the history before. */
export async function writeEvents(store: IndexStore, events: EventRows, chainIds: readonly number[]): Promise<void> {
  const block = (number: number) => ({
    number,
    hash: `0x${number.toString(16).padStart(64, "0")}`,
    timestamp: 1_700_000_000 + number,
  });
  const readCursor = async (chainId: number) => {
    const cursor = await store.readCursor(chainId);
    if (cursor === undefined) throw new Error("no cursor");
    return cursor;
  };
  for (const chainId of chainIds) {
    await store.initializeCursor(chainId, block(50));
    const part = (from: number, to: number) => selectEvents(events, chainId, from, to);
    const options = { isFinal: false, observedAtMs: 1_700_000_500_000 };
    await store.advance(await readCursor(chainId), part(51, 70), { ...options, to: block(70) });
    await store.advance(await readCursor(chainId), part(71, 90), { ...options, to: block(90) });
    await store.rollBack(await readCursor(chainId), block(70));
    await store.advance(await readCursor(chainId), part(71, 100), { ...options, to: block(100) });
    await store.finalize(await readCursor(chainId), block(70), part(51, 70));
    // Two of the chains are not indexed from their beginning.
    const isComplete = chainId % 3 !== 0;
    await store.prepend(
      await readCursor(chainId),
      isComplete ? { number: 0, timestamp: 0 } : block(20),
      part(isComplete ? 1 : 20, 50),
    );
  }
}
