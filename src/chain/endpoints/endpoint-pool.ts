import type { Dispatcher } from "undici";
import { ServiceError } from "../../errors.js";
import { createAbortScope } from "../../resilience/abort-scope.js";
import { monotonicNow, sleep as sleepReal } from "../../resilience/clock.js";
import { FairSemaphore } from "../../resilience/fair-semaphore.js";
import type { UpstreamHealth } from "../../resilience/http-client/circuit-breaker.js";
import { UpstreamError } from "../../resilience/http-client/upstream-error.js";
import {
  type ChainClient,
  createChainClient,
  findRpcResult,
  type LogSearch,
  type LogsResult,
  type RpcCall,
  type RpcCallResult,
} from "../chain-client.js";
import { ChainClock } from "../heads/chain-clock.js";
import {
  type ChainHead,
  HeadTracker,
  type ObservedHead,
  parseHead,
  STALLED_POLL_MS,
  STATE_SOURCE,
} from "../heads/head-tracker.js";
import { LATEST_BLOCK_CALL } from "../json-rpc/rpc-codec.js";
import { type AttemptPolicy, Attempts, computePatienceMs, type Sleep, startRequestedCooldown } from "./attempts.js";
import { type BudgetOutcome, EndpointCallBudget } from "./call-budget.js";
import { Endpoint, type EndpointFailure, type EndpointRequestObserver } from "./endpoint.js";
import { createEndpointNamer, type EndpointNamer } from "./endpoint-name.js";
import { readLogs } from "./log-reader.js";
import { tooManyRequestsError, UpstreamBudget } from "./upstream-budget.js";

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
  readonly callerTimeoutMs?: number | undefined;
  /** Default: heads of a chain that may be stalled. */
  readonly heads?: HeadTracker | undefined;
  /** Monotonic clock, in milliseconds. */
  readonly now?: () => number;
  /** Returns a random number from 0 up to 1. */
  readonly random?: () => number;
  readonly sleep?: Sleep;
}

export interface EndpointPoolState {
  /** The highest known head. */
  readonly head: ObservedHead | undefined;
  /** In order of preference. */
  readonly endpoints: readonly EndpointState[];
  /** Whether the newest block is too old. */
  readonly isStalled: boolean;
  /** Whether a check of all endpoints has ended, with whatever result. */
  readonly isChecked: boolean;
  /** Time of the last request, in milliseconds on the monotonic clock; undefined: no request yet. */
  readonly lastUsedAt: number | undefined;
}

export interface EndpointState {
  /** Name of the endpoint. */
  readonly endpoint: string;
  /** lagging: it responds, but is behind its peers. outvoted: others have agreed that its answers are wrong. */
  readonly state: UpstreamHealth | "lagging" | "outvoted";
  readonly head: ObservedHead | undefined;
  /** How it fails, in words without a URL; undefined: it does not, or never answers. */
  readonly failure?: string | undefined;
}

const DEFAULT_CALLER_TIMEOUT_MS = 10_000;
/** Share of the callers' time that a request may take. */
const REQUEST_TIME_SHARE = 0.95;
/** How often an endpoint in cooldown is asked nevertheless while no other is healthy. */
const COOLDOWN_RETRY_MS = 2_000;
const HEAD_REFRESH_INTERVAL_MS = 10_000;
/** After this time without a read, the head of a chain with a single endpoint is read too. */
const RECENT_READ_MS = 30_000;
/** Bounds of the timeout of a head read. The upper one is below the interval at which heads are read. */
const MIN_HEAD_TIMEOUT_MS = 5_000;
const MAX_HEAD_TIMEOUT_MS = 9_000;
/** Concurrent log searches of all callers. Lookups share them fairly among callers: see src/transfers/spend/. */
const MAX_CONCURRENT_LOG_SEARCHES = 32;

/**
 * One client for all endpoints of a chain, which also reports their state. Endpoints that fail often or lag behind their
 * peers are tried last, so there is always one to try. Endpoints that asked for a cooldown or serve another chain are asked
 * now and then, while no other is healthy: they may recover early.
 */
export class EndpointPool {
  readonly slug: string;
  readonly heads: HeadTracker;
  readonly client: ChainClient;
  /** For calls that nobody waits for: within a budget of calls they come last. */
  readonly background: ChainClient;
  /** In order of preference. */
  readonly endpoints: readonly Endpoint[];
  readonly #options: EndpointPoolOptions;
  readonly #now: () => number;
  readonly #budgets: ReadonlyMap<Endpoint, EndpointCallBudget>;
  readonly #upstreamBudget: UpstreamBudget;
  readonly #policy: AttemptPolicy;
  readonly #searchSlots = new FairSemaphore(MAX_CONCURRENT_LOG_SEARCHES);
  #lastUsedAt: number | undefined;
  #headsReadAt = Number.NEGATIVE_INFINITY;
  #headsRead: Promise<unknown> | undefined;
  #isChecked = false;
  #headIntervalMs = HEAD_REFRESH_INTERVAL_MS;

  constructor(options: EndpointPoolOptions) {
    const { slug, urls, callsPerSecond, onBudgetLimited, closing, onFailure } = options;
    const {
      now = monotonicNow,
      random = Math.random,
      sleep = sleepReal,
      nameEndpoint = createEndpointNamer(),
    } = options;
    const { callerTimeoutMs = DEFAULT_CALLER_TIMEOUT_MS, upstreamBudget = new UpstreamBudget() } = options;
    this.slug = slug;
    this.heads = options.heads ?? new HeadTracker(new ChainClock({ now: Date.now, monotonicNow: now }));
    this.#options = options;
    this.#now = now;
    this.#upstreamBudget = upstreamBudget;
    const budgets = new Map<Endpoint, EndpointCallBudget>();
    this.endpoints = urls.map((url, index) => {
      const name = nameEndpoint(slug, index + 1, url);
      const onLimited = (outcome: BudgetOutcome): void => onBudgetLimited?.(name, outcome);
      const budget =
        callsPerSecond === undefined
          ? undefined
          : new EndpointCallBudget({ slug, callsPerSecond, onLimited, now, sleep: sleepReal });
      const acquireCalls = budget?.acquire.bind(budget);
      const openMemory = () => upstreamBudget.openRequest(name);
      const endpoint = new Endpoint({ ...options, name, url, acquireCalls, openMemory, now });
      if (budget !== undefined) budgets.set(endpoint, budget);
      return endpoint;
    });
    this.#budgets = budgets;
    this.#policy = {
      slug,
      listCandidates: () => this.listCandidates(),
      isHealthy: (endpoint) => this.#isHealthy(endpoint),
      onFailure: ({ name }, method, error) => onFailure({ chain: slug, endpoint: name, method, error }),
      onOutcomes: (endpoint, calls, outcomes, sentAt) => this.#recordHeads(endpoint, calls, outcomes, sentAt),
      isStalled: ({ name }) => this.heads.isStalled(name),
      closing,
      requestTimeoutMs: callerTimeoutMs * REQUEST_TIME_SHARE,
      now,
      random,
      sleep,
    };
    this.client = this.#createClient(false);
    this.background = this.#createClient(true);
  }

  /**
   * Gets the outcomes of calls from one endpoint.
   * @param only the endpoint to ask; undefined: whichever answers first
   * @throws ServiceError UPSTREAM_UNAVAILABLE when no endpoint responds; OVERLOADED when a limit of calls or requests is
   * reached
   */
  async request(calls: readonly RpcCall[], signal: AbortSignal, only?: Endpoint): Promise<readonly RpcCallResult[]> {
    this.#accompanyRequest();
    this.#assertCapacity(only);
    const policy =
      only === undefined ? this.#policy : { ...this.#policy, listCandidates: () => this.listCandidates(only) };
    return new Attempts(policy, calls, signal).run();
  }

  /** Searches logs as ChainClient.getLogs does. @param only as in request */
  searchLogs(search: LogSearch, signal: AbortSignal, only?: Endpoint): Promise<LogsResult | undefined> {
    this.#assertCapacity(only);
    return readLogs({ ...this.#policy, listCandidates: () => this.listCandidates(only) }, search, signal);
  }

  /**
   * Runs a log search when few enough others are running.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the signal aborts before
   */
  async limitSearch<T>(signal: AbortSignal, search: () => Promise<T>): Promise<T> {
    try {
      return await this.#searchSlots.acquire("", signal, search);
    } catch (error) {
      if (error !== signal.reason) throw error;
      throw new ServiceError("UPSTREAM_UNAVAILABLE", `the logs of ${this.slug} could not be searched in time`);
    }
  }

  state(): EndpointPoolState {
    return {
      head: this.heads.highest(),
      endpoints: this.endpoints.map((endpoint) => this.#stateOf(endpoint)),
      isStalled: this.heads.findStalled() !== undefined,
      isChecked: this.#isChecked,
      lastUsedAt: this.#lastUsedAt,
    };
  }

  /** Sets how often the heads of endpoints are read that no other read tells, in milliseconds. */
  setHeadInterval(ms: number): void {
    this.#headIntervalMs = ms;
  }

  /**
   * Reads the heads of the endpoints in the background, at most once in the interval, where no other read has told them.
   * @returns the end of the read that is in progress, if one is; never rejects
   */
  async refreshHeads(intervalMs = this.#headIntervalMs): Promise<void> {
    if (this.#headsRead === undefined && this.#now() - this.#headsReadAt >= intervalMs) {
      this.#headsReadAt = this.#now();
      const unread = this.endpoints.filter(({ name }) => !this.heads.isRecent(name, intervalMs));
      this.#headsRead = Promise.all(unread.map((endpoint) => this.#readHead(endpoint))).finally(() => {
        this.#headsRead = undefined;
        this.#isChecked = true;
      });
    }
    await this.#headsRead;
  }

  /**
   * Records a chain head that a read of chain state has returned.
   * @param readAt start of the read on the monotonic clock, in milliseconds
   */
  recordHead(head: ChainHead, readAt: number): void {
    this.heads.record(STATE_SOURCE, head, readAt);
    // Where another process reads the chain, no request here would tell that an endpoint has recovered.
    const isWell = ({ state }: EndpointState): boolean => state === "ok" || state === "unknown";
    if (!this.endpoints.every((endpoint) => isWell(this.#stateOf(endpoint)))) void this.refreshHeads();
  }

  /**
   * Returns the endpoints that may get requests now, best first.
   * @param only all others may not
   */
  listCandidates(only?: Endpoint): readonly Endpoint[] {
    return this.#listUsable(only)
      .filter((endpoint) => this.hasCapacity(endpoint))
      .sort((a, b) => this.rank(a) - this.rank(b));
  }

  /** Returns how an endpoint compares with the others: 0 is best. */
  rank(endpoint: Endpoint): number {
    const { breaker, name } = endpoint;
    const budget = this.#budgets.get(endpoint);
    // Below one: how long it has to wait because of its budget matters only among equals.
    const waitRank = Math.min((budget?.waitMs(false) ?? 0) / 10_000, 0.9);
    const healthRank = (this.heads.isLagging(name) ? 2 : 0) + (breaker.isClosed() ? 0 : 1);
    return (breaker.isCoolingDown() ? 4 : 0) + (budget?.isExhausted() ? 3 : 0) + healthRank + waitRank;
  }

  /** Returns whether a limit of requests in flight permits another one to an endpoint. */
  hasCapacity({ name }: Endpoint): boolean {
    return this.#upstreamBudget.hasCapacityFor(name);
  }

  #createClient(isBackground: boolean): ChainClient {
    return createChainClient({
      slug: this.slug,
      heads: this.heads,
      request: (calls, signal) => this.request(calls, signal),
      searchLogs: (search, signal) => this.limitSearch(signal, async () => this.searchLogs(search, signal)),
      isBackground,
    });
  }

  #isHealthy(endpoint: Endpoint): boolean {
    return this.rank(endpoint) === 0;
  }

  #listUsable(only?: Endpoint): Endpoint[] {
    const isAnyHealthy = this.endpoints.some((endpoint) => this.#isHealthy(endpoint));
    return this.endpoints.filter((endpoint) => {
      const { breaker } = endpoint;
      if (only !== undefined && only !== endpoint) return false;
      return !breaker.isCoolingDown() || (!isAnyHealthy && breaker.cooldownElapsedMs() >= COOLDOWN_RETRY_MS);
    });
  }

  /** @throws ServiceError OVERLOADED while each endpoint that could get a request has too many */
  #assertCapacity(only: Endpoint | undefined): void {
    const usable = this.#listUsable(only);
    if (usable.length > 0 && !usable.some((endpoint) => this.hasCapacity(endpoint))) throw tooManyRequestsError();
  }

  /** Starts the background work that accompanies every request. */
  #accompanyRequest(): void {
    this.#lastUsedAt = this.#now();
    const isStalled = this.heads.findStalled() !== undefined;
    // A single endpoint has no peers to compare its head with.
    if (this.endpoints.length > 1) void this.refreshHeads(isStalled ? STALLED_POLL_MS : undefined);
    else if (this.heads.needsRead(RECENT_READ_MS)) void this.refreshHeads();
  }

  /** Records the heads that results tell. */
  #recordHeads(
    { name }: Endpoint,
    calls: readonly RpcCall[],
    outcomes: readonly RpcCallResult[],
    sentAt: number,
  ): void {
    for (const [index, call] of calls.entries()) {
      const isLatest = call.method === LATEST_BLOCK_CALL.method && call.params[0] === LATEST_BLOCK_CALL.params[0];
      const parse = call.parseHead ?? (isLatest ? parseHead : undefined);
      const head = parse?.(findRpcResult(outcomes[index]));
      if (head !== undefined) this.heads.record(name, head, sentAt);
    }
  }

  /** Reads the head of an endpoint. Records its health and latency, which tell how it is when nobody asks it. */
  async #readHead(endpoint: Endpoint): Promise<void> {
    const { closing } = this.#options;
    const { breaker, name } = endpoint;
    if (breaker.isCoolingDown() || (this.#budgets.get(endpoint)?.waitMs(true) ?? 0) > 0) return;
    const timeoutMs = Math.min(Math.max(computePatienceMs(endpoint), MIN_HEAD_TIMEOUT_MS), MAX_HEAD_TIMEOUT_MS);
    const scope = createAbortScope(closing, timeoutMs);
    const readAt = this.#now();
    try {
      const [outcome] = await endpoint.send([{ ...LATEST_BLOCK_CALL, isBackground: true }], scope.signal);
      const head = parseHead(findRpcResult(outcome));
      breaker.recordProbe(head !== undefined, this.#now() - readAt);
      if (head !== undefined) this.heads.record(name, head, readAt);
    } catch (error) {
      // Any other error was thrown before the request was sent: it says nothing about the endpoint.
      if (closing.aborted || !(error instanceof UpstreamError)) return;
      breaker.recordProbe(false);
      // Only a requested cooldown counts: a failed head read says little about other calls.
      startRequestedCooldown(endpoint, error);
    } finally {
      scope.cancel();
    }
  }

  #stateOf(endpoint: Endpoint): EndpointState {
    const { name, breaker } = endpoint;
    const state = breaker.state();
    const isLagging = state === "ok" && this.heads.isLagging(name);
    const failure = state === "failing" || state === "cooldown" ? endpoint.lastFailure : undefined;
    return { endpoint: name, state: isLagging ? "lagging" : state, head: this.heads.get(name), failure };
  }
}
