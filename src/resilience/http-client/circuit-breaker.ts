/**
 * failing: failures have opened the breaker, or the last known result is a failure. cooldown: the upstream is cooling down. unknown:
 * there has been no attempt yet.
 */
export type UpstreamHealth = "ok" | "failing" | "cooldown" | "unknown";

export interface CircuitBreakerAttempt {
  /** @param latencyMs undefined: this latency says nothing about other attempts */
  recordSuccess(latencyMs: number | undefined): void;
  /**
   * Returns whether this failure opens the breaker.
   * @param latencyMs lower bound of the latency of an attempt that was overtaken by another; undefined: a real failure
   */
  recordFailure(latencyMs?: number): boolean;
  /** Ends the attempt without a conclusion about the upstream. */
  ignore(): void;
}

/** How long an open breaker rejects before it probes. It opens after so many failures in a row or in the window. */
const OPEN_MS = 30_000;
const WINDOW_SIZE = 80;
const MAX_WINDOW_FAILURES = 20;
const MAX_CONSECUTIVE_FAILURES = 5;
const MAX_COOLDOWN_MS = 30_000;
const LATENCY_SAMPLES = 64;

/**
 * Tracks the health of an upstream by the attempts at it: circuit breaker, latency, and requested cooldown. All times are
 * milliseconds on its clock.
 */
export class CircuitBreaker {
  readonly #now: () => number;
  #cooldownStartedAt = Number.NEGATIVE_INFINITY;
  #cooldownUntil = Number.NEGATIVE_INFINITY;
  #lastAttemptAt = Number.NEGATIVE_INFINITY;
  /** When the next probe may start; undefined: the breaker is closed. */
  #openUntil: number | undefined;
  /** Whether an attempt has failed since the last success, and was not only overtaken. */
  #isOpenForFailures = false;
  /** Number of times the breaker has opened. Results of attempts from an earlier generation are outdated. */
  #generation = 0;
  #consecutiveFailures = 0;
  /** Whether each of the last attempts failed, oldest first. */
  #window: readonly boolean[] = [];
  #latenciesMs: readonly number[] = [];
  #lastSuccessAt: number | undefined;
  #lastOutcome: "success" | "failure" | undefined;

  /** @param now monotonic clock, in milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  state(): UpstreamHealth {
    if (this.isCoolingDown()) return "cooldown";
    if ((this.isOpen() && this.#isOpenForFailures) || this.#lastOutcome === "failure") return "failing";
    return this.#lastOutcome === undefined ? "unknown" : "ok";
  }

  /** Returns when the upstream last responded, on the clock of the breaker; undefined: never. */
  lastSuccessAt(): number | undefined {
    return this.#lastSuccessAt;
  }

  /** Returns whether the upstream gets no requests because it asked for that, or because it serves another chain. */
  isCoolingDown(): boolean {
    return this.#now() < this.#cooldownUntil;
  }

  /** Returns the time since the cooldown or the last attempt started, whichever is later, in milliseconds. */
  cooldownElapsedMs(): number {
    return this.#now() - Math.max(this.#cooldownStartedAt, this.#lastAttemptAt);
  }

  /** Returns whether this upstream has failed too often and may not be probed yet. */
  isOpen(): boolean {
    return this.#openUntil !== undefined && this.#now() < this.#openUntil;
  }

  /** Returns whether no other upstream is preferred: the breaker never opened, or a probe has succeeded since. */
  isClosed(): boolean {
    return this.#openUntil === undefined;
  }

  /** Returns whether the open time is over, so that the next attempt is the probe. */
  isProbeDue(): boolean {
    return !this.isClosed() && !this.isOpen();
  }

  /** Returns whether the last attempt failed. */
  hasRecentFailure(): boolean {
    return this.#consecutiveFailures > 0;
  }

  /** Returns the 95th percentile of the last latencies, in milliseconds; undefined: none is known. */
  latencyP95Ms(): number | undefined {
    const sorted = [...this.#latenciesMs].sort((a, b) => a - b);
    return sorted[Math.ceil(sorted.length * 0.95) - 1];
  }

  startCooldown(milliseconds: number): void {
    const now = this.#now();
    this.#cooldownStartedAt = now;
    this.#cooldownUntil = Math.max(this.#cooldownUntil, now + Math.min(milliseconds, MAX_COOLDOWN_MS));
  }

  /** Records the result of a background probe. Affects only `state()` and, where the probe succeeded, the known latency. */
  recordProbe(isSuccess: boolean, latencyMs?: number): void {
    this.#addLatency(latencyMs);
    this.#lastOutcome = isSuccess ? "success" : "failure";
    if (isSuccess) this.#lastSuccessAt = this.#now();
  }

  /** Starts an attempt. When the open time is over, the first attempt is the probe that decides about closing. */
  beginAttempt(): CircuitBreakerAttempt {
    const isProbe = this.isProbeDue();
    const generation = this.#generation;
    const cooldownStartedAt = this.#cooldownStartedAt;
    this.#lastAttemptAt = this.#now();
    // An outstanding probe keeps other attempts away.
    if (isProbe) this.#openUntil = this.#lastAttemptAt + OPEN_MS;
    return {
      recordSuccess: (latencyMs) => {
        this.recordProbe(true, latencyMs);
        // A success ends the cooldown early, unless the attempt started before the cooldown did.
        if (cooldownStartedAt === this.#cooldownStartedAt) this.#cooldownUntil = Number.NEGATIVE_INFINITY;
        if (generation === this.#generation) this.#close();
      },
      recordFailure: (latencyMs) => {
        this.#addLatency(latencyMs);
        // To be overtaken is not a known failure yet.
        const isKnown = latencyMs === undefined;
        if (isKnown) this.#lastOutcome = "failure";
        return generation === this.#generation && this.#countFailure(isKnown);
      },
      ignore: () => {
        // Lets the next attempt probe when this one was the probe.
        if (isProbe && generation === this.#generation && !this.isClosed()) this.#openUntil = this.#now();
      },
    };
  }

  #close(): void {
    this.#window = addToWindow(this.isClosed() ? this.#window : [], false);
    this.#openUntil = undefined;
    this.#isOpenForFailures = false;
    this.#consecutiveFailures = 0;
  }

  /** Returns whether the failure opens the breaker. */
  #countFailure(isKnown: boolean): boolean {
    this.#consecutiveFailures += 1;
    this.#window = addToWindow(this.#window, true);
    this.#isOpenForFailures ||= isKnown;
    const windowFailures = this.#window.filter((hasFailed) => hasFailed).length;
    const opens =
      !this.isClosed() ||
      this.#consecutiveFailures >= MAX_CONSECUTIVE_FAILURES ||
      windowFailures >= MAX_WINDOW_FAILURES;
    if (!opens) return false;
    this.#generation += 1;
    this.#openUntil = this.#now() + OPEN_MS;
    return true;
  }

  #addLatency(latencyMs: number | undefined): void {
    if (latencyMs !== undefined) this.#latenciesMs = [...this.#latenciesMs, latencyMs].slice(-LATENCY_SAMPLES);
  }
}

function addToWindow(window: readonly boolean[], hasFailed: boolean): readonly boolean[] {
  return [...window, hasFailed].slice(-WINDOW_SIZE);
}
