/** Places that callers share, of which whoever holds many leaves some for others. */
export interface FairQuota {
  /** Takes a place and gives what gives it back, once; undefined where there is none for this caller. */
  tryAcquire(caller: string): (() => void) | undefined;
  /** Whether it would get one. */
  hasCapacityFor(caller: string): boolean;
  /** How many are held. */
  heldCount(): number;
}

/**
 * A caller may hold as many places as it leaves free: a single one half of them, two a third each. So whoever comes new
 * always finds one while others hold less than all.
 * @param capacity how many there are now
 */
export function createFairQuota(capacity: () => number): FairQuota {
  const heldBy = new Map<string, number>();
  let taken = 0;
  const held = (caller: string): number => heldBy.get(caller) ?? 0;
  const hasCapacityFor = (caller: string): boolean => held(caller) < capacity() - taken;
  return {
    hasCapacityFor,
    heldCount: () => taken,
    tryAcquire(caller) {
      if (!hasCapacityFor(caller)) return undefined;
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
