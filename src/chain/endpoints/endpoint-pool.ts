import type { Dispatcher } from "undici";
import { ServiceError } from "../../errors.js";
import { createAbortScope } from "../../resilience/abort-scope.js";
import { type CircuitBreakerState, createCircuitBreaker } from "../../resilience/circuit-breaker.js";
import { monotonicNow } from "../../resilience/clock.js";
import { createSemaphore } from "../../resilience/semaphore.js";
import { UpstreamError } from "../../resilience/upstream-error.js";
import { type ChainClient, getResult, type RpcCall } from "../chain-client.js";
import { createAdaptiveLogReader } from "./adaptive-block-range.js";
import { createEndpoint, type EndpointRequestObserver } from "./endpoint.js";
import { type ChainHead, createHeadTracker, type ObservedHead, parseHead, selectHighestHead } from "./head-tracker.js";
import { createHedgedRequester, type Upstream } from "./hedged-requests.js";

export interface EndpointPoolOptions {
  readonly slug: string;
  /** What `eth_chainId` must answer. */
  readonly chainId: number;
  /** In order of preference. */
  readonly urls: readonly string[];
  readonly dispatcher: Dispatcher;
  /** Most bytes of an answer. */
  readonly maxBytes: number;
  readonly onEndpointRequest?: EndpointRequestObserver | undefined;
  /** Told of every attempt that failed, and of an endpoint that lost its place for being slow. */
  readonly onFailure: (failure: EndpointFailure) => void;
  /** Ends background work; after it no read is sent again and nothing is held against an endpoint. */
  readonly closing: AbortSignal;
  /** Longest time for one attempt at quick methods, in milliseconds. */
  readonly attemptTimeoutMs?: number;
  /** Milliseconds on a steady clock. */
  readonly now?: () => number;
  /** From 0 up to 1. */
  readonly random?: () => number;
}

/** An attempt that gave no answer. Holds nothing secret. */
export interface EndpointFailure {
  readonly chain: string;
  readonly endpoint: string;
  readonly method: string;
  readonly error: string;
}

/** A chain's endpoints as one client, which tells how they are. */
export interface EndpointPool extends ChainClient {
  state(): EndpointPoolState;
  /** Asks the endpoints for their heads in the background, each once in ten seconds at most. */
  probe(): void;
  /** Notes the chain's latest block, where something that was read tells it. */
  recordHead(head: ChainHead): void;
}

export interface EndpointPoolState {
  /** The furthest head that is known. */
  readonly head: ObservedHead | undefined;
  /** In order of preference. */
  readonly endpoints: readonly EndpointState[];
  /** When something was read last, in milliseconds on the steady clock; undefined: never. */
  readonly lastUsedAt: number | undefined;
}

export interface EndpointState {
  /** Its digits. */
  readonly endpoint: string;
  /** lagging: it answers, and is behind its peers. */
  readonly state: CircuitBreakerState | "lagging";
  readonly head: ObservedHead | undefined;
}

/** Longest time for one attempt, unless told otherwise. */
const DEFAULT_ATTEMPT_TIMEOUT_MS = 1_500;
/** Searches of logs that go on at the same time, whoever began them. */
const MAX_CONCURRENT_LOG_SEARCHES = 16;
/** How often an endpoint that rests is tried all the same, where no other is well. */
const COOLDOWN_PROBE_INTERVAL_MS = 2_000;

const LATEST_BLOCK_CALL: RpcCall = { method: "eth_getBlockByNumber", params: ["latest", false] };

/**
 * A chain's endpoints as one client. Endpoints that fail often or lag behind their peers come last, so that there is
 * always one to ask; those that have asked to be left alone for a while, or serve another chain, hardly ever.
 */
export function createEndpointPool(options: EndpointPoolOptions): EndpointPool {
  const {
    slug,
    onFailure,
    closing,
    attemptTimeoutMs = DEFAULT_ATTEMPT_TIMEOUT_MS,
    now = monotonicNow,
    random = Math.random,
  } = options;
  const upstreams = options.urls.map(
    (url): Upstream => ({ endpoint: createEndpoint({ ...options, url, now }), breaker: createCircuitBreaker(now) }),
  );
  const heads = createHeadTracker({ peers: upstreams, fetchLatestBlock, now });
  const request = createHedgedRequester({
    slug,
    listCandidates,
    isHealthy,
    onFailure: ({ endpoint }, method, error) => onFailure({ chain: slug, endpoint: endpoint.name, method, error }),
    closing,
    attemptTimeoutMs,
    now,
    random,
  });

  let lastUsedAt: number | undefined;
  let notedHead: ObservedHead | undefined;
  const searches = createSemaphore(MAX_CONCURRENT_LOG_SEARCHES);
  const readLogs = createAdaptiveLogReader({ upstreams, isHealthy, request, now });

  async function fetchLatestBlock({ endpoint, breaker }: Upstream): Promise<unknown> {
    if (breaker.isCoolingDown()) return undefined;
    const limit = createAbortScope(closing, attemptTimeoutMs);
    try {
      const [outcome] = await endpoint.sendBatch([LATEST_BLOCK_CALL], limit.signal);
      const block = getResult(outcome);
      breaker.recordProbe(parseHead(block) !== undefined);
      return block;
    } catch (error) {
      if (!closing.aborted) breaker.recordProbe(false);
      // Only what the endpoint asks for counts: a look at its head says little of how it does its work.
      if (error instanceof UpstreamError && error.retryAfterMs !== undefined) breaker.startCooldown(error.retryAfterMs);
      throw error;
    } finally {
      limit.cancel();
    }
  }

  function rank(member: Upstream): number {
    return (heads.isLagging(member) ? 2 : 0) + (member.breaker.isOpen() ? 1 : 0);
  }

  function isHealthy(member: Upstream): boolean {
    return rank(member) === 0;
  }

  /** The endpoints that may be asked, best first. */
  function listCandidates(): readonly Upstream[] {
    return upstreams.filter(({ breaker }) => !breaker.isCoolingDown()).sort((a, b) => rank(a) - rank(b));
  }

  /** Where none is well, tries those that rest: they may be well again before their time. Nobody waits for it. */
  function tryResting(): void {
    const isGood = (member: Upstream): boolean => !member.breaker.isCoolingDown() && isHealthy(member);
    if (upstreams.some(isGood)) return;
    for (const member of upstreams) {
      if (member.breaker.isCoolingDown() && member.breaker.cooldownElapsedMs() >= COOLDOWN_PROBE_INTERVAL_MS)
        void tryOne(member);
    }
  }

  /** Asks an endpoint for no more than its chain's id. */
  async function tryOne({ endpoint, breaker }: Upstream): Promise<void> {
    const attempt = breaker.beginAttempt();
    const limit = createAbortScope(closing, attemptTimeoutMs);
    try {
      await endpoint.sendBatch([], limit.signal);
      attempt.recordSuccess(undefined);
    } catch (error) {
      attempt.ignore();
      if (error instanceof UpstreamError && error.retryAfterMs !== undefined) breaker.startCooldown(error.retryAfterMs);
    } finally {
      limit.cancel();
    }
  }

  /** What is done beside every read. */
  function lookAround(): void {
    lastUsedAt = now();
    // Where there is no choice, how far an endpoint is changes nothing.
    if (upstreams.length > 1) heads.refresh();
    tryResting();
  }

  function stateOf(member: Upstream): EndpointState {
    const state = member.breaker.state();
    const isLagging = state === "ok" && heads.isLagging(member);
    return { endpoint: member.endpoint.id, state: isLagging ? "lagging" : state, head: heads.getHead(member) };
  }

  return {
    slug,
    state() {
      const endpoints = upstreams.map(stateOf);
      return { head: selectHighestHead([notedHead, ...endpoints.map(({ head }) => head)]), endpoints, lastUsedAt };
    },
    probe: heads.refresh,
    recordHead(head) {
      notedHead = { ...head, observedAt: now() };
    },
    async send(method, params, signal, validate) {
      lookAround();
      const [outcome] = await request([{ method, params, validate }], signal);
      if (outcome === undefined) throw new Error("a read without an outcome");
      if ("revert" in outcome) throw outcome.revert;
      return outcome.result;
    },
    async sendBatch(calls, signal) {
      if (calls.length === 0) return [];
      lookAround();
      return request(calls, signal);
    },
    async getLogs(filter, range, newestFirst, signal) {
      lookAround();
      try {
        return await searches.acquire(signal, () => readLogs(filter, range, newestFirst, signal));
      } catch (error) {
        if (error !== signal.reason) throw error;
        throw new ServiceError("UPSTREAM_UNAVAILABLE", `the logs of ${slug} could not be searched in time`);
      }
    },
  };
}
