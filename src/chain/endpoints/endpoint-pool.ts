import type { Dispatcher } from "undici";
import { createCircuitBreaker, type UpstreamHealth } from "../../resilience/circuit-breaker.js";
import { monotonicNow, sleep as sleepReal } from "../../resilience/clock.js";
import type { BodyMemory } from "../../resilience/http-client/fetch-json.js";
import { type ChainBlockAges, STALLED_POLL_MS } from "../block-age/block-age-monitor.js";
import type { HeadRead } from "../block-age/chain-history.js";
import type { ChainClient } from "../chain-client.js";
import { createRequesterClient } from "../requester-client.js";
import { createAdaptiveLogReader, limitConcurrentSearches } from "./adaptive-block-range.js";
import { createBackgroundProbes } from "./background-probes.js";
import { type BudgetOutcome, createCallBudgets } from "./budget/call-budget.js";
import { createUpstreamBudget, refuseWithoutCapacity, type UpstreamBudget } from "./budget/upstream-budget.js";
import { createEndpoint, type EndpointRequestObserver } from "./endpoint.js";
import type { EndpointFailure, Upstream } from "./endpoint-attempt.js";
import { createEndpointNamer, type EndpointNamer } from "./endpoint-name.js";
import { createEventLoopDelay, type EventLoopDelay } from "./event-loop-delay.js";
import {
  type ChainHead,
  createHeadTracker,
  type ObservedHead,
  type ReportedHead,
  selectHighestHead,
} from "./head-tracker.js";
import { createHedgedRequester, type HedgedRequester, type Sleep } from "./hedged-requests.js";
import { createPoolMembers, type PoolMember } from "./pool-member.js";

export interface EndpointPoolOptions {
  readonly slug: string;
  /** Expected result of `eth_chainId`. */
  readonly chainId: number;
  /** In order of preference. */
  readonly urls: readonly string[];
  /** Default: a namer of its own. */
  readonly nameEndpoint?: EndpointNamer;
  /** Calls per second to each endpoint; undefined: no limit. */
  readonly callsPerSecond?: number | undefined;
  /** Called when this limit makes calls wait or refuses them. */
  readonly onBudgetLimited?: ((endpoint: string, outcome: BudgetOutcome) => void) | undefined;
  /** Default: a budget of its own. */
  readonly upstreamBudget?: UpstreamBudget;
  readonly dispatcher: Dispatcher;
  /** Maximum size of a response. */
  readonly maxBytes: number;
  readonly onEndpointRequest?: EndpointRequestObserver | undefined;
  /** Called for every failed attempt, and when the breaker of a slow endpoint opens. */
  readonly onFailure: (failure: EndpointFailure) => void;
  /** Ends background work. Once it aborts, nothing is retried and no failure counts. */
  readonly closing: AbortSignal;
  /** Longest time for which a caller waits, in milliseconds. A request ends a little earlier, to say which chain failed. */
  readonly callerTimeoutMs?: number;
  readonly eventLoopDelay?: EventLoopDelay;
  /** Default: a chain may stand still. */
  readonly blockAges?: ChainBlockAges | undefined;
  /** Monotonic clock, in milliseconds. */
  readonly now?: () => number;
  /** Returns a random number from 0 up to 1. */
  readonly random?: () => number;
  /** Waits before another attempt: resolves after a time in milliseconds, or when the signal aborts. */
  readonly sleep?: Sleep;
}

/** One client for all endpoints of a chain, which also reports their state. */
export interface EndpointPool extends ChainClient {
  asBackground(): ChainClient;
  state(): EndpointPoolState;
  /** Reads the heads of the endpoints in the background, at most once in ten seconds. */
  probe(): void;
  /** Records a chain head that another read has returned. */
  recordHead(head: ChainHead): void;
  /** Returns the endpoints one by one, for what asks several of them. In order of preference. */
  listMembers(): readonly PoolMember[];
}

export interface EndpointPoolState {
  /** The highest known head. */
  readonly head: ObservedHead | undefined;
  /** In order of preference. */
  readonly endpoints: readonly EndpointState[];
  /** Whether the newest block is too old. */
  readonly isStalled: boolean;
  /** Time of the last request, in milliseconds on the monotonic clock; undefined: no request yet. */
  readonly lastUsedAt: number | undefined;
}

export interface EndpointState {
  /** Name of the endpoint. */
  readonly endpoint: string;
  /** lagging: it responds, but is behind its peers. outvoted: others have agreed that its answers are wrong. */
  readonly state: UpstreamHealth | "lagging" | "outvoted";
  readonly head: ObservedHead | undefined;
}

const DEFAULT_CALLER_TIMEOUT_MS = 10_000;
/** Share of the callers' time that a request may take. */
const REQUEST_TIME_SHARE = 0.95;
/** How often a cooling-down endpoint is probed while no other is healthy. */
const COOLDOWN_PROBE_INTERVAL_MS = 2_000;

/**
 * Creates one client for all endpoints of a chain. Endpoints that fail often or lag behind their peers are tried last,
 * so there is always one to try. Endpoints that asked for a cooldown or serve another chain are only probed.
 */
export function createEndpointPool(options: EndpointPoolOptions): EndpointPool {
  const {
    slug,
    onFailure,
    closing,
    nameEndpoint = createEndpointNamer(),
    callerTimeoutMs = DEFAULT_CALLER_TIMEOUT_MS,
    eventLoopDelay = createEventLoopDelay(monotonicNow),
    upstreamBudget = createUpstreamBudget(),
    now = monotonicNow,
    random = Math.random,
    sleep = sleepReal,
  } = options;
  const { callsPerSecond, onBudgetLimited: onLimited, blockAges } = options;
  const budgets = createCallBudgets({ slug, callsPerSecond, onLimited, now, sleep: sleepReal });
  const upstreams = options.urls.map((url, index): Upstream => {
    const name = nameEndpoint(slug, index + 1, url);
    const openMemory = (): BodyMemory => upstreamBudget.openRequest(name);
    const { host } = new URL(url);
    const onDate = blockAges && ((date: string, startedAtMs: number) => blockAges.recordDate(host, date, startedAtMs));
    const transport = { openMemory, ...(onDate && { onDate }) };
    const endpoint = createEndpoint({ ...options, name, url, acquireCalls: budgets.add(name), ...transport, now });
    return { endpoint, breaker: createCircuitBreaker(now) };
  });
  const probes = createBackgroundProbes({
    isBusy: ({ endpoint }) => budgets.hasToWait(endpoint.name, true),
    closing,
    eventLoopDelay,
    now,
  });
  const toHeadRead = ({ peer, timestamp, requestedAt }: ReportedHead<Upstream>): HeadRead => {
    return { source: peer.endpoint.name, timestamp, readAt: requestedAt };
  };
  const headTracker = createHeadTracker<Upstream>({
    peers: upstreams,
    fetchLatestBlock: probes.readLatestBlock,
    now,
    onHead: blockAges && ((head) => blockAges.recordHead(toHeadRead(head))),
    isTooOld: blockAges && ((head) => blockAges.isTooOld(toHeadRead(head))),
  });
  const requestHedged = createHedgedRequester({
    slug,
    listCandidates,
    isHealthy,
    onFailure: ({ endpoint }, method, error) => onFailure({ chain: slug, endpoint: endpoint.name, method, error }),
    closing,
    requestTimeoutMs: callerTimeoutMs * REQUEST_TIME_SHARE,
    eventLoopDelay,
    now,
    random,
    sleep,
  });

  const budgeted = budgets.limit(requestHedged, () => listUsable().map(({ endpoint }) => endpoint.name));
  const request = refuseWithoutCapacity(budgeted, listUsable, hasCapacity);

  let lastUsedAt: number | undefined;
  let recordedHead: ObservedHead | undefined;

  function rank(upstream: Upstream): number {
    const waitRank = budgets.hasToWait(upstream.endpoint.name, false) ? 0.5 : 0;
    return (headTracker.isLagging(upstream) ? 2 : 0) + (upstream.breaker.isClosed() ? 0 : 1) + waitRank;
  }

  function isHealthy(upstream: Upstream): boolean {
    return rank(upstream) === 0;
  }

  function listUsable(): Upstream[] {
    return upstreams.filter(({ breaker }) => !breaker.isCoolingDown());
  }

  function hasCapacity({ endpoint }: Upstream): boolean {
    return upstreamBudget.hasCapacityFor(endpoint.name);
  }

  function listCandidates(): readonly Upstream[] {
    return listUsable()
      .filter(hasCapacity)
      .sort((a, b) => rank(a) - rank(b));
  }

  /** Probes cooling-down endpoints in the background while no other is healthy: they may recover early. */
  function probeCoolingDown(): void {
    const isUsable = (upstream: Upstream): boolean => !upstream.breaker.isCoolingDown() && isHealthy(upstream);
    if (upstreams.some(isUsable)) return;
    for (const upstream of upstreams) {
      const { breaker } = upstream;
      if (breaker.isCoolingDown() && breaker.cooldownElapsedMs() >= COOLDOWN_PROBE_INTERVAL_MS)
        void probes.readChainId(upstream);
    }
  }

  /** Starts the background work that accompanies every request. */
  function runBackgroundProbes(): void {
    lastUsedAt = now();
    // A single endpoint has no peers to compare its head with.
    if (upstreams.length > 1) headTracker.refresh(blockAges?.isStalled() ? STALLED_POLL_MS : undefined);
    else if (blockAges?.needsRead()) headTracker.refresh();
    probeCoolingDown();
  }

  function stateOf(upstream: Upstream): EndpointState {
    const state = upstream.breaker.state();
    const isLagging = state === "ok" && headTracker.isLagging(upstream);
    return {
      endpoint: upstream.endpoint.name,
      state: isLagging ? "lagging" : state,
      head: headTracker.getHead(upstream),
    };
  }

  const requester = {
    slug,
    request: (async (calls, signal, policy) => {
      runBackgroundProbes();
      return request(calls, signal, policy);
    }) satisfies HedgedRequester,
    readLogs: limitConcurrentSearches(slug, createAdaptiveLogReader({ upstreams, isHealthy, request, now })),
  };

  const pool: EndpointPool = {
    ...createRequesterClient(requester),
    asBackground: () => ({ ...createRequesterClient({ ...requester, isBackground: true }), cacheKey: pool }),
    state() {
      const endpoints = upstreams.map(stateOf);
      const head = selectHighestHead([recordedHead, ...endpoints.map((endpoint) => endpoint.head)]);
      return { head, endpoints, isStalled: blockAges?.isStalled() ?? false, lastUsedAt };
    },
    probe: headTracker.refresh,
    listMembers: () =>
      createPoolMembers(upstreams, {
        request: requestHedged,
        budgets,
        onRequest: runBackgroundProbes,
        hasCapacity,
        rank,
      }),
    recordHead(head) {
      recordedHead = { ...head, observedAt: now() };
      // Where another process reads the chain, no request here would tell that an endpoint has recovered.
      if (upstreams.map(stateOf).some(({ state }) => state !== "ok" && state !== "unknown")) headTracker.refresh();
    },
  };
  return pool;
}
