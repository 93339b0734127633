// Decides what a hedged request does next. Pure: no timers and no requests here. `U` identifies an upstream.

/** Progress of one request over several upstreams. */
export interface AttemptPlan<U> {
  /** Log searches have one attempt at a time and one per endpoint: others would only double the work. */
  readonly isSearch: boolean;
  readonly attemptsByUpstream: ReadonlyMap<U, number>;
  /** Upstreams that would give the same response again. */
  readonly exhausted: ReadonlySet<U>;
  /** Attempts that may still be made because others failed or are slow. */
  readonly remainingAttempts: number;
  /** Late attempts that may still be repeated, beyond those. */
  readonly remainingRepeats: number;
  /** Without probes. */
  readonly runningAttempts: number;
  readonly runningProbes: number;
  readonly mayHedge: boolean;
  readonly mayProbe: boolean;
}

/** An upstream that may get a request now. */
export interface UpstreamCandidate<U> {
  readonly upstream: U;
  readonly isHealthy: boolean;
  readonly hasRecentFailure: boolean;
  /** Whether its breaker is open and the next attempt decides about closing it. */
  readonly isProbeDue: boolean;
}

/**
 * - start: begin an attempt; `previousAttempts` is the number of earlier attempts at the same upstream
 * - hedge, repeat: begin an attempt beside those that are running; repeat: at an upstream that already has one
 * - probe: send the request also to an upstream whose breaker is open; nothing waits for it
 * - wait: wait for a running attempt, no longer than `until` says
 * - give_up: the caller has left, or the process is closing
 * - fail: no upstream is left to try
 */
export type AttemptDecision<U> =
  | { readonly type: "start"; readonly upstream: U; readonly previousAttempts: number }
  | { readonly type: "hedge" | "repeat" | "probe"; readonly upstream: U }
  | { readonly type: "wait"; readonly until: WaitLimit }
  | { readonly type: "give_up" }
  | { readonly type: "fail" };

/**
 * hedge: the hedge delay of the first attempt. failover: the patience with the latest attempt, after which another
 * upstream gets one too. repeat: the same and at least the repeat interval, since no other upstream is left.
 */
export type WaitLimit = "hedge" | "failover" | "repeat" | undefined;

/** What has happened since the last decision. */
export type AttemptEvent = "hedge_delay_elapsed" | "patience_elapsed" | "aborted" | undefined;

/** Attempts for one request, the hedge included. One attempt is one HTTP request where the endpoint accepts batches. */
export const MAX_ATTEMPTS = 3;
const MIN_HEDGE_DELAY_MS = 100;
/** An endpoint that is slower than this is left behind by faster ones. */
export const MAX_HEDGE_DELAY_MS = 1_000;
/** Hedge delay before any latency is known: enough to open a connection. */
export const DEFAULT_HEDGE_DELAY_MS = 500;
const MIN_PATIENCE_MS = 1_500;
/** An endpoint that always takes two seconds is not late before the fourth. */
const PATIENCE_FACTOR = 2;
/** A connection may be dead while its endpoint is well: a late attempt is repeated after this time, in milliseconds. */
const MIN_REPEAT_MS = 3_000;
/** Bounds the attempts that a request has at the same time at endpoints that hang. */
const MAX_REPEATS = 4;

export function createAttemptPlan<U>(isSearch: boolean): AttemptPlan<U> {
  return {
    isSearch,
    attemptsByUpstream: new Map(),
    exhausted: new Set(),
    remainingAttempts: MAX_ATTEMPTS,
    remainingRepeats: MAX_REPEATS,
    runningAttempts: 0,
    runningProbes: 0,
    mayHedge: !isSearch,
    mayProbe: !isSearch,
  };
}

/** @param candidates best first */
export function decideNextAttempt<U>(
  plan: AttemptPlan<U>,
  candidates: readonly UpstreamCandidate<U>[],
  event: AttemptEvent,
): AttemptDecision<U> {
  if (event === "aborted") return { type: "give_up" };
  if (plan.runningAttempts === 0) return decideStart(plan, candidates);
  if (plan.isSearch) return { type: "wait", until: undefined };
  const untried = candidates.filter(({ upstream }) => countAttempts(plan, upstream) === 0);
  const probed = plan.mayProbe ? untried.find(({ isProbeDue }) => isProbeDue) : undefined;
  if (probed !== undefined) return { type: "probe", upstream: probed.upstream };
  if (event === "hedge_delay_elapsed" && plan.mayHedge) {
    const peer = untried.find(({ isHealthy }) => isHealthy);
    if (peer !== undefined && plan.remainingAttempts > 0) return { type: "hedge", upstream: peer.upstream };
  } else if (plan.mayHedge) {
    return { type: "wait", until: "hedge" };
  }
  const [next] = plan.remainingAttempts > 0 ? untried : [];
  const repeated = plan.remainingRepeats > 0 ? findLeastAttempted(plan, candidates) : undefined;
  if (event !== "patience_elapsed")
    return { type: "wait", until: next !== undefined ? "failover" : repeated && "repeat" };
  if (next !== undefined) return { type: "hedge", upstream: next.upstream };
  return repeated === undefined ? { type: "wait", until: undefined } : { type: "repeat", upstream: repeated };
}

/** Chooses the upstream with the fewest attempts. */
function decideStart<U>(plan: AttemptPlan<U>, candidates: readonly UpstreamCandidate<U>[]): AttemptDecision<U> {
  const next = findLeastAttempted(plan, candidates);
  if (next !== undefined && plan.remainingAttempts > 0)
    return { type: "start", upstream: next, previousAttempts: countAttempts(plan, next) };
  return plan.runningProbes > 0 ? { type: "wait", until: undefined } : { type: "fail" };
}

function findLeastAttempted<U>(plan: AttemptPlan<U>, candidates: readonly UpstreamCandidate<U>[]): U | undefined {
  // A search waits long and has no hedge, so it avoids endpoints that have just failed.
  const failurePenalty = ({ hasRecentFailure }: UpstreamCandidate<U>): number =>
    plan.isSearch && hasRecentFailure ? 1 : 0;
  const [next] = candidates
    .filter(({ upstream }) => !plan.exhausted.has(upstream))
    .sort(
      (a, b) =>
        countAttempts(plan, a.upstream) - countAttempts(plan, b.upstream) || failurePenalty(a) - failurePenalty(b),
    );
  return next?.upstream;
}

/** What a wait depends on, in milliseconds. Latencies are the 95th percentile of the last ones; undefined: none is known. */
export interface WaitConditions {
  /** Of the upstream that is waited for. */
  readonly latencyMs: number | undefined;
  /** Of the upstream that would get the hedge. */
  readonly peerLatencyMs?: number | undefined;
  /** Longest duration of the request. */
  readonly requestTimeoutMs: number;
  /** Time until the request ends. */
  readonly remainingMs: number;
}

/**
 * Returns how long to wait for a response before hedging, in milliseconds. It is limited so that an endpoint is left behind
 * by a faster one. A peer that is not expected to respond earlier is asked only when the response is later than usual:
 * where all endpoints are slow, hedging would double their load and help nobody.
 */
export function computeHedgeDelayMs({
  latencyMs,
  peerLatencyMs,
  requestTimeoutMs,
}: Omit<WaitConditions, "remainingMs">): number {
  const delayMs = Math.min(Math.max(latencyMs ?? DEFAULT_HEDGE_DELAY_MS, MIN_HEDGE_DELAY_MS), MAX_HEDGE_DELAY_MS);
  if (latencyMs === undefined || peerLatencyMs === undefined || delayMs + peerLatencyMs < latencyMs) return delayMs;
  // The peer needs its time too.
  return Math.max(delayMs, Math.min(latencyMs, requestTimeoutMs - 1.5 * peerLatencyMs));
}

/**
 * Returns after how many milliseconds without a response another attempt is due, and the attempt counts as failed if it
 * gets none. It follows the upstream's own latency.
 */
export function computePatienceMs(latencyMs: number | undefined): number {
  return Math.max(PATIENCE_FACTOR * (latencyMs ?? 0), MIN_PATIENCE_MS);
}

/** Returns for how long to wait, in milliseconds; undefined: until the request ends. */
export function computeWaitMs(until: WaitLimit, conditions: WaitConditions): number | undefined {
  if (until === undefined) return undefined;
  if (until === "hedge") return computeHedgeDelayMs(conditions);
  const { latencyMs, requestTimeoutMs, remainingMs } = conditions;
  const patienceMs = computePatienceMs(latencyMs);
  if (until === "failover") return patienceMs;
  const repeatMs = Math.max(patienceMs, MIN_REPEAT_MS, requestTimeoutMs / (MAX_REPEATS + 1));
  // An attempt that could not get half of the usual time would be in vain.
  return repeatMs * 1.5 > remainingMs ? undefined : repeatMs;
}

/** @param isRepeat whether it only repeats a late attempt at the same upstream */
export function recordAttemptStart<U>(plan: AttemptPlan<U>, upstream: U, isRepeat = false): AttemptPlan<U> {
  return {
    ...countAttempt(plan, upstream),
    remainingAttempts: plan.remainingAttempts - (isRepeat ? 0 : 1),
    remainingRepeats: plan.remainingRepeats - (isRepeat ? 1 : 0),
    runningAttempts: plan.runningAttempts + 1,
  };
}

export function recordAttemptEnd<U>(plan: AttemptPlan<U>): AttemptPlan<U> {
  return { ...plan, runningAttempts: plan.runningAttempts - 1 };
}

/** There is at most one probe beside a request. */
export function recordProbeStart<U>(plan: AttemptPlan<U>, upstream: U): AttemptPlan<U> {
  return { ...countAttempt(plan, upstream), runningProbes: plan.runningProbes + 1, mayProbe: false };
}

export function recordProbeEnd<U>(plan: AttemptPlan<U>): AttemptPlan<U> {
  return { ...plan, runningProbes: plan.runningProbes - 1 };
}

/** The hedge delay is over: there is at most one hedge, whether or not there was an upstream for it. */
export function onHedgeDecided<U>(plan: AttemptPlan<U>): AttemptPlan<U> {
  return { ...plan, mayHedge: false };
}

export function excludeUpstream<U>(plan: AttemptPlan<U>, upstream: U): AttemptPlan<U> {
  return { ...plan, exhausted: new Set(plan.exhausted).add(upstream) };
}

function countAttempts<U>({ attemptsByUpstream }: AttemptPlan<U>, upstream: U): number {
  return attemptsByUpstream.get(upstream) ?? 0;
}

function countAttempt<U>(plan: AttemptPlan<U>, upstream: U): AttemptPlan<U> {
  const attempts = countAttempts(plan, upstream) + 1;
  return { ...plan, attemptsByUpstream: new Map(plan.attemptsByUpstream).set(upstream, attempts) };
}
