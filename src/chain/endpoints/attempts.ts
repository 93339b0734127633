import { setImmediate as nextTurn } from "node:timers/promises";
import { ServiceError } from "../../errors.js";
import { type AbortScope, createAbortScope } from "../../resilience/abort-scope.js";
import type { CircuitBreakerAttempt } from "../../resilience/http-client/circuit-breaker.js";
import { UpstreamError } from "../../resilience/http-client/upstream-error.js";
import type { RpcCall, RpcCallResult } from "../chain-client.js";
import { RpcError } from "../json-rpc/rpc-errors.js";
import type { Endpoint } from "./endpoint.js";

/** How a chain's requests are spread over its endpoints. */
export interface AttemptPolicy {
  /** Slug of the chain, for error messages. */
  readonly slug: string;
  /** Returns the endpoints that may get a request now, best first. */
  readonly listCandidates: () => readonly Endpoint[];
  /** Returns whether an endpoint is good enough for a hedge. */
  readonly isHealthy: (endpoint: Endpoint) => boolean;
  readonly onFailure: (endpoint: Endpoint, method: string, error: string) => void;
  /**
   * Records what the outcomes of calls tell about an endpoint.
   * @param sentAt milliseconds on the monotonic clock
   */
  readonly onOutcomes: (
    endpoint: Endpoint,
    calls: readonly RpcCall[],
    outcomes: readonly RpcCallResult[],
    sentAt: number,
  ) => void;
  /** Returns whether the newest block of an endpoint is too old. */
  readonly isStalled: (endpoint: Endpoint) => boolean;
  /** Once it aborts, nothing is retried and no failure counts. */
  readonly closing: AbortSignal;
  /** Longest duration of a request with all its attempts, in milliseconds. */
  readonly requestTimeoutMs: number;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  /** Returns a random number from 0 up to 1. */
  readonly random: () => number;
  readonly sleep: Sleep;
}

/**
 * Waits before another attempt: resolves after a time in milliseconds, or when the signal aborts.
 * @param purpose retry: after a failure. hedge, late: beside an attempt that is running
 */
export type Sleep = (ms: number, signal: AbortSignal, purpose: "hedge" | "late" | "retry") => Promise<void>;

interface Attempt {
  readonly endpoint: Endpoint;
  readonly sentAt: number;
  readonly health: CircuitBreakerAttempt;
  /** Returns for how long the endpoint has had the chance to respond, in milliseconds; negative: it waits for its turn. */
  readonly ageMs: () => number;
  /** Never rejects. */
  readonly result: Promise<{ readonly outcomes: readonly RpcCallResult[] } | { readonly error: unknown }>;
}

/** Attempts of one request, the hedge included. One attempt is one HTTP request where the endpoint accepts batches. */
const MAX_ATTEMPTS = 3;
/** Maximum delay before the second attempt at the same endpoint. It doubles for the third. */
const RETRY_JITTER_MS = 100;
const MIN_HEDGE_DELAY_MS = 100;
/** An endpoint that is slower than this is left behind by faster ones. */
const MAX_HEDGE_DELAY_MS = 1_000;
/** Hedge delay before any latency is known: enough to open a connection. */
export const DEFAULT_HEDGE_DELAY_MS = 500;
const MIN_PATIENCE_MS = 1_500;
/** An endpoint that always takes two seconds is not late before the fourth. */
const PATIENCE_FACTOR = 2;
/** A connection may be dead while its endpoint is well: a late attempt is repeated after this time, in milliseconds. */
const MIN_REPEAT_MS = 3_000;
/** Searching logs takes long: after this time beyond the endpoint's latency, in milliseconds, another one is asked too. */
export const SEARCH_PATIENCE_MS = 5_000;
/** Bounds the repeated attempts that a request has at the same time at endpoints that hang. */
const MAX_REPEATS = 4;

/**
 * One request: asks the best endpoint, hedges once with the next one when the first is slow, and fails over to other
 * endpoints, or retries, when one fails. A slow attempt is not cut off: others begin beside it, and the first response is
 * used. The request ends with the caller's signal or after the request timeout; an attempt that has had no response by then,
 * although its endpoint had more time than it usually takes, counts as failed.
 *
 * An endpoint whose newest block turns out to be too old counts only while no other one may have a newer block.
 *
 * A request that searches logs has one attempt per endpoint and no hedge: others would only double the work. What is too
 * much for an endpoint does not count as its failure.
 */
export class Attempts {
  readonly #policy: AttemptPolicy;
  readonly #calls: readonly RpcCall[];
  readonly #scope: AbortScope;
  readonly #startedAt: number;
  readonly #isSearch: boolean;
  /** Oldest first. */
  #running: readonly Attempt[] = [];
  readonly #countByEndpoint = new Map<Endpoint, number>();
  /** Endpoints that would give the same response again. */
  readonly #exhausted = new Set<Endpoint>();
  #remainingAttempts = MAX_ATTEMPTS;
  #remainingRepeats = MAX_REPEATS;
  #hasHedged = false;
  #failure: UpstreamError | undefined;
  /** What endpoints whose newest block is too old have said first. */
  #stalledOutcomes: readonly RpcCallResult[] | undefined;

  constructor(policy: AttemptPolicy, calls: readonly RpcCall[], signal: AbortSignal) {
    this.#policy = policy;
    this.#calls = calls;
    this.#scope = createAbortScope(signal, policy.requestTimeoutMs);
    this.#startedAt = policy.now();
    this.#isSearch = calls.some(({ method }) => method === "eth_getLogs");
  }

  /**
   * Gets the outcomes of all calls from one endpoint. To be called once.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when no endpoint responds
   */
  async run(): Promise<readonly RpcCallResult[]> {
    const { slug, closing } = this.#policy;
    const { signal } = this.#scope;
    try {
      while (!signal.aborted) {
        if (this.#running.length === 0 && !(await this.#startNext())) break;
        const ended = await this.#waitForResult();
        if (ended === undefined) continue;
        const { attempt, result } = ended;
        if ("outcomes" in result) {
          this.#recordSuccess(attempt, result.outcomes);
          if (!this.#exhausted.has(attempt.endpoint)) return result.outcomes;
          this.#stalledOutcomes ??= result.outcomes;
          continue;
        }
        if (signal.aborted || closing.aborted) break;
        this.#recordFailure(attempt, result.error);
      }
      this.#recordSilence();
    } finally {
      this.#scope.cancel();
      for (const { health } of this.#running) health.ignore();
    }
    if (this.#stalledOutcomes !== undefined) return this.#stalledOutcomes;
    const cause = this.#failure ?? new UpstreamError("did not answer in time", { kind: "timeout" });
    throw new ServiceError("UPSTREAM_UNAVAILABLE", `no RPC endpoint of ${slug} responded`, { cause });
  }

  /** Starts an attempt at the endpoint that has had the fewest. Returns false when there is none left. */
  async #startNext(): Promise<boolean> {
    const { listCandidates, random, sleep } = this.#policy;
    const candidates = listCandidates();
    const endpoint = this.#findLeastAsked(candidates);
    if (endpoint === undefined || this.#remainingAttempts === 0) return false;
    const previous = this.#countByEndpoint.get(endpoint) ?? 0;
    if (previous > 0) await sleep(random() * RETRY_JITTER_MS * 2 ** (previous - 1), this.#scope.signal, "retry");
    if (this.#scope.signal.aborted) return false;
    const mayProbe = this.#countByEndpoint.size === 0 && !this.#isSearch;
    const probed = mayProbe ? candidates.find(({ breaker }) => breaker.isProbeDue()) : undefined;
    if (probed !== undefined && probed !== endpoint) void this.#probe(probed, endpoint);
    this.#remainingAttempts -= 1;
    this.#start(endpoint);
    return true;
  }

  #start(endpoint: Endpoint): void {
    const { now } = this.#policy;
    this.#countByEndpoint.set(endpoint, (this.#countByEndpoint.get(endpoint) ?? 0) + 1);
    let permittedAt = now();
    const onWait = (ms: number): void => {
      permittedAt = Math.max(permittedAt, now() + ms);
    };
    const attempt: Attempt = {
      endpoint,
      sentAt: now(),
      health: endpoint.breaker.beginAttempt(),
      ageMs: () => now() - permittedAt,
      result: endpoint.send(this.#calls, this.#scope.signal, onWait).then(
        (outcomes) => ({ outcomes }),
        (error: unknown) => ({ error }),
      ),
    };
    this.#running = [...this.#running, attempt];
  }

  /** Returns the first attempt to end; undefined: another one has begun beside it, or the time is over. */
  async #waitForResult() {
    const results = this.#running.map(async (attempt) => ({ attempt, result: await attempt.result }));
    const next = this.#planNext();
    if (next === undefined)
      return this.#stalledOutcomes === undefined ? Promise.race(results) : this.#waitForNewer(results);
    const { endpoint, beside, afterMs, purpose } = next;
    const scope = createAbortScope(this.#scope.signal);
    const isDue = this.#policy
      .sleep(Math.max(1, afterMs - beside.ageMs()), scope.signal, purpose)
      // Timers run before I/O: a response that has arrived by now is still read.
      .then(() => nextTurn(undefined));
    try {
      const first = await Promise.race([...results, isDue]);
      if (first !== undefined || this.#scope.signal.aborted) return first;
    } finally {
      scope.cancel();
    }
    if (purpose === "hedge") this.#hasHedged = true;
    if (this.#countByEndpoint.has(endpoint)) this.#remainingRepeats -= 1;
    else this.#remainingAttempts -= 1;
    this.#start(endpoint);
    return undefined;
  }

  /** Returns the first result; undefined, and ends all: it takes longer than usual, and an older answer is there. */
  async #waitForNewer<T>(results: readonly Promise<T>[]): Promise<T | undefined> {
    const waitMs = Math.max(1, ...this.#running.map((each) => computePatienceMs(each.endpoint) - each.ageMs()));
    const isLate = this.#policy.sleep(waitMs, this.#scope.signal, "late").then(() => nextTurn(undefined));
    const first = await Promise.race([...results, isLate]);
    if (first === undefined) this.#scope.cancel();
    return first;
  }

  /**
   * Returns the attempt that is due next although others are running, unless that beside which it begins ends before it has
   * lasted that long; undefined: none.
   */
  #planNext() {
    const { listCandidates, isHealthy, requestTimeoutMs, now } = this.#policy;
    const [first] = this.#running;
    const latest = this.#running.at(-1);
    if (first === undefined || latest === undefined) return undefined;
    const late = (endpoint: Endpoint, afterMs: number) =>
      ({ endpoint, beside: latest, afterMs, purpose: "late" }) as const;
    const candidates = listCandidates();
    const untried =
      this.#remainingAttempts > 0 ? candidates.filter((candidate) => !this.#countByEndpoint.has(candidate)) : [];
    if (this.#isSearch) {
      const afterMs = SEARCH_PATIENCE_MS + (latest.endpoint.breaker.latencyP95Ms() ?? 0);
      return untried[0] && late(untried[0], afterMs);
    }
    const peer = this.#hasHedged ? undefined : untried.find(isHealthy);
    if (peer !== undefined) {
      const afterMs = computeHedgeDelayMs(first.endpoint.breaker.latencyP95Ms(), {
        peerLatencyMs: peer.breaker.latencyP95Ms(),
        requestTimeoutMs,
      });
      return { endpoint: peer, beside: first, afterMs, purpose: "hedge" } as const;
    }
    const patienceMs = computePatienceMs(latest.endpoint);
    if (untried[0] !== undefined) return late(untried[0], patienceMs);
    const mayRepeat = this.#remainingRepeats > 0 && this.#stalledOutcomes === undefined;
    const repeated = mayRepeat ? this.#findLeastAsked(candidates) : undefined;
    const repeatMs = Math.max(patienceMs, MIN_REPEAT_MS, requestTimeoutMs / (MAX_REPEATS + 1));
    // An attempt that could not get half of the usual time would be in vain.
    const remainingMs = requestTimeoutMs - (now() - this.#startedAt);
    if (repeated === undefined || repeatMs * 1.5 > remainingMs) return undefined;
    return late(repeated, repeatMs);
  }

  #findLeastAsked(candidates: readonly Endpoint[]): Endpoint | undefined {
    const count = (endpoint: Endpoint): number => this.#countByEndpoint.get(endpoint) ?? 0;
    const isUsable = (endpoint: Endpoint): boolean =>
      !this.#exhausted.has(endpoint) && !(this.#stalledOutcomes !== undefined && this.#policy.isStalled(endpoint));
    return candidates.filter(isUsable).sort((a, b) => count(a) - count(b))[0];
  }

  /**
   * Sends the request also to an endpoint whose circuit breaker is half open. Nobody waits for its response: it decides
   * whether the endpoint is used again, unless it takes much longer than the one that answers the request.
   */
  async #probe(endpoint: Endpoint, peer: Endpoint): Promise<void> {
    const { closing, requestTimeoutMs, now } = this.#policy;
    const scope = createAbortScope(closing, requestTimeoutMs);
    const startedAt = now();
    let waitedMs = 0;
    const health = endpoint.breaker.beginAttempt();
    try {
      await endpoint.send(this.#calls, scope.signal, (ms) => {
        waitedMs += ms;
      });
      const latencyMs = now() - startedAt - waitedMs;
      const maxLatencyMs = Math.max(MAX_HEDGE_DELAY_MS, 2 * (peer.breaker.latencyP95Ms() ?? 0));
      if (latencyMs > maxLatencyMs) health.recordFailure(latencyMs);
      else health.recordSuccess(latencyMs);
    } catch (error) {
      if (closing.aborted || !(error instanceof UpstreamError)) return health.ignore();
      startRequestedCooldown(endpoint, error);
      health.recordFailure();
    } finally {
      scope.cancel();
    }
  }

  #recordSuccess(attempt: Attempt, outcomes: readonly RpcCallResult[]): void {
    const { onOutcomes } = this.#policy;
    onOutcomes(attempt.endpoint, this.#calls, outcomes, attempt.sentAt);
    attempt.health.recordSuccess(this.#isSearch ? undefined : Math.max(0, attempt.ageMs()));
    if (this.#isBehindOthers(attempt.endpoint)) {
      this.#exhausted.add(attempt.endpoint);
      this.#running = this.#running.filter((each) => each !== attempt);
      return;
    }
    if (this.#isSearch) return;
    const order = this.#running.indexOf(attempt);
    // Being overtaken by a later attempt counts as a failure. Otherwise an endpoint that hangs would stay the first.
    const overtaken = this.#running.filter(({ endpoint }, index) => index < order && endpoint !== attempt.endpoint);
    for (const { endpoint, health, ageMs } of overtaken) {
      if (health.recordFailure(Math.max(0, ageMs())))
        this.#reportFailure(endpoint, "is repeatedly slower than the next endpoint");
    }
    this.#running = this.#running.filter((each) => each !== attempt && !overtaken.includes(each));
  }

  /** Returns whether the newest block of an endpoint is too old, and that of one that works and has not failed may not be. */
  #isBehindOthers(endpoint: Endpoint): boolean {
    const { isStalled, listCandidates } = this.#policy;
    if (!isStalled(endpoint)) return false;
    const untried = listCandidates().filter((candidate) => !this.#countByEndpoint.has(candidate));
    const others = [...this.#running.map((attempt) => attempt.endpoint), ...untried];
    return others.some((other) => other.breaker.isClosed() && !isStalled(other));
  }

  /** @throws the error, if there is nothing else: when it was thrown before the request was sent, it is not the endpoint's */
  #recordFailure(attempt: Attempt, error: unknown): void {
    const { endpoint, health } = attempt;
    this.#running = this.#running.filter((each) => each !== attempt);
    if (!(error instanceof UpstreamError)) {
      health.ignore();
      if (this.#running.length === 0 && this.#stalledOutcomes === undefined) throw error;
      this.#exhausted.add(endpoint);
      return;
    }
    // A rejection by a node tells more than the failures of unreachable ones.
    if (!(this.#failure instanceof RpcError)) this.#failure = error;
    startRequestedCooldown(endpoint, error);
    const { status } = error;
    // A rejected call says nothing about other calls, and neither does a search that is too long for the endpoint.
    if (error instanceof RpcError || (this.#isSearch && status !== undefined)) health.ignore();
    else health.recordFailure();
    if (this.#isSearch || (status !== undefined && status >= 400 && status < 429)) this.#exhausted.add(endpoint);
    this.#reportFailure(endpoint, error.message);
  }

  /** Ends the attempts of a request that gets no response any more, because its time is over or its caller has left. */
  #recordSilence(): void {
    const { closing, requestTimeoutMs } = this.#policy;
    if (closing.aborted || this.#isSearch) return;
    const silent = new Map<Endpoint, Attempt>();
    for (const attempt of this.#running) {
      const patienceMs = Math.min(computePatienceMs(attempt.endpoint), 0.9 * requestTimeoutMs);
      if (!silent.has(attempt.endpoint) && attempt.ageMs() >= patienceMs) silent.set(attempt.endpoint, attempt);
    }
    for (const [endpoint, { health }] of silent) {
      health.recordFailure();
      this.#reportFailure(endpoint, "did not answer in time");
    }
    this.#running = this.#running.filter((attempt) => silent.get(attempt.endpoint) !== attempt);
  }

  #reportFailure(endpoint: Endpoint, error: string): void {
    const method = [...new Set(this.#calls.map((call) => call.method))].join(",");
    this.#policy.onFailure(endpoint, method, error);
  }
}

export function startRequestedCooldown({ breaker }: Endpoint, { retryAfterMs }: UpstreamError): void {
  if (retryAfterMs !== undefined) breaker.startCooldown(retryAfterMs);
}

/**
 * Returns how long to wait for a response before hedging, in milliseconds. It is limited so that an endpoint is left behind
 * by a faster one. A peer that is not expected to respond earlier is asked only when the response is later than usual:
 * where all endpoints are slow, hedging would double their load and help nobody.
 * @param latencyMs 95th percentile of the endpoint's last latencies; undefined: none is known
 */
export function computeHedgeDelayMs(
  latencyMs: number | undefined,
  {
    peerLatencyMs,
    requestTimeoutMs,
  }: { readonly peerLatencyMs?: number | undefined; readonly requestTimeoutMs: number },
): number {
  const delayMs = Math.min(Math.max(latencyMs ?? DEFAULT_HEDGE_DELAY_MS, MIN_HEDGE_DELAY_MS), MAX_HEDGE_DELAY_MS);
  if (latencyMs === undefined || peerLatencyMs === undefined || delayMs + peerLatencyMs < latencyMs) return delayMs;
  // The peer needs its time too.
  return Math.max(delayMs, Math.min(latencyMs, requestTimeoutMs - 1.5 * peerLatencyMs));
}

/**
 * Returns after how many milliseconds without a response another attempt is due, and the attempt counts as failed if it
 * gets none. It follows the endpoint's own latency.
 */
export function computePatienceMs({ breaker }: Endpoint): number {
  return Math.max(PATIENCE_FACTOR * (breaker.latencyP95Ms() ?? 0), MIN_PATIENCE_MS);
}
