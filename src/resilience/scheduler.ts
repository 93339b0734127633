/** One run of a job. Its signal aborts when the job is stopped. */
export type JobRun = (signal: AbortSignal) => void | Promise<void>;

/**
 * Runs named jobs again and again. The interval lies between the end of one run and the start of the next, so a job never
 * overlaps itself. The timers do not keep the process alive.
 *
 * @example
 * const job = scheduler.every("read the head", 1_000, (signal) => readHead(signal));
 * job.stop();
 */
export class Scheduler {
  readonly #jobs = new Set<ScheduledJob>();
  readonly #onError: (error: unknown, name: string) => void;
  readonly #random: () => number;
  #isClosed = false;

  constructor(
    options: {
      /** Called with the error of a run and the name of its job, which goes on all the same. Default: ignores it. */
      readonly onError?: (error: unknown, name: string) => void;
      /** Returns a number from 0 to less than 1, for the jitter. Default: Math.random. */
      readonly random?: () => number;
    } = {},
  ) {
    this.#onError = options.onError ?? (() => {});
    this.#random = options.random ?? Math.random;
  }

  /**
   * Starts a job.
   * @param name what it does, for the report of an error
   * @param intervalMs a number, or a function that is called after each run and returns one
   */
  every(
    name: string,
    intervalMs: number | (() => number),
    run: JobRun,
    options: {
      /** Share of the interval by which it varies both ways, so that processes do not act in step. Default: 0. */
      readonly jitter?: number;
      /** Time before the first run. Default: the interval. */
      readonly firstDelayMs?: number;
    } = {},
  ): ScheduledJob {
    const { jitter = 0, firstDelayMs } = options;
    const nextDelayMs = (): number => {
      const delayMs = typeof intervalMs === "number" ? intervalMs : intervalMs();
      return delayMs * (1 + jitter * (2 * this.#random() - 1));
    };
    const job = new ScheduledJob(
      run,
      nextDelayMs,
      (error) => this.#onError(error, name),
      () => this.#jobs.delete(job),
    );
    this.#jobs.add(job);
    if (this.#isClosed) job.stop();
    else job.schedule(firstDelayMs ?? nextDelayMs());
    return job;
  }

  /** Stops all jobs. Jobs that are added later do not run. */
  close(): void {
    this.#isClosed = true;
    for (const job of this.#jobs) job.stop();
  }
}

/** A job that runs again and again. */
export class ScheduledJob {
  readonly #run: JobRun;
  readonly #nextDelayMs: () => number;
  readonly #onError: (error: unknown) => void;
  readonly #onStop: () => void;
  readonly #stopping = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #isRunning = false;
  #runsAgain = false;

  constructor(run: JobRun, nextDelayMs: () => number, onError: (error: unknown) => void, onStop: () => void) {
    this.#run = run;
    this.#nextDelayMs = nextDelayMs;
    this.#onError = onError;
    this.#onStop = onStop;
  }

  /** Sets when it runs next, in milliseconds. */
  schedule(delayMs: number): void {
    this.#timer = setTimeout(() => this.runNow(), delayMs).unref();
  }

  /** Runs it now, or once more after the run in progress. The interval begins anew after that. */
  runNow(): void {
    if (this.#isRunning) this.#runsAgain = true;
    else if (!this.#stopping.signal.aborted) void this.#runOnce();
  }

  /** Ends it: no further run begins, and the signal of a run in progress aborts. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#stopping.abort();
    this.#onStop();
  }

  async #runOnce(): Promise<void> {
    const { signal } = this.#stopping;
    clearTimeout(this.#timer);
    this.#isRunning = true;
    this.#runsAgain = false;
    try {
      const running = this.#run(signal);
      // A run that is not asynchronous has ended: the timer of the next one is set within this turn.
      if (running !== undefined) await running;
    } catch (error) {
      if (!signal.aborted) this.#onError(error);
    }
    this.#isRunning = false;
    if (!signal.aborted) this.schedule(this.#runsAgain ? 0 : this.#nextDelayMs());
  }
}
