/** Places that callers share, of which whoever holds many leaves some for others. */
export interface Places {
  /** Takes a place and gives what gives it back, once; undefined where there is none for this caller. */
  take(caller: string): (() => void) | undefined;
  /** Whether it would get one. */
  hasOneFor(caller: string): boolean;
  /** How many are held. */
  taken(): number;
}

/**
 * A caller may hold as many places as it leaves free: a single one half of them, two a third each. So whoever comes new
 * always finds one while others hold less than all.
 * @param capacity how many there are now
 */
export function createPlaces(capacity: () => number): Places {
  const heldBy = new Map<string, number>();
  let taken = 0;
  const held = (caller: string): number => heldBy.get(caller) ?? 0;
  const hasOneFor = (caller: string): boolean => held(caller) < capacity() - taken;
  return {
    hasOneFor,
    taken: () => taken,
    take(caller) {
      if (!hasOneFor(caller)) return undefined;
      heldBy.set(caller, held(caller) + 1);
      taken += 1;
      return () => {
        taken -= 1;
        const left = held(caller) - 1;
        if (left > 0) heldBy.set(caller, left);
        else heldBy.delete(caller);
      };
    },
  };
}
