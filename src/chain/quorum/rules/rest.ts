// How long an endpoint rests that was outvoted. Pure. Times are milliseconds on the monotonic clock.

export interface RestState {
  /** How often it was outvoted without a long time of agreement between. */
  readonly strikes: number;
  readonly restUntil: number;
}

export const INITIAL_REST_STATE: RestState = { strikes: 0, restUntil: Number.NEGATIVE_INFINITY };

/** The first rest. Each further one is twice as long. */
const MIN_REST_MS = 30_000;
const MAX_REST_MS = 30 * 60_000;
/** After this time without being outvoted, a rest is as short as the first. */
const FORGET_MS = 60 * 60_000;

export function isResting({ restUntil }: RestState, now: number): boolean {
  return now < restUntil;
}

export function onOutvoted(state: RestState, now: number): RestState {
  // What was asked before the rest began, or because too few others were left, does not count again.
  if (isResting(state, now)) return state;
  const strikes = now - state.restUntil > FORGET_MS ? 1 : state.strikes + 1;
  return { strikes, restUntil: now + computeRestMs(strikes) };
}

export function computeRestMs(strikes: number): number {
  return Math.min(MIN_REST_MS * 2 ** (strikes - 1), MAX_REST_MS);
}
