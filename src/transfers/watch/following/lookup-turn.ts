import { getRetryDelayMs } from "../polling/pace.js";

/** Lets lookups of one thing begin one after the other, and after failures later and later. */
export class LookupTurn {
  private isBusy = false;
  private failures = 0;
  private nextAt = 0;

  constructor(
    /** Monotonic clock, in milliseconds. */
    private readonly now: () => number,
    /** Longest time between two attempts, in milliseconds. */
    private readonly maxRetryMs?: number,
  ) {}

  /**
   * Runs a lookup, unless one is running or it is too early.
   * @param work returns whether it brought what was expected; if not, or if it fails, the next one has to wait
   */
  async run(work: () => Promise<boolean>, onError?: (error: unknown) => void): Promise<void> {
    if (this.isBusy || this.now() < this.nextAt) return;
    this.isBusy = true;
    let isExpected = false;
    try {
      isExpected = await work();
    } catch (error) {
      onError?.(error);
    } finally {
      this.isBusy = false;
      this.failures = isExpected ? 0 : this.failures + 1;
      if (!isExpected) this.nextAt = this.now() + getRetryDelayMs(this.failures, this.maxRetryMs);
    }
  }

  /** Lets the next lookup begin at once. */
  hurry(): void {
    this.nextAt = 0;
  }
}
