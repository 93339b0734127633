import { createAbortScope } from "../../resilience/abort-scope.js";
import type { CircuitBreaker, CircuitBreakerAttempt } from "../../resilience/circuit-breaker.js";
import { UpstreamError } from "../../resilience/upstream-error.js";
import type { RpcCall, RpcCallResult } from "../chain-client.js";
import { MAX_HEDGE_DELAY_MS } from "./attempt-plan.js";
import type { Endpoint } from "./endpoint.js";

/** One endpoint of a pool and its health. */
export interface Upstream {
  readonly endpoint: Endpoint;
  readonly breaker: CircuitBreaker;
}

/** A failed attempt. Contains no secret. */
export interface EndpointFailure {
  readonly chain: string;
  readonly endpoint: string;
  readonly method: string;
  readonly error: string;
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
}

/** One attempt of a request at one endpoint. */
export interface EndpointAttempt {
  readonly upstream: Upstream;
  readonly attempt: CircuitBreakerAttempt;
  /** Number of attempts of the request before this one. */
  readonly order: number;
  /** A probe goes on when the request has ended: no caller waits for it. */
  readonly isProbe: boolean;
  /** Returns for how long the endpoint has had the chance to respond, in milliseconds. 0 while a request waits for its turn. */
  readonly ageMs: () => number;
  /** Never rejects. */
  readonly result: Promise<AttemptResult>;
}

/** The outcomes of all calls; or the error, and whether the attempt's time was over. */
export type AttemptResult =
  | { readonly outcomes: readonly RpcCallResult[] }
  | { readonly error: unknown; readonly isLate: boolean };

export interface AttemptOptions {
  readonly upstream: Upstream;
  readonly calls: readonly RpcCall[];
  readonly order: number;
  readonly isProbe: boolean;
  /** Returns the time since the attempt started, in milliseconds. */
  readonly ageMs: () => number;
  /** Ends the attempt. */
  readonly signal: AbortSignal;
  /** Timeout of this attempt in milliseconds; undefined: only the signal ends it. */
  readonly timeoutMs: number | undefined;
}

export function startAttempt({ calls, signal, timeoutMs, ...rest }: AttemptOptions): EndpointAttempt {
  const { upstream } = rest;
  let permittedAtAgeMs = 0;
  const send = async (): Promise<AttemptResult> => {
    const scope = createAbortScope(signal, timeoutMs);
    const onWait = (waitMs: number): void => {
      permittedAtAgeMs = Math.max(permittedAtAgeMs, rest.ageMs() + waitMs);
      if (timeoutMs !== undefined) scope.setTimeout(waitMs + timeoutMs);
    };
    try {
      return { outcomes: await upstream.endpoint.sendBatch(calls, scope.signal, onWait) };
    } catch (error) {
      return { error, isLate: scope.signal.aborted };
    } finally {
      // Also aborts what the attempt has still in flight when one of its requests fails.
      scope.cancel();
    }
  };
  const ageMs = (): number => Math.max(0, rest.ageMs() - permittedAtAgeMs);
  return { ...rest, ageMs, attempt: upstream.breaker.beginAttempt(), result: send() };
}

/**
 * Concludes a probe after its request has been answered by another endpoint.
 * @param answeredMs latency of that answer; a probe that takes much longer leaves its endpoint behind the other
 */
export async function concludeProbe(
  { upstream, attempt, ageMs, result }: EndpointAttempt,
  answeredMs: number,
  closing: AbortSignal,
): Promise<void> {
  const outcome = await result;
  if ("outcomes" in outcome) {
    const latencyMs = ageMs();
    if (latencyMs > Math.max(MAX_HEDGE_DELAY_MS, 2 * answeredMs)) attempt.recordFailure(latencyMs);
    else attempt.recordSuccess(latencyMs);
    return;
  }
  const { error } = outcome;
  if (closing.aborted || !(error instanceof UpstreamError)) return attempt.ignore();
  if (error.retryAfterMs !== undefined) upstream.breaker.startCooldown(error.retryAfterMs);
  attempt.recordFailure();
}
