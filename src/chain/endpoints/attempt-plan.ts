// Decides what a hedged request does next. Pure: no timers and no requests here. `U` identifies an upstream.

/** Progress of one request over several upstreams. */
export interface AttemptPlan<U> {
  /** Log searches are neither hedged nor sent twice to the same endpoint: that would only double the work. */
  readonly isSearch: boolean;
  readonly attemptsByUpstream: ReadonlyMap<U, number>;
  /** Upstreams that would give the same response again. */
  readonly exhausted: ReadonlySet<U>;
  readonly remainingAttempts: number;
  readonly runningAttempts: number;
  readonly mayHedge: boolean;
}

/** An upstream that may get a request now. */
export interface UpstreamCandidate<U> {
  readonly upstream: U;
  readonly isHealthy: boolean;
  readonly hasRecentFailure: boolean;
}

/**
 * - start: begin an attempt; `previousAttempts` is the number of earlier attempts at the same upstream
 * - hedge: begin an attempt beside the running one
 * - wait: wait for a running attempt; `untilHedge`: no longer than the hedge delay
 * - give_up: the caller has left, or the process is closing
 * - fail: no upstream is left to try
 */
export type AttemptDecision<U> =
  | { readonly type: "start"; readonly upstream: U; readonly previousAttempts: number }
  | { readonly type: "hedge"; readonly upstream: U }
  | { readonly type: "wait"; readonly untilHedge: boolean }
  | { readonly type: "give_up" }
  | { readonly type: "fail" };

/** What has happened since the last decision. */
export type AttemptEvent = "hedge_delay_elapsed" | "aborted" | undefined;

/** Attempts for one request, the hedge included. One attempt is one HTTP request where the endpoint accepts batches. */
export const MAX_ATTEMPTS = 3;

export function createAttemptPlan<U>(isSearch: boolean): AttemptPlan<U> {
  return {
    isSearch,
    attemptsByUpstream: new Map(),
    exhausted: new Set(),
    remainingAttempts: MAX_ATTEMPTS,
    runningAttempts: 0,
    mayHedge: !isSearch,
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
  if (event === "hedge_delay_elapsed" && plan.mayHedge) {
    const peer = candidates.find(({ upstream, isHealthy }) => isHealthy && countAttempts(plan, upstream) === 0);
    if (peer !== undefined && plan.remainingAttempts > 0) return { type: "hedge", upstream: peer.upstream };
    return { type: "wait", untilHedge: false };
  }
  return { type: "wait", untilHedge: plan.mayHedge };
}

/** Chooses the upstream with the fewest attempts. */
function decideStart<U>(plan: AttemptPlan<U>, candidates: readonly UpstreamCandidate<U>[]): AttemptDecision<U> {
  // A search waits long and has no hedge, so it avoids endpoints that have just failed.
  const failurePenalty = ({ hasRecentFailure }: UpstreamCandidate<U>): number =>
    plan.isSearch && hasRecentFailure ? 1 : 0;
  const [next] = candidates
    .filter(({ upstream }) => !plan.exhausted.has(upstream))
    .sort(
      (a, b) =>
        countAttempts(plan, a.upstream) - countAttempts(plan, b.upstream) || failurePenalty(a) - failurePenalty(b),
    );
  if (next === undefined || plan.remainingAttempts === 0) return { type: "fail" };
  return { type: "start", upstream: next.upstream, previousAttempts: countAttempts(plan, next.upstream) };
}

export function recordAttemptStart<U>(plan: AttemptPlan<U>, upstream: U): AttemptPlan<U> {
  return {
    ...plan,
    attemptsByUpstream: new Map(plan.attemptsByUpstream).set(upstream, countAttempts(plan, upstream) + 1),
    remainingAttempts: plan.remainingAttempts - 1,
    runningAttempts: plan.runningAttempts + 1,
  };
}

export function recordAttemptEnd<U>(plan: AttemptPlan<U>): AttemptPlan<U> {
  return { ...plan, runningAttempts: plan.runningAttempts - 1 };
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
