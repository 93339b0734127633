/** Tracks the health of an upstream by the attempts at it: circuit breaker, latency, and requested cooldown. */
export interface CircuitBreaker {
  state(): UpstreamHealth;
  /** Returns when the upstream last responded, on the clock of the breaker; undefined: never. */
  lastSuccessAt(): number | undefined;
  /** Returns whether the upstream gets no requests because it asked for that, or because it serves another chain. */
  isCoolingDown(): boolean;
  /** Returns the time since the cooldown or the last attempt started, whichever is later, in milliseconds. */
  cooldownElapsedMs(): number;
  /** Returns whether this upstream has failed too often and may not be probed yet. */
  isOpen(): boolean;
  /** Returns whether no other upstream is preferred: the breaker never opened, or a probe has succeeded since. */
  isClosed(): boolean;
  /** Returns whether the open time is over, so that the next attempt is the probe. */
  isProbeDue(): boolean;
  /** Returns whether the last attempt failed. */
  hasRecentFailure(): boolean;
  /** Returns the 95th percentile of the last latencies, in milliseconds; undefined: none is known. */
  latencyP95Ms(): number | undefined;
  /** Starts an attempt. When the open time is over, the first attempt is the probe that decides about closing. */
  beginAttempt(): CircuitBreakerAttempt;
  startCooldown(milliseconds: number): void;
  /** Records the result of a background probe. Affects only `state()` and, where the probe succeeded, the known latency. */
  recordProbe(isSuccess: boolean, latencyMs?: number): void;
}

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

/** State of one breaker. All times are milliseconds on the clock that the transitions receive as `now`. */
export interface CircuitBreakerState {
  readonly cooldownStartedAt: number;
  readonly cooldownUntil: number;
  readonly lastAttemptAt: number;
  /** When the next probe may start; undefined: the breaker is closed. */
  readonly openUntil: number | undefined;
  /** Whether an attempt has failed since the last success, and was not only overtaken. */
  readonly isOpenForFailures: boolean;
  /** Number of times the breaker has opened. Results of attempts from an earlier generation are outdated. */
  readonly generation: number;
  readonly consecutiveFailures: number;
  /** Whether each of the last attempts failed, oldest first. */
  readonly window: readonly boolean[];
  readonly latenciesMs: readonly number[];
  readonly lastSuccessAt: number | undefined;
  readonly lastOutcome: "success" | "failure" | undefined;
}

/** What an attempt has to remember of the moment at which it started. */
export interface StartedAttempt {
  readonly generation: number;
  readonly cooldownStartedAt: number;
  readonly isProbe: boolean;
}

export const INITIAL_CIRCUIT_BREAKER_STATE: CircuitBreakerState = {
  cooldownStartedAt: Number.NEGATIVE_INFINITY,
  cooldownUntil: Number.NEGATIVE_INFINITY,
  lastAttemptAt: Number.NEGATIVE_INFINITY,
  openUntil: undefined,
  isOpenForFailures: false,
  generation: 0,
  consecutiveFailures: 0,
  window: [],
  latenciesMs: [],
  lastSuccessAt: undefined,
  lastOutcome: undefined,
};

export function isOpen({ openUntil }: CircuitBreakerState, now: number): boolean {
  return openUntil !== undefined && now < openUntil;
}

export function isCoolingDown({ cooldownUntil }: CircuitBreakerState, now: number): boolean {
  return now < cooldownUntil;
}

export function getUpstreamHealth(state: CircuitBreakerState, now: number): UpstreamHealth {
  if (isCoolingDown(state, now)) return "cooldown";
  if ((isOpen(state, now) && state.isOpenForFailures) || state.lastOutcome === "failure") return "failing";
  return state.lastOutcome === undefined ? "unknown" : "ok";
}

/** Returns the 95th percentile of the last latencies, in milliseconds; undefined: none is known. */
export function computeLatencyP95({ latenciesMs }: CircuitBreakerState): number | undefined {
  const sorted = [...latenciesMs].sort((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * 0.95) - 1];
}

export function onCooldownRequested(
  state: CircuitBreakerState,
  milliseconds: number,
  now: number,
): CircuitBreakerState {
  const cooldownUntil = Math.max(state.cooldownUntil, now + Math.min(milliseconds, MAX_COOLDOWN_MS));
  return { ...state, cooldownStartedAt: now, cooldownUntil };
}

export function onProbed(state: CircuitBreakerState, isSuccess: boolean, now: number): CircuitBreakerState {
  return isSuccess ? { ...state, lastOutcome: "success", lastSuccessAt: now } : { ...state, lastOutcome: "failure" };
}

export function onAttemptStarted(
  state: CircuitBreakerState,
  now: number,
): { state: CircuitBreakerState; attempt: StartedAttempt } {
  const isProbe = state.openUntil !== undefined && now >= state.openUntil;
  return {
    // An outstanding probe keeps other attempts away.
    state: { ...state, lastAttemptAt: now, openUntil: isProbe ? now + OPEN_MS : state.openUntil },
    attempt: { generation: state.generation, cooldownStartedAt: state.cooldownStartedAt, isProbe },
  };
}

export function onAttemptSucceeded(
  before: CircuitBreakerState,
  attempt: StartedAttempt,
  latencyMs: number | undefined,
  now: number,
): CircuitBreakerState {
  // A success ends the cooldown early, unless the attempt started before the cooldown did.
  const endsCooldown = attempt.cooldownStartedAt === before.cooldownStartedAt;
  const state: CircuitBreakerState = {
    ...onProbed(addLatency(before, latencyMs), true, now),
    cooldownUntil: endsCooldown ? Number.NEGATIVE_INFINITY : before.cooldownUntil,
  };
  if (attempt.generation !== state.generation) return state;
  const window = state.openUntil === undefined ? state.window : [];
  return {
    ...state,
    openUntil: undefined,
    isOpenForFailures: false,
    consecutiveFailures: 0,
    window: addToWindow(window, false),
  };
}

export function onAttemptFailed(
  before: CircuitBreakerState,
  attempt: StartedAttempt,
  latencyMs: number | undefined,
  now: number,
): { state: CircuitBreakerState; hasOpened: boolean } {
  const measured = addLatency(before, latencyMs);
  // To be overtaken is not a known failure yet.
  const state = latencyMs === undefined ? onProbed(measured, false, now) : measured;
  if (attempt.generation !== state.generation) return { state, hasOpened: false };
  const consecutiveFailures = state.consecutiveFailures + 1;
  const window = addToWindow(state.window, true);
  const windowFailures = window.filter((hasFailed) => hasFailed).length;
  const opens =
    state.openUntil !== undefined ||
    consecutiveFailures >= MAX_CONSECUTIVE_FAILURES ||
    windowFailures >= MAX_WINDOW_FAILURES;
  const isOpenForFailures = state.isOpenForFailures || latencyMs === undefined;
  const counted = { ...state, consecutiveFailures, window, isOpenForFailures };
  if (!opens) return { state: counted, hasOpened: false };
  return { state: { ...counted, generation: state.generation + 1, openUntil: now + OPEN_MS }, hasOpened: true };
}

/** Lets the next attempt probe when the attempt was the probe. */
export function onAttemptIgnored(
  state: CircuitBreakerState,
  attempt: StartedAttempt,
  now: number,
): CircuitBreakerState {
  const isOutstandingProbe =
    attempt.isProbe && attempt.generation === state.generation && state.openUntil !== undefined;
  return isOutstandingProbe ? { ...state, openUntil: now } : state;
}

function addLatency(state: CircuitBreakerState, latencyMs: number | undefined): CircuitBreakerState {
  if (latencyMs === undefined) return state;
  return { ...state, latenciesMs: [...state.latenciesMs, latencyMs].slice(-LATENCY_SAMPLES) };
}

function addToWindow(window: readonly boolean[], hasFailed: boolean): readonly boolean[] {
  return [...window, hasFailed].slice(-WINDOW_SIZE);
}

/** @param now monotonic clock, in milliseconds */
export function createCircuitBreaker(now: () => number): CircuitBreaker {
  let state = INITIAL_CIRCUIT_BREAKER_STATE;
  return {
    state: () => getUpstreamHealth(state, now()),
    lastSuccessAt: () => state.lastSuccessAt,
    isCoolingDown: () => isCoolingDown(state, now()),
    cooldownElapsedMs: () => now() - Math.max(state.cooldownStartedAt, state.lastAttemptAt),
    isOpen: () => isOpen(state, now()),
    isClosed: () => state.openUntil === undefined,
    isProbeDue: () => state.openUntil !== undefined && !isOpen(state, now()),
    hasRecentFailure: () => state.consecutiveFailures > 0,
    latencyP95Ms: () => computeLatencyP95(state),
    startCooldown(milliseconds) {
      state = onCooldownRequested(state, milliseconds, now());
    },
    recordProbe(isSuccess, latencyMs) {
      state = onProbed(addLatency(state, latencyMs), isSuccess, now());
    },
    beginAttempt() {
      const started = onAttemptStarted(state, now());
      state = started.state;
      const { attempt } = started;
      return {
        recordSuccess(latencyMs) {
          state = onAttemptSucceeded(state, attempt, latencyMs, now());
        },
        recordFailure(latencyMs) {
          const result = onAttemptFailed(state, attempt, latencyMs, now());
          state = result.state;
          return result.hasOpened;
        },
        ignore() {
          state = onAttemptIgnored(state, attempt, now());
        },
      };
    },
  };
}
