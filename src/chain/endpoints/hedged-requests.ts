import { ServiceError } from "../../errors.js";
import { createAbortScope } from "../../resilience/abort-scope.js";
import type { CircuitBreaker, CircuitBreakerAttempt } from "../../resilience/circuit-breaker.js";
import { UpstreamError } from "../../resilience/upstream-error.js";
import type { RpcCall, RpcCallResult } from "../chain-client.js";
import { RpcError } from "../json-rpc/rpc-codec.js";
import {
  type AttemptEvent,
  createAttemptPlan,
  decideNextAttempt,
  excludeUpstream,
  onHedgeDecided,
  recordAttemptEnd,
  recordAttemptStart,
  type UpstreamCandidate,
} from "./attempt-plan.js";
import type { Endpoint } from "./endpoint.js";

/** One endpoint of a pool and its health. */
export interface Upstream {
  readonly endpoint: Endpoint;
  readonly breaker: CircuitBreaker;
}

export interface HedgedRequesterOptions {
  /** Slug of the chain, for error messages. */
  readonly slug: string;
  /** Returns the endpoints that may get a request now, best first. */
  readonly listCandidates: () => readonly Upstream[];
  /** Returns whether an endpoint is good enough for a hedge. */
  readonly isHealthy: (upstream: Upstream) => boolean;
  readonly onFailure: (upstream: Upstream, method: string, error: string) => void;
  /** Once it aborts, nothing is retried and no failure counts. */
  readonly closing: AbortSignal;
  /** Timeout of one attempt at methods that do not search, in milliseconds. */
  readonly attemptTimeoutMs: number;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  /** Returns a random number from 0 up to 1. */
  readonly random: () => number;
  /** Waits before a hedge or a retry: resolves after a time in milliseconds, or when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** Extra rules for log searches: endpoints differ in how many blocks they search at once. */
export interface LogSearchPolicy {
  /** Returns whether an endpoint may get the request. */
  readonly isEligible: (upstream: Upstream) => boolean;
  /**
   * Called for every failure. Returns whether it only means that the block range is too wide for the endpoint, which
   * does not count as a failure.
   * @param isLate whether the attempt timed out
   */
  readonly isRangeTooWide: (upstream: Upstream, error: UpstreamError, isLate: boolean) => boolean;
  /** Called before each attempt; what it throws ends the request. */
  readonly onAttempt?: (() => void) | undefined;
}

/**
 * Gets the outcomes of all calls from one endpoint.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when no endpoint responds
 */
export type HedgedRequester = (
  calls: readonly RpcCall[],
  signal: AbortSignal,
  policy?: LogSearchPolicy,
) => Promise<readonly RpcCallResult[]>;

interface RunningAttempt {
  readonly upstream: Upstream;
  readonly attempt: CircuitBreakerAttempt;
  readonly startedAt: number;
  readonly isHedge: boolean;
  /** Never rejects. */
  readonly result: Promise<AttemptResult>;
}

type AttemptResult =
  | { readonly outcomes: readonly RpcCallResult[] }
  | { readonly error: unknown; readonly isLate: boolean };

/** Methods that search, with the timeout of one attempt in milliseconds. */
const SEARCH_TIMEOUTS_MS: ReadonlyMap<string, number> = new Map([["eth_getLogs", 5_000]]);
/** Maximum delay before the second attempt at the same endpoint. It doubles for the third. */
const RETRY_JITTER_MS = 100;

/**
 * Creates a requester that asks the best endpoint, hedges with the next one when the first is slow, and fails over to
 * other endpoints, or retries, when one fails.
 */
export function createHedgedRequester(options: HedgedRequesterOptions): HedgedRequester {
  const { slug, listCandidates, isHealthy, onFailure, closing, attemptTimeoutMs, now, random, sleep } = options;

  return async (calls, signal, policy) => {
    const method = [...new Set(calls.map((call) => call.method))].join(",");
    const searchTimeoutMs = Math.max(0, ...calls.map((call) => SEARCH_TIMEOUTS_MS.get(call.method) ?? 0));
    const isSearch = searchTimeoutMs > 0;
    const scope = createAbortScope(signal);
    const running = new Set<RunningAttempt>();
    let plan = createAttemptPlan<Upstream>(isSearch);
    let failure: UpstreamError | undefined;

    function toCandidates(): UpstreamCandidate<Upstream>[] {
      return listCandidates()
        .filter((upstream) => policy?.isEligible(upstream) !== false)
        .map((upstream) => ({
          upstream,
          isHealthy: isHealthy(upstream),
          hasRecentFailure: upstream.breaker.hasRecentFailure(),
        }));
    }

    async function send({ endpoint }: Upstream): Promise<AttemptResult> {
      const attemptScope = createAbortScope(scope.signal, Math.max(attemptTimeoutMs, searchTimeoutMs));
      try {
        return { outcomes: await endpoint.sendBatch(calls, attemptScope.signal) };
      } catch (error) {
        return { error, isLate: attemptScope.signal.aborted };
      } finally {
        attemptScope.cancel();
      }
    }

    function start(upstream: Upstream, isHedge: boolean): void {
      policy?.onAttempt?.();
      plan = recordAttemptStart(plan, upstream);
      const attempt = upstream.breaker.beginAttempt();
      running.add({ upstream, attempt, startedAt: now(), isHedge, result: send(upstream) });
    }

    /** Returns the first attempt to end; undefined when the hedge delay is over. */
    function waitForAttempt(
      untilHedge: boolean,
    ): Promise<{ ended: RunningAttempt; result: AttemptResult } | undefined> {
      const results = [...running].map(async (ended) => ({ ended, result: await ended.result }));
      const [slowest] = running;
      if (!untilHedge || slowest === undefined) return Promise.race(results);
      const hedgeDelay = sleep(slowest.upstream.breaker.hedgeDelayMs(), scope.signal).then(() => undefined);
      return Promise.race([...results, hedgeDelay]);
    }

    function recordSuccess({ attempt, startedAt, isHedge }: RunningAttempt): void {
      attempt.recordSuccess(isSearch ? undefined : now() - startedAt);
      if (!isHedge) return;
      // Being overtaken by a later attempt counts as a failure. Otherwise an endpoint that hangs would stay the first.
      for (const overtaken of running) {
        const hasOpened = overtaken.attempt.recordFailure(now() - overtaken.startedAt);
        if (hasOpened) onFailure(overtaken.upstream, method, "is repeatedly slower than the next endpoint");
      }
    }

    function recordFailure({ upstream, attempt }: RunningAttempt, error: UpstreamError, isLate: boolean): void {
      const { status, retryAfterMs, message } = error;
      if (policy?.isRangeTooWide(upstream, error, isLate)) {
        attempt.ignore();
        plan = excludeUpstream(plan, upstream);
        return;
      }
      if (retryAfterMs !== undefined) upstream.breaker.startCooldown(retryAfterMs);
      // A rejected call says nothing about other calls, and neither does a search that is too long for the endpoint.
      const countsAsFailure = !(error instanceof RpcError) && (!isSearch || status === undefined);
      if (countsAsFailure) attempt.recordFailure();
      else attempt.ignore();
      if (isSearch || (status !== undefined && status >= 400 && status < 429)) plan = excludeUpstream(plan, upstream);
      onFailure(upstream, method, message);
    }

    try {
      for (let event: AttemptEvent; ; ) {
        const step = decideNextAttempt(plan, toCandidates(), event);
        if (event === "hedge_delay_elapsed") plan = onHedgeDecided(plan);
        event = undefined;
        if (step.type === "fail" || step.type === "give_up") break;
        if (step.type === "start") {
          const { upstream, previousAttempts } = step;
          if (previousAttempts > 0) await sleep(random() * RETRY_JITTER_MS * 2 ** (previousAttempts - 1), scope.signal);
          if (scope.signal.aborted) event = "aborted";
          else start(upstream, false);
          continue;
        }
        if (step.type === "hedge") {
          start(step.upstream, true);
          continue;
        }
        const first = await waitForAttempt(step.untilHedge);
        if (first === undefined) {
          event = "hedge_delay_elapsed";
          continue;
        }
        const { ended, result } = first;
        running.delete(ended);
        plan = recordAttemptEnd(plan);
        if ("outcomes" in result) {
          recordSuccess(ended);
          return result.outcomes;
        }
        if (!(result.error instanceof UpstreamError)) throw result.error;
        // The caller has left or its deadline has passed, or the process is closing: not the endpoint's failure.
        if (signal.aborted || closing.aborted) {
          ended.attempt.ignore();
          event = "aborted";
          continue;
        }
        // A rejection by a node tells more than the failures of unreachable ones.
        if (!(failure instanceof RpcError)) failure = result.error;
        recordFailure(ended, result.error, result.isLate);
      }
    } finally {
      scope.cancel();
      for (const { attempt } of running) attempt.ignore();
    }
    throw new ServiceError("UPSTREAM_UNAVAILABLE", `no RPC endpoint of ${slug} responded`, { cause: failure });
  };
}
