/** What the attempts at an upstream tell of it: circuit breaker, latency, and rest where it asked for it. */
export interface CircuitBreaker {
  /** What is known of it in one word. */
  state(): CircuitBreakerState;
  /** When it gave an answer last; undefined: never. */
  lastSuccessAt(): number | undefined;
  /** Whether it is left alone because it asked for that, or serves another chain. */
  isCoolingDown(): boolean;
  /** For how long it has been left alone, since it asked for that or was tried all the same, in milliseconds. */
  cooldownElapsedMs(): number;
  /** Whether it has failed so often that others are asked before it. */
  isOpen(): boolean;
  /** Whether its last attempt failed. */
  hasRecentFailure(): boolean;
  /** How long to wait for it before another is asked as well, in milliseconds. */
  hedgeDelayMs(): number;
  /** Starts an attempt. Once an open endpoint's time is over, the first attempt is the probe that decides for it. */
  beginAttempt(): CircuitBreakerAttempt;
  startCooldown(milliseconds: number): void;
  /** Notes what a look at it beside the attempts found: for its state alone. */
  recordProbe(isWell: boolean): void;
}

/**
 * failing: it is asked after others, or what is known of it last is a failure. cooldown: it wants to be left alone.
 * unknown: nobody has asked it yet.
 */
export type CircuitBreakerState = "ok" | "failing" | "cooldown" | "unknown";

export interface CircuitBreakerAttempt {
  /** @param latencyMs time that it took; undefined: tells nothing about other attempts */
  recordSuccess(latencyMs: number | undefined): void;
  /**
   * Gives whether this failure is the one that opens the endpoint.
   * @param latencyMs time that an answer would have taken at least, where that is known
   */
  recordFailure(latencyMs?: number): boolean;
  /** It told nothing of the endpoint. */
  ignore(): void;
}

/** For how long an endpoint comes last after its failures: so many in a row, or among the last attempts. */
const OPEN_MS = 30_000;
const WINDOW_SIZE = 80;
const MAX_WINDOW_FAILURES = 20;
const MAX_CONSECUTIVE_FAILURES = 5;
const MAX_COOLDOWN_MS = 30_000;
/** Of how many answers the latency is kept. */
const LATENCY_SAMPLES = 64;
const MIN_HEDGE_DELAY_MS = 100;
const MAX_HEDGE_DELAY_MS = 1_000;
/** Enough for new connections, for an endpoint of which no latency is known yet. */
export const DEFAULT_HEDGE_DELAY_MS = 500;

export function createCircuitBreaker(now: () => number): CircuitBreaker {
  let restingSince = Number.NEGATIVE_INFINITY;
  let restingUntil = Number.NEGATIVE_INFINITY;
  let begunAt = Number.NEGATIVE_INFINITY;
  /** When the next probe may go; undefined: the breaker is closed. */
  let openUntil: number | undefined;
  /** How often it has opened: what began before the last time says nothing about now. */
  let openings = 0;
  let failuresInARow = 0;
  /** Whether the last attempts failed. */
  let window: boolean[] = [];
  let recentMs: number[] = [];
  let answeredAt: number | undefined;
  /** Whether what is known of it last is that it answered. */
  let isAnswering: boolean | undefined;
  const isCoolingDown = (): boolean => now() < restingUntil;
  const isOpen = (): boolean => openUntil !== undefined && now() < openUntil;
  function tell(isWell: boolean): void {
    isAnswering = isWell;
    if (isWell) answeredAt = now();
  }
  const note = (latencyMs: number | undefined): void => {
    if (latencyMs !== undefined) recentMs = [...recentMs, latencyMs].slice(-LATENCY_SAMPLES);
  };

  return {
    state() {
      if (isCoolingDown()) return "cooldown";
      if (isOpen() || isAnswering === false) return "failing";
      return isAnswering === undefined ? "unknown" : "ok";
    },
    lastSuccessAt: () => answeredAt,
    recordProbe: tell,
    isCoolingDown,
    cooldownElapsedMs: () => now() - Math.max(restingSince, begunAt),
    isOpen,
    hasRecentFailure: () => failuresInARow > 0,
    hedgeDelayMs() {
      const sorted = [...recentMs].sort((a, b) => a - b);
      const p95 = sorted[Math.ceil(sorted.length * 0.95) - 1] ?? DEFAULT_HEDGE_DELAY_MS;
      return Math.min(Math.max(p95, MIN_HEDGE_DELAY_MS), MAX_HEDGE_DELAY_MS);
    },
    startCooldown(milliseconds) {
      restingSince = now();
      restingUntil = Math.max(restingUntil, now() + Math.min(milliseconds, MAX_COOLDOWN_MS));
    },
    beginAttempt() {
      begunAt = now();
      const opening = openings;
      const rest = restingSince;
      const isProbe = openUntil !== undefined && now() >= openUntil;
      // While this probe is out, no other goes.
      if (isProbe) openUntil = now() + OPEN_MS;
      return {
        recordSuccess(latencyMs) {
          note(latencyMs);
          tell(true);
          // It is well again before its time; what began before the rest does not tell that.
          if (rest === restingSince) restingUntil = Number.NEGATIVE_INFINITY;
          if (opening !== openings) return;
          if (openUntil !== undefined) window = [];
          openUntil = undefined;
          failuresInARow = 0;
          window = [...window, false].slice(-WINDOW_SIZE);
        },
        ignore() {
          if (isProbe && opening === openings && openUntil !== undefined) openUntil = now();
        },
        recordFailure(latencyMs) {
          note(latencyMs);
          // To be slow is no failure yet.
          if (latencyMs === undefined) tell(false);
          if (opening !== openings) return false;
          failuresInARow += 1;
          window = [...window, true].slice(-WINDOW_SIZE);
          const failures = window.filter((each) => each).length;
          if (openUntil === undefined && failuresInARow < MAX_CONSECUTIVE_FAILURES && failures < MAX_WINDOW_FAILURES)
            return false;
          openings += 1;
          openUntil = now() + OPEN_MS;
          return true;
        },
      };
    },
  };
}
