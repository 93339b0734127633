/** Recognizes keys that were asked before, in a fixed amount of memory. */
export interface RepeatFilter {
  /** Returns whether a key was recorded before and not displaced by another since, and records it. */
  record(key: string): boolean;
}

/**
 * Creates a filter that remembers one key per slot, by its hash. Keeping only what is asked twice spares a cache the
 * entries that are never read again (the doorkeeper of TinyLFU). A wrong answer for keys of equal hash does no harm there.
 * @param slots a power of two
 */
export function createRepeatFilter(slots: number): RepeatFilter {
  const hashes = new Uint32Array(slots);
  return {
    record(key) {
      // 0 is an empty slot.
      const hash = computeHash(key) || 1;
      const slot = hash & (slots - 1);
      const isRepeated = hashes[slot] === hash;
      hashes[slot] = hash;
      return isRepeated;
    },
  };
}

/** Computes FNV-1a with 32 bits over UTF-16 code units. */
function computeHash(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  // The low bits, which choose the slot, would depend on the low bits of the text alone.
  return (hash ^ (hash >>> 15)) >>> 0;
}
