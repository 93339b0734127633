/** A limited number of slots that callers share. The more slots a caller holds, the more it must leave free. */
export interface FairQuota {
  /** Takes a slot and returns the function that releases it, to be called once; undefined: no slot for this caller. */
  tryAcquire(caller: string): (() => void) | undefined;
  /** Returns whether tryAcquire would succeed. */
  hasCapacityFor(caller: string): boolean;
  /** Returns the number of slots in use. */
  heldCount(): number;
}

/**
 * Creates a quota in which a caller may hold as many slots as it leaves free: one caller gets at most half of them, two
 * get a third each. A new caller therefore always finds a slot unless all are in use.
 * @param capacity returns the current number of slots
 * @param maxPerCaller most slots of one caller, however many are free. Default: no such limit
 */
export function createFairQuota(capacity: () => number, maxPerCaller = Number.POSITIVE_INFINITY): FairQuota {
  const heldByCaller = new Map<string, number>();
  let total = 0;
  const countFor = (caller: string): number => heldByCaller.get(caller) ?? 0;
  const hasCapacityFor = (caller: string): boolean => countFor(caller) < Math.min(maxPerCaller, capacity() - total);
  return {
    hasCapacityFor,
    heldCount: () => total,
    tryAcquire(caller) {
      if (!hasCapacityFor(caller)) return undefined;
      heldByCaller.set(caller, countFor(caller) + 1);
      total += 1;
      return () => {
        total -= 1;
        const remaining = countFor(caller) - 1;
        if (remaining > 0) heldByCaller.set(caller, remaining);
        else heldByCaller.delete(caller);
      };
    },
  };
}
