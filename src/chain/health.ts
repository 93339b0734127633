/** What the attempts at an endpoint tell of it: circuit breaker, latency, and rest where it asked for it. */
export interface Health {
  /** Whether it is left alone because it asked for that, or serves another chain. */
  isResting(): boolean;
  /** For how long it has been left alone, since it asked for that or was tried all the same, in milliseconds. */
  restedMs(): number;
  /** Whether it has failed so often that others are asked before it. */
  isOpen(): boolean;
  /** Whether its last attempt failed. */
  hasFailed(): boolean;
  /** How long to wait for it before another is asked as well, in milliseconds. */
  hedgeMs(): number;
  /** Starts an attempt. Once an open endpoint's time is over, the first attempt is the probe that decides for it. */
  begin(): Attempt;
  rest(milliseconds: number): void;
}

export interface Attempt {
  /** @param latencyMs time that it took; undefined: tells nothing about other attempts */
  succeeded(latencyMs: number | undefined): void;
  /**
   * Gives whether this failure is the one that opens the endpoint.
   * @param latencyMs time that an answer would have taken at least, where that is known
   */
  failed(latencyMs?: number): boolean;
  /** It told nothing of the endpoint. */
  wasted(): void;
}

/** For how long an endpoint comes last after its failures: so many in a row, or among the last attempts. */
const openMs = 30_000;
const windowSize = 80;
const maxFailures = 20;
const maxFailuresInARow = 5;
const maxRestMs = 30_000;
/** Of how many answers the latency is kept. */
const latencies = 64;
const minHedgeMs = 100;
const maxHedgeMs = 1_000;
/** Enough for new connections, for an endpoint of which no latency is known yet. */
const firstHedgeMs = 500;

export function createHealth(now: () => number): Health {
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
  const note = (latencyMs: number | undefined): void => {
    if (latencyMs !== undefined) recentMs = [...recentMs, latencyMs].slice(-latencies);
  };

  return {
    isResting: () => now() < restingUntil,
    restedMs: () => now() - Math.max(restingSince, begunAt),
    isOpen: () => openUntil !== undefined && now() < openUntil,
    hasFailed: () => failuresInARow > 0,
    hedgeMs() {
      const sorted = [...recentMs].sort((a, b) => a - b);
      const p95 = sorted[Math.ceil(sorted.length * 0.95) - 1] ?? firstHedgeMs;
      return Math.min(Math.max(p95, minHedgeMs), maxHedgeMs);
    },
    rest(milliseconds) {
      restingSince = now();
      restingUntil = Math.max(restingUntil, now() + Math.min(milliseconds, maxRestMs));
    },
    begin() {
      begunAt = now();
      const opening = openings;
      const rest = restingSince;
      const isProbe = openUntil !== undefined && now() >= openUntil;
      // While this probe is out, no other goes.
      if (isProbe) openUntil = now() + openMs;
      return {
        succeeded(latencyMs) {
          note(latencyMs);
          // It is well again before its time; what began before the rest does not tell that.
          if (rest === restingSince) restingUntil = Number.NEGATIVE_INFINITY;
          if (opening !== openings) return;
          if (openUntil !== undefined) window = [];
          openUntil = undefined;
          failuresInARow = 0;
          window = [...window, false].slice(-windowSize);
        },
        wasted() {
          if (isProbe && opening === openings && openUntil !== undefined) openUntil = now();
        },
        failed(latencyMs) {
          note(latencyMs);
          if (opening !== openings) return false;
          failuresInARow += 1;
          window = [...window, true].slice(-windowSize);
          const failures = window.filter((each) => each).length;
          if (openUntil === undefined && failuresInARow < maxFailuresInARow && failures < maxFailures) return false;
          openings += 1;
          openUntil = now() + openMs;
          return true;
        },
      };
    },
  };
}
