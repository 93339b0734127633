/** A limited number of slots that callers share. The more slots a caller holds, the more it must leave free. */
export interface FairQuota {
  /**
   * Takes a slot and returns the function that releases it, to be called once; undefined: no slot for this caller.
   * @param amount slots to take at once, all or none. Default: 1
   */
  tryAcquire(caller: string, amount?: number): (() => void) | undefined;
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
  // The same as for one slot after the other: the last of them too is taken of as many free ones as the caller holds by then.
  const hasCapacityFor = (caller: string, amount = 1): boolean =>
    countFor(caller) + amount <= Math.min(maxPerCaller, capacity() - total - (amount - 1));
  return {
    hasCapacityFor: (caller) => hasCapacityFor(caller),
    heldCount: () => total,
    tryAcquire(caller, amount = 1) {
      if (!hasCapacityFor(caller, amount)) return undefined;
      heldByCaller.set(caller, countFor(caller) + amount);
      total += amount;
      return () => {
        total -= amount;
        const remaining = countFor(caller) - amount;
        if (remaining > 0) heldByCaller.set(caller, remaining);
        else heldByCaller.delete(caller);
      };
    },
  };
}
