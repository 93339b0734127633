import { ServiceError } from "../../errors.js";
import { createAbortScope } from "../../resilience/abort-scope.js";
import type { CircuitBreaker, CircuitBreakerAttempt } from "../../resilience/circuit-breaker.js";
import { sleep } from "../../resilience/clock.js";
import { UpstreamError } from "../../resilience/upstream-error.js";
import type { RpcCall, RpcOutcome } from "../chain-client.js";
import { RpcError } from "../json-rpc/rpc-codec.js";
import type { Endpoint } from "./endpoint.js";

/** One endpoint of a pool, with what is known of it. */
export interface Upstream {
  readonly endpoint: Endpoint;
  readonly breaker: CircuitBreaker;
}

export interface HedgedRequesterOptions {
  /** Slug of the chain, for the error. */
  readonly slug: string;
  /** The endpoints that may be asked now, best first. */
  readonly listCandidates: () => readonly Upstream[];
  /** Whether an endpoint is good enough to be asked beside another. */
  readonly isHealthy: (member: Upstream) => boolean;
  readonly onFailure: (member: Upstream, method: string, problem: string) => void;
  /** After it nothing is sent again and no failure counts. */
  readonly closing: AbortSignal;
  /** Longest time for one attempt at quick methods, in milliseconds. */
  readonly attemptTimeoutMs: number;
  readonly now: () => number;
  /** From 0 up to 1. */
  readonly random: () => number;
}

/** What a search adds to a read: endpoints differ in how much they search at once. */
export interface LogSearchPolicy {
  /** Whether an endpoint may be asked. */
  readonly isEligible: (member: Upstream) => boolean;
  /**
   * Told of every failure. Gives whether it only means that the search is too wide for the endpoint, which is no trouble.
   * @param isLate whether it did not answer in time
   */
  readonly isRangeTooWide: (member: Upstream, error: UpstreamError, isLate: boolean) => boolean;
}

/**
 * Has one endpoint answer all calls.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when none does.
 */
export type HedgedRequester = (
  calls: readonly RpcCall[],
  signal: AbortSignal,
  rules?: LogSearchPolicy,
) => Promise<readonly RpcOutcome[]>;

/** An attempt that is under way. */
interface RunningAttempt {
  readonly upstream: Upstream;
  readonly attempt: CircuitBreakerAttempt;
  readonly startedAt: number;
  readonly isHedge: boolean;
  /** What it comes to. Never rejects. */
  readonly result: Promise<AttemptResult>;
}

type AttemptResult =
  | { readonly outcomes: readonly RpcOutcome[] }
  | { readonly error: unknown; readonly isLate: boolean };

/**
 * Methods that search, with the longest time for one attempt at them, in milliseconds. They are neither hedged nor sent
 * again to the same endpoint: that would only double the work.
 */
const SEARCH_TIMEOUTS_MS: ReadonlyMap<string, number> = new Map([["eth_getLogs", 5_000]]);
/** Most attempts for one read, the hedge included. One is one HTTP request where the endpoint takes batches. */
const MAX_ATTEMPTS = 3;
/** Longest wait before the second attempt at one endpoint; before the third, twice as long. */
const RETRY_JITTER_MS = 100;

/** Reads from the best endpoint; from the next one too when it is slow, and from others, or again, when it fails. */
export function createHedgedRequester(options: HedgedRequesterOptions): HedgedRequester {
  const { slug, listCandidates, isHealthy, onFailure, closing, attemptTimeoutMs, now, random } = options;

  return async (calls, signal, rules) => {
    const method = [...new Set(calls.map((call) => call.method))].join(",");
    const longestMs = Math.max(0, ...calls.map((call) => SEARCH_TIMEOUTS_MS.get(call.method) ?? 0));
    const isQuick = longestMs === 0;
    const ending = createAbortScope(signal);
    const running = new Set<RunningAttempt>();
    const sends = new Map<Upstream, number>();
    /** Endpoints that would say the same again. */
    const done = new Set<Upstream>();
    const countOf = (member: Upstream): number => sends.get(member) ?? 0;
    let failure: UpstreamError | undefined;
    let left = MAX_ATTEMPTS;
    let mayHedge = isQuick;

    /** A search waits long and asks nobody else meanwhile: not for one that did not answer just now. */
    const doubtsOf = ({ breaker }: Upstream): number => (isQuick || !breaker.hasRecentFailure() ? 0 : 1);

    async function ask({ endpoint }: Upstream): Promise<AttemptResult> {
      const limit = createAbortScope(ending.signal, Math.max(attemptTimeoutMs, longestMs));
      try {
        return { outcomes: await endpoint.sendBatch(calls, limit.signal) };
      } catch (error) {
        return { error, isLate: limit.signal.aborted };
      } finally {
        limit.cancel();
      }
    }

    function start(upstream: Upstream, isHedge: boolean): void {
      left -= 1;
      sends.set(upstream, countOf(upstream) + 1);
      const attempt = upstream.breaker.beginAttempt();
      running.add({ upstream, attempt, startedAt: now(), isHedge, result: ask(upstream) });
    }

    /** Starts an attempt at an endpoint that was asked least; false when there is none. */
    async function startNext(): Promise<boolean> {
      const [next] = listCandidates()
        .filter((member) => !done.has(member) && rules?.isEligible(member) !== false)
        .sort((a, b) => countOf(a) - countOf(b) || doubtsOf(a) - doubtsOf(b));
      if (next === undefined || left === 0) return false;
      const before = countOf(next);
      if (before > 0) await sleep(random() * RETRY_JITTER_MS * 2 ** (before - 1), ending.signal);
      if (ending.signal.aborted) return false;
      start(next, false);
      return true;
    }

    /** Asks another endpoint beside the one that is slow. */
    function hedge(): void {
      mayHedge = false;
      const peer = listCandidates().find((member) => isHealthy(member) && countOf(member) === 0);
      if (peer !== undefined && left > 0) start(peer, true);
    }

    /** The first attempt to end; undefined when it is time to ask another endpoint. */
    function firstOf(
      runs: readonly RunningAttempt[],
    ): Promise<{ run: RunningAttempt; end: AttemptResult } | undefined> {
      const ends = runs.map(async (run) => ({ run, end: await run.result }));
      const [slowest] = runs;
      if (!mayHedge || slowest === undefined) return Promise.race(ends);
      return Promise.race([
        ...ends,
        sleep(slowest.upstream.breaker.hedgeDelayMs(), ending.signal).then(() => undefined),
      ]);
    }

    function succeeded({ attempt, startedAt, isHedge }: RunningAttempt): void {
      attempt.recordSuccess(isQuick ? now() - startedAt : undefined);
      if (!isHedge) return;
      // To be beaten by an endpoint that was asked later counts: one that hangs would never be found out otherwise.
      for (const beaten of running) {
        const opened = beaten.attempt.recordFailure(now() - beaten.startedAt);
        if (opened) onFailure(beaten.upstream, method, "is slower than the next endpoint, again and again");
      }
    }

    function failed({ upstream, attempt }: RunningAttempt, error: UpstreamError, isLate: boolean): void {
      const { status, retryAfterMs, message } = error;
      if (rules?.isRangeTooWide(upstream, error, isLate)) {
        attempt.ignore();
        done.add(upstream);
        return;
      }
      if (retryAfterMs !== undefined) upstream.breaker.startCooldown(retryAfterMs);
      // A refused call says nothing about others, nor does a search that the endpoint finds too long.
      const isItsFault = !(error instanceof RpcError) && (isQuick || status === undefined);
      if (isItsFault) attempt.recordFailure();
      else attempt.ignore();
      if (!isQuick || (status !== undefined && status >= 400 && status < 429)) done.add(upstream);
      onFailure(upstream, method, message);
    }

    try {
      while (running.size > 0 || (await startNext())) {
        const first = await firstOf([...running]);
        if (first === undefined) {
          hedge();
          continue;
        }
        const { run, end } = first;
        running.delete(run);
        if ("outcomes" in end) {
          succeeded(run);
          return end.outcomes;
        }
        if (!(end.error instanceof UpstreamError)) throw end.error;
        // The caller left or its time is up, or we close: that says nothing about the endpoint.
        if (signal.aborted || closing.aborted) {
          run.attempt.ignore();
          break;
        }
        // That a node is there and refuses is worth more to know than that others are gone.
        if (!(failure instanceof RpcError)) failure = end.error;
        failed(run, end.error, end.isLate);
      }
    } finally {
      ending.cancel();
      for (const { attempt } of running) attempt.ignore();
    }
    throw new ServiceError("UPSTREAM_UNAVAILABLE", `no RPC endpoint of ${slug} gives an answer`, {
      cause: failure,
    });
  };
}
