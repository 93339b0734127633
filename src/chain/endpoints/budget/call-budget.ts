import { ServiceError } from "../../../errors.js";
import { createSemaphore } from "../../../resilience/semaphore.js";
import type { AcquireCalls } from "../endpoint.js";
import type { HedgedRequester } from "../hedged-requests.js";
import { createTokenBucket, type TokenBucket } from "./token-bucket.js";

/** What happened to a request that the budget did not permit at once. */
export type BudgetOutcome = "waited" | "refused";

export interface CallBudgetsOptions {
  /** Slug of the chain, for error messages. */
  readonly slug: string;
  /** Calls per second to each endpoint; undefined: no limit. */
  readonly callsPerSecond: number | undefined;
  /** Called when a request to an endpoint has to wait, or is refused. */
  readonly onLimited?: ((endpoint: string, outcome: BudgetOutcome) => void) | undefined;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  /** Resolves after a time in milliseconds, or when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** The budgets of the endpoints of one chain, by their names: a provider throttles or bills each separately. */
export interface CallBudgets {
  /** Adds an endpoint. Returns a function that takes calls from its budget and waits until they may be sent. */
  add(endpoint: string): AcquireCalls;
  /** Returns whether calls to an endpoint would have to wait. */
  hasToWait(endpoint: string, isBackground: boolean): boolean;
  /**
   * Decorates a requester: a request waits in a queue until the budget of an endpoint permits it. Not a part of the
   * attempt: an endpoint is not slow because of our budget.
   * @param listEndpoints returns the names of the endpoints that may get requests
   * @throws ServiceError OVERLOADED from the returned requester, at once, when the wait would be too long
   */
  limit(request: HedgedRequester, listEndpoints: () => readonly string[]): HedgedRequester;
}

/** How long a request may wait, in milliseconds: half of the default deadline, so that the rest suffices for the request. */
const MAX_WAIT_MS = 5_000;
/** The burst, in seconds' worth of calls: small, since providers throttle by the second. */
const BURST_SECONDS = 0.5;
/** Share of the burst that calls in the background leave to those that a caller waits for. */
const BACKGROUND_RESERVE = 0.5;

/**
 * Creates the budgets: a token bucket per endpoint. A batch counts as the calls in it, as providers count, the chain id
 * that is read along included. A batch that is larger than what is left is sent as a whole, and the next one waits longer.
 */
export function createCallBudgets({ slug, callsPerSecond, onLimited, now, sleep }: CallBudgetsOptions): CallBudgets {
  const buckets = new Map<string, TokenBucket>();
  const burst = Math.max(1, (callsPerSecond ?? 0) * BURST_SECONDS);
  const reserved = (burst - 1) * BACKGROUND_RESERVE;

  function getWaitMs(endpoint: string, isBackground: boolean): number {
    return buckets.get(endpoint)?.waitMs(isBackground ? reserved : 0) ?? 0;
  }

  function limit(request: HedgedRequester, listEndpoints: () => readonly string[], perSecond: number): HedgedRequester {
    /** The turn of one caller: the next waits until it has taken its calls. */
    const turn = createSemaphore(1);
    let queuedCalls = 0;

    function findSoonest(isBackground: boolean): { readonly endpoint: string; readonly waitMs: number } | undefined {
      const waits = listEndpoints().map((endpoint) => ({ endpoint, waitMs: getWaitMs(endpoint, isBackground) }));
      return waits.sort((a, b) => a.waitMs - b.waitMs)[0];
    }

    async function waitForTokens(signal: AbortSignal): Promise<void> {
      for (;;) {
        const waitMs = findSoonest(false)?.waitMs ?? 0;
        if (waitMs === 0 || signal.aborted) return;
        await sleep(waitMs, signal);
      }
    }

    /** Not in the queue: callers overtake it, for as long as they leave nothing. */
    async function waitInBackground(signal: AbortSignal): Promise<void> {
      const startedAt = now();
      for (;;) {
        const soonest = findSoonest(true);
        if (soonest === undefined || (soonest.waitMs === 0 && queuedCalls === 0) || signal.aborted) return;
        if (now() - startedAt > MAX_WAIT_MS) refuse(soonest.endpoint, MAX_WAIT_MS);
        await sleep(Math.max(soonest.waitMs, 1000 / perSecond), signal);
      }
    }

    function refuse(endpoint: string, waitMs: number): never {
      onLimited?.(endpoint, "refused");
      const message =
        `the calls per second that the operator permits to the RPC endpoints of ${slug} are used up: try again later; ` +
        "the operator can raise RPC_BUDGET or add an endpoint";
      throw new ServiceError("OVERLOADED", message, { retryAfterSeconds: Math.ceil(waitMs / 1000) });
    }

    return async (calls, signal, policy) => {
      const isBackground = calls.some((call) => call.isBackground === true);
      const soonest = findSoonest(isBackground);
      // Without an endpoint the request fails by itself.
      if (soonest === undefined || (soonest.waitMs === 0 && queuedCalls === 0)) return request(calls, signal, policy);
      const { endpoint } = soonest;
      const waitMs = soonest.waitMs + (queuedCalls * 1000) / (perSecond * listEndpoints().length);
      if (waitMs > MAX_WAIT_MS) refuse(endpoint, waitMs);
      onLimited?.(endpoint, "waited");
      if (isBackground) {
        await waitInBackground(signal);
        return request(calls, signal, policy);
      }
      queuedCalls += calls.length;
      let result: ReturnType<HedgedRequester> | undefined;
      try {
        await turn.acquire(signal, async () => {
          await waitForTokens(signal);
          // Takes its calls from the budget before it waits for anything.
          result = request(calls, signal, policy);
          result.catch(() => {});
        });
      } catch (error) {
        if (error !== signal.reason) throw error;
      } finally {
        queuedCalls -= calls.length;
      }
      // Where the caller has left meanwhile, the request reports that.
      return result ?? request(calls, signal, policy);
    };
  }

  return {
    add(endpoint) {
      if (callsPerSecond === undefined) return async () => {};
      const bucket = createTokenBucket({ perSecond: callsPerSecond, burst, now });
      buckets.set(endpoint, bucket);
      return async (calls, signal, onWait) => {
        if (signal.aborted) return;
        // Another attempt, or a call that is sent separately: these have not waited in the queue.
        const waitMs = bucket.waitMs();
        bucket.take(calls.length);
        if (waitMs === 0) return;
        onWait?.(waitMs);
        await sleep(waitMs, signal);
      };
    },
    hasToWait: (endpoint, isBackground) => getWaitMs(endpoint, isBackground) > 0,
    limit: (request, listEndpoints) =>
      callsPerSecond === undefined ? request : limit(request, listEndpoints, callsPerSecond),
  };
}
