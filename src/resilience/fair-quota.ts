import type { Waiters } from "./waiters.js";

/**
 * A limited number of slots that callers share. A caller may hold as many slots as it leaves free: one caller gets at most
 * half of them, two get a third each. A new caller therefore always finds a slot unless all are in use.
 */
export class FairQuota {
  readonly #capacity: () => number;
  readonly #maxPerCaller: number;
  readonly #heldByCaller = new Map<string, number>();
  #total = 0;

  /**
   * @param capacity returns the current number of slots
   * @param maxPerCaller most slots of one caller, however many are free. Default: no such limit
   */
  constructor(capacity: () => number, maxPerCaller = Number.POSITIVE_INFINITY) {
    this.#capacity = capacity;
    this.#maxPerCaller = maxPerCaller;
  }

  /**
   * Takes a slot and returns the function that releases it, to be called once; undefined: no slot for this caller.
   * @param callers one of them takes it
   * @param amount slots to take at once, all or none. Default: 1
   */
  tryAcquire(callers: string | Waiters, amount = 1): (() => void) | undefined {
    const caller = this.#findCaller(callers, amount);
    if (caller === undefined) return undefined;
    this.#heldByCaller.set(caller, this.#countFor(caller) + amount);
    this.#total += amount;
    return () => this.#release(caller, amount);
  }

  /** Returns whether tryAcquire would succeed. */
  hasCapacityFor(callers: string | Waiters, amount = 1): boolean {
    return this.#findCaller(callers, amount) !== undefined;
  }

  /** Returns the number of slots in use. */
  heldCount(): number {
    return this.#total;
  }

  /** Returns the first caller that may take the slots; undefined: none may. */
  #findCaller(callers: string | Waiters, amount: number): string | undefined {
    // As for one slot after the other: the last of them too must leave as many free as the caller holds by then.
    const free = this.#capacity() - this.#total - (amount - 1);
    const max = Math.min(this.#maxPerCaller, free) - amount;
    if (max < 0) return undefined;
    if (typeof callers === "string") return this.#countFor(callers) <= max ? callers : undefined;
    for (const caller of callers.listCharged()) if (this.#countFor(caller) <= max) return caller;
    return undefined;
  }

  #countFor(caller: string): number {
    return this.#heldByCaller.get(caller) ?? 0;
  }

  #release(caller: string, amount: number): void {
    this.#total -= amount;
    const remaining = this.#countFor(caller) - amount;
    if (remaining > 0) this.#heldByCaller.set(caller, remaining);
    else this.#heldByCaller.delete(caller);
  }
}
