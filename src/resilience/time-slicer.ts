/** Divides the time of the event loop among long computations, which together take a short time of each of its turns. */
export interface TimeSlicer {
  /**
   * Calls `step` until it returns false. Returns undefined if it did so within the time that is left of this turn;
   * otherwise the promise resolves when a later turn has finished. An error of a step ends the work.
   * @param caller the callers that wait take turns
   */
  run(caller: string, step: () => boolean): Promise<void> | undefined;
  /** Returns how many computations wait for their next step. */
  waitingCount(): number;
}

export interface TimeSlicerOptions {
  /** Time of each turn in milliseconds. At least one step is done per turn. */
  readonly sliceMs: number;
  /** Milliseconds on a monotonic clock that goes on within a turn. Default: that of the process. */
  readonly now?: () => number;
}

interface SlicedWork {
  readonly step: () => boolean;
  resolve(): void;
  reject(error: unknown): void;
}

export function createTimeSlicer({ sliceMs, now = () => performance.now() }: TimeSlicerOptions): TimeSlicer {
  /** What waits, by caller; callers in the order of their next step. */
  const queues = new Map<string, SlicedWork[]>();
  /** End of the time in this turn; undefined: none of it has been used. */
  let sliceEnd: number | undefined;

  function hasTime(): boolean {
    if (sliceEnd === undefined) {
      sliceEnd = now() + sliceMs;
      setImmediate(runTurn);
      return true;
    }
    return now() < sliceEnd;
  }

  function runTurn(): void {
    sliceEnd = undefined;
    while (queues.size > 0 && hasTime()) runNextStep();
  }

  function runNextStep(): void {
    for (const [caller, queue] of queues) {
      const [work] = queue;
      queues.delete(caller);
      if (work !== undefined && isFinished(work)) queue.shift();
      if (queue.length > 0) queues.set(caller, queue);
      return;
    }
  }

  return {
    run(caller, step) {
      // Who comes later must not overtake those who wait.
      while (queues.size === 0 && hasTime()) if (!step()) return undefined;
      return new Promise((resolve, reject) => {
        const queue = queues.get(caller);
        const work = { step, resolve, reject };
        if (queue === undefined) queues.set(caller, [work]);
        else queue.push(work);
      });
    },
    waitingCount: () => [...queues.values()].reduce((count, queue) => count + queue.length, 0),
  };
}

function isFinished({ step, resolve, reject }: SlicedWork): boolean {
  try {
    if (step()) return false;
    resolve();
  } catch (error) {
    reject(error);
  }
  return true;
}
