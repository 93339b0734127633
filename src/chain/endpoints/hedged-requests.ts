import { ServiceError } from "../../errors.js";
import { createAbortScope } from "../../resilience/abort-scope.js";
import { UpstreamError } from "../../resilience/upstream-error.js";
import type { RpcCall, RpcCallResult } from "../chain-client.js";
import { RpcError } from "../json-rpc/rpc-codec.js";
import {
  type AttemptEvent,
  computePatienceMs,
  computeWaitMs,
  createAttemptPlan,
  decideNextAttempt,
  excludeUpstream,
  onHedgeDecided,
  recordAttemptEnd,
  recordAttemptStart,
  recordProbeEnd,
  recordProbeStart,
  type UpstreamCandidate,
  type WaitLimit,
} from "./attempt-plan.js";
import {
  type AttemptResult,
  concludeProbe,
  type EndpointAttempt,
  type LogSearchPolicy,
  startAttempt,
  type Upstream,
} from "./endpoint-attempt.js";
import { type EventLoopDelay, sleepOnTime, startStopwatch } from "./event-loop-delay.js";

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
  /** Longest duration of a request with all its attempts, in milliseconds. */
  readonly requestTimeoutMs: number;
  readonly eventLoopDelay: EventLoopDelay;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  /** Returns a random number from 0 up to 1. */
  readonly random: () => number;
  /** Waits before another attempt: resolves after a time in milliseconds, or when the signal aborts. */
  readonly sleep: Sleep;
}

/** @param purpose retry: after a failure. The others: beside an attempt that is running. */
export type Sleep = (ms: number, signal: AbortSignal, purpose: NonNullable<WaitLimit> | "retry") => Promise<void>;

/**
 * Gets the outcomes of all calls from one endpoint.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when no endpoint responds
 */
export type HedgedRequester = (
  calls: readonly RpcCall[],
  signal: AbortSignal,
  policy?: LogSearchPolicy,
) => Promise<readonly RpcCallResult[]>;

/** Methods that search, with the timeout of one attempt in milliseconds where the endpoint's latency is low. */
const SEARCH_TIMEOUTS_MS: ReadonlyMap<string, number> = new Map([["eth_getLogs", 5_000]]);
/** Maximum delay before the second attempt at the same endpoint. It doubles for the third. */
const RETRY_JITTER_MS = 100;

/**
 * Creates a requester that asks the best endpoint, hedges with the next one when the first is slow, and fails over to
 * other endpoints, or retries, when one fails. A slow attempt is not cut off: others begin beside it, and the first
 * response is used. The request ends with the caller's signal or after the request timeout; an attempt that has had no
 * response by then, although its endpoint had more time than it usually takes, counts as failed.
 */
export function createHedgedRequester(options: HedgedRequesterOptions): HedgedRequester {
  const { slug, listCandidates, isHealthy, closing, requestTimeoutMs, eventLoopDelay, now, random, sleep } = options;

  return async (calls, signal, policy) => {
    const method = [...new Set(calls.map((call) => call.method))].join(",");
    const searchTimeoutMs = Math.max(0, ...calls.map((call) => SEARCH_TIMEOUTS_MS.get(call.method) ?? 0));
    const isSearch = searchTimeoutMs > 0;
    const scope = createAbortScope(signal, requestTimeoutMs);
    const endMeasurement = eventLoopDelay.measure();
    const startTimer = (): (() => number) => startStopwatch(now, eventLoopDelay);
    const requestAgeMs = startTimer();
    /** Oldest first. */
    const running = new Set<EndpointAttempt>();
    let plan = createAttemptPlan<Upstream>(isSearch);
    let started = 0;
    let failure: UpstreamError | undefined;

    const onFailure = (upstream: Upstream, error: string): void => options.onFailure(upstream, method, error);

    const toCandidates = (): UpstreamCandidate<Upstream>[] =>
      listCandidates()
        .filter((upstream) => policy?.isEligible(upstream) !== false)
        .map((upstream) => ({
          upstream,
          isHealthy: isHealthy(upstream),
          hasRecentFailure: upstream.breaker.hasRecentFailure(),
          isProbeDue: upstream.breaker.isProbeDue(),
        }));

    function start(upstream: Upstream, isProbe = false): void {
      const timeoutMs = isSearch ? searchTimeoutMs + (upstream.breaker.latencyP95Ms() ?? 0) : undefined;
      running.add(
        startAttempt({
          upstream,
          calls,
          isProbe,
          order: started++,
          ageMs: startTimer(),
          signal: isProbe ? closing : scope.signal,
          timeoutMs: isProbe ? requestTimeoutMs : timeoutMs,
        }),
      );
    }

    /** Returns the first attempt to end; undefined when the time is over. */
    function waitForAttempt(until: WaitLimit): Promise<{ ended: EndpointAttempt; result: AttemptResult } | undefined> {
      const results = [...running].map(async (ended) => ({ ended, result: await ended.result }));
      const attempts = [...running].filter(({ isProbe }) => !isProbe);
      // Another attempt is due a while after the latest one, and a hedge after the first.
      const awaited = until === "hedge" ? attempts[0] : attempts.at(-1);
      if (awaited === undefined || until === undefined) return Promise.race(results);
      const { upstream } = awaited;
      const peer = toCandidates().find((candidate) => candidate.isHealthy && candidate.upstream !== upstream)?.upstream;
      const waitMs = computeWaitMs(until, {
        latencyMs: upstream.breaker.latencyP95Ms(),
        peerLatencyMs: peer?.breaker.latencyP95Ms(),
        requestTimeoutMs,
        remainingMs: requestTimeoutMs - requestAgeMs(),
      });
      if (waitMs === undefined) return Promise.race(results);
      const sleepFor = (ms: number, sleepSignal: AbortSignal): Promise<void> => sleep(ms, sleepSignal, until);
      const delay = sleepOnTime(Math.max(1, waitMs - awaited.ageMs()), scope.signal, sleepFor, eventLoopDelay);
      return Promise.race([...results, delay.then(() => undefined)]);
    }

    function recordSuccess({ upstream, attempt, order, ageMs }: EndpointAttempt): void {
      attempt.recordSuccess(isSearch ? undefined : ageMs());
      // Being overtaken by a later attempt counts as a failure. Otherwise an endpoint that hangs would stay the first.
      for (const overtaken of running) {
        if (overtaken.isProbe || overtaken.upstream === upstream || overtaken.order > order) continue;
        const hasOpened = overtaken.attempt.recordFailure(overtaken.ageMs());
        if (hasOpened) onFailure(overtaken.upstream, "is repeatedly slower than the next endpoint");
        running.delete(overtaken);
      }
    }

    function recordFailure(
      { upstream, attempt, isProbe }: EndpointAttempt,
      error: UpstreamError,
      isLate: boolean,
    ): void {
      const { status, retryAfterMs, message } = error;
      if (policy?.isRangeTooWide(upstream, error, isLate)) {
        attempt.ignore();
        plan = excludeUpstream(plan, upstream);
        return;
      }
      if (retryAfterMs !== undefined) upstream.breaker.startCooldown(retryAfterMs);
      // A rejected call says nothing about other calls, and neither does a search that is too long for the endpoint.
      const countsAsFailure = isProbe || (!(error instanceof RpcError) && (!isSearch || status === undefined));
      if (countsAsFailure) attempt.recordFailure();
      else attempt.ignore();
      if (isSearch || (status !== undefined && status >= 400 && status < 429)) plan = excludeUpstream(plan, upstream);
      onFailure(upstream, message);
    }

    /** Ends the attempts of a request that gets no response any more, because its time is over or its caller has left. */
    function recordSilence(): void {
      const silent = new Set<Upstream>();
      for (const each of running) {
        const { upstream, attempt, isProbe, ageMs } = each;
        const patienceMs = Math.min(computePatienceMs(upstream.breaker.latencyP95Ms()), 0.9 * requestTimeoutMs);
        if (closing.aborted || isSearch || isProbe || silent.has(upstream) || ageMs() < patienceMs) continue;
        silent.add(upstream);
        running.delete(each);
        attempt.recordFailure();
        onFailure(upstream, "did not answer in time");
      }
    }

    try {
      for (let event: AttemptEvent; ; ) {
        const step = decideNextAttempt(plan, toCandidates(), event);
        if (event === "hedge_delay_elapsed") plan = onHedgeDecided(plan);
        event = undefined;
        if (step.type === "fail" || step.type === "give_up") break;
        if (step.type === "wait") {
          const first = await waitForAttempt(step.until);
          if (first === undefined) {
            if (scope.signal.aborted) event = "aborted";
            else event = step.until === "hedge" ? "hedge_delay_elapsed" : "patience_elapsed";
            continue;
          }
          const { ended, result } = first;
          if ("error" in result && (scope.signal.aborted || closing.aborted)) {
            event = "aborted";
            continue;
          }
          running.delete(ended);
          plan = ended.isProbe ? recordProbeEnd(plan) : recordAttemptEnd(plan);
          if ("outcomes" in result) {
            recordSuccess(ended);
            return result.outcomes;
          }
          if (!(result.error instanceof UpstreamError)) {
            // Thrown before the request was sent: it says nothing about the endpoint, or the attempts that are running.
            ended.attempt.ignore();
            if (plan.runningAttempts === 0) throw result.error;
            plan = excludeUpstream(plan, ended.upstream);
            continue;
          }
          // A rejection by a node tells more than the failures of unreachable ones.
          if (!(failure instanceof RpcError)) failure = result.error;
          recordFailure(ended, result.error, result.isLate);
          continue;
        }
        const { type, upstream } = step;
        if (type === "start" && step.previousAttempts > 0) {
          const jitterMs = random() * RETRY_JITTER_MS * 2 ** (step.previousAttempts - 1);
          await sleep(jitterMs, scope.signal, "retry");
        }
        if (scope.signal.aborted) event = "aborted";
        else {
          plan =
            type === "probe" ? recordProbeStart(plan, upstream) : recordAttemptStart(plan, upstream, type === "repeat");
          start(upstream, type === "probe");
        }
      }
      recordSilence();
    } finally {
      const answeredMs = requestAgeMs();
      scope.cancel();
      endMeasurement();
      for (const attempt of running) {
        if (attempt.isProbe) void concludeProbe(attempt, answeredMs, closing);
        else attempt.attempt.ignore();
      }
    }
    const cause = failure ?? new UpstreamError("did not answer in time", { kind: "timeout" });
    throw new ServiceError("UPSTREAM_UNAVAILABLE", `no RPC endpoint of ${slug} responded`, { cause });
  };
}
