interface Timer {
  readonly dueAt: number;
  readonly run: () => void;
}

const nextTurn = setImmediate;

/** A clock that jumps from one timer to the next: `setTimeout` of this process runs on it from `install` on. */
export class VirtualTime {
  #now = 0;
  /** In the order of their times; those of one time in the order in which they were set. */
  #timers: Timer[] = [];

  /** Milliseconds since the start. */
  readonly now = (): number => this.#now;

  install(): void {
    Object.assign(globalThis, {
      setTimeout: (run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) => this.#set(() => run(...args), ms),
      clearTimeout: (timer: Timer | undefined) => {
        const index = timer === undefined ? -1 : this.#timers.indexOf(timer);
        if (index >= 0) this.#timers.splice(index, 1);
      },
    });
  }

  /** Runs the timers until a time, each after the promises of the one before. */
  async runUntil(end: number): Promise<void> {
    for (;;) {
      await new Promise((resolve) => nextTurn(resolve));
      const [timer] = this.#timers;
      if (timer === undefined || timer.dueAt > end) break;
      this.#timers.shift();
      this.#now = timer.dueAt;
      timer.run();
    }
    this.#now = end;
  }

  #set(run: () => void, ms: number): Timer & { unref(): unknown } {
    const timer = { dueAt: this.#now + Math.max(ms, 0.001), run, unref: () => timer };
    let [low, high] = [0, this.#timers.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#timers[middle]?.dueAt ?? 0) <= timer.dueAt) low = middle + 1;
      else high = middle;
    }
    this.#timers.splice(low, 0, timer);
    return timer;
  }
}
