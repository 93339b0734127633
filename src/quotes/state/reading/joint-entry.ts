import type { ChainState } from "../chain-state.js";
import { type ChainStateEntry, createJointChainStateEntry, findStaleState, IDLE_MS } from "../chain-state-entry.js";

/** Finds the entry from which a batch of quotes gets everything that it reads on one chain, in one block. */
export interface JointEntries {
  /** Returns an entry that reads what each of these entries reads, and perhaps more. */
  include(entries: readonly ChainStateEntry[], now: number): ChainStateEntry;
}

/** A joint entry and the last use of each of its members. */
interface JointEntry {
  readonly entry: ChainStateEntry;
  readonly lastUsed: Map<ChainStateEntry, number>;
}

/**
 * Keeps one joint entry for all batches on a chain, so that the number of its reads does not depend on the combinations
 * that callers ask for. It grows with the entries that batches use, and loses those that none uses any more.
 */
export function createJointEntries(): JointEntries {
  const state: {
    current: JointEntry | undefined;
    /** What it replaced, for use until it has been read. */
    previous: JointEntry | undefined;
    checkedAt: number;
  } = { current: undefined, previous: undefined, checkedAt: Number.NEGATIVE_INFINITY };

  function replaceCurrent(entries: readonly ChainStateEntry[], now: number): JointEntry {
    const lastUsed = new Map([...(state.current?.lastUsed ?? [])].filter(([, usedAt]) => now - usedAt <= IDLE_MS));
    for (const entry of entries) lastUsed.set(entry, now);
    const members = [...lastUsed.keys()];
    const replaced = state.current;
    const isShrinking = replaced !== undefined && covers(replaced, members);
    const known = isShrinking ? replaced.entry.state : findCommonState(members);
    const current = { entry: createJointChainStateEntry(members, known), lastUsed };
    state.previous = replaced;
    state.current = current;
    state.checkedAt = now;
    return current;
  }

  return {
    include(entries, now) {
      const { current, previous } = state;
      const isKnown = current !== undefined && covers(current, entries);
      if (!isKnown || now - state.checkedAt > IDLE_MS) return replaceCurrent(entries, now).entry;
      for (const entry of entries) current.lastUsed.set(entry, now);
      // A batch of other routes does not make this one wait for its first read, or fail with it.
      const canUsePrevious =
        current.entry.state === undefined &&
        previous !== undefined &&
        covers(previous, entries) &&
        findStaleState(previous.entry, now) !== undefined;
      return canUsePrevious ? previous.entry : current.entry;
    },
  };
}

function covers({ lastUsed }: JointEntry, entries: readonly ChainStateEntry[]): boolean {
  for (const entry of entries) if (!lastUsed.has(entry)) return false;
  return true;
}

/** Returns the state that all entries have, because one read got it for all of them. */
function findCommonState(entries: readonly ChainStateEntry[]): ChainState | undefined {
  const state = entries[0]?.state;
  return entries.every((entry) => entry.state === state) ? state : undefined;
}
