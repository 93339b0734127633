import { setMaxListeners } from "node:events";
import { LRUCache } from "lru-cache";
import type { ChainClient, RpcCall, RpcCallResult } from "../../chain/chain-client.js";
import type { NetworkChainClients } from "../../chain/chains.js";
import { getHeadTracker, type HeadTracker } from "../../chain/heads/head-tracker.js";
import { ServiceError } from "../../errors.js";
import { createAbortScope } from "../../resilience/abort-scope.js";
import type { AdaptiveLimiter } from "../../resilience/adaptive-limiter.js";
import type { MaybePromise } from "../../resilience/maybe-async.js";
import { SingleFlight } from "../../resilience/single-flight.js";
import { Waiters } from "../../resilience/waiters.js";
import { copyContext, type LookupContext } from "../sources/transfer-source.js";
import { isBudgetExhausted, type LookupBudgets } from "../spend/lookup-budget.js";
import { meterChains } from "../spend/metered-chains.js";
import { isImmutableStatus, type SentTransfer, type TransferStatus } from "../status.js";
import { getStatusTtlMs } from "../status-cache.js";
import type { ChainDetails, DetailsReader } from "./details-reader.js";
import { areFinalDetails, type DetailsOutcome } from "./transfer-details.js";

/** What the chains say about one status. */
type ReadOutcome = { readonly details: ChainDetails } | { readonly error: ServiceError };

/** About a kilobyte each. */
const MAX_ENTRIES = 10_000;
/** Details that cannot change are read again after this time as well, in milliseconds. */
const IMMUTABLE_TTL_MS = 60 * 60_000;
/** Statuses of one call that are read at the same time: at most five batches per chain and round. */
const MAX_PARALLEL_READS = 100;
/** Calls of one batch. Receipts are large, and endpoints limit the size of their responses. */
const MAX_BATCH_CALLS = 20;
/** A caller's wait ends this long before its deadline, to report which chain failed; at most a fifth of the time. */
const DEADLINE_MARGIN_MS = 500;

/**
 * Finds the details of statuses, whatever source those came from. Caches them for as long as their status, and deduplicates
 * concurrent reads of one status. It keeps no errors and nothing read from a caller's custom endpoint. One call spends one
 * lookup budget. A read ends when all its callers have left.
 */
export class DetailsFinder {
  readonly #options;
  readonly #cache: LRUCache<string, ReadOutcome>;
  readonly #reads: SingleFlight<ReadOutcome>;

  constructor(options: {
    readonly readDetails: DetailsReader;
    readonly budgets: LookupBudgets;
    /** Limits lookups. */
    readonly limiter: AdaptiveLimiter;
    /** Returns how long half of the transfers of a route took at most, in seconds; undefined: unknown. Absent: always unknown. */
    readonly getMedianDeliverySeconds?:
      | ((route: Pick<SentTransfer, "token" | "source" | "destination">) => number | undefined)
      | undefined;
    /** Time limit of a shared read, in milliseconds. */
    readonly timeoutMs: number;
    /** Stops all reads. */
    readonly closing: AbortSignal;
    /** Monotonic clock, in milliseconds. */
    readonly now: () => number;
  }) {
    this.#options = options;
    this.#cache = new LRUCache({ max: MAX_ENTRIES, perf: { now: options.now }, ttlResolution: 0 });
    this.#reads = new SingleFlight(options.closing);
  }

  /**
   * Reads the details of statuses of one network, several at once: one batch per chain and round. Returns an outcome for each
   * status, in their order; the error of one affects no other. Answers synchronously when all details are cached, without
   * reading the signal.
   * @param context `remainingMs` limits the wait: a chain that is too slow gives UPSTREAM_UNAVAILABLE before that time is over
   * @throws ServiceError OVERLOADED or RATE_LIMITED when the chains cannot be read for this caller now
   */
  find(statuses: readonly TransferStatus[], context: LookupContext): MaybePromise<readonly DetailsOutcome[]> {
    if (context.isPrivate)
      return this.#findInTime(statuses, context, (waitContext) => this.#readAll(statuses, waitContext));
    const outcomes: DetailsOutcome[] = [];
    for (const status of statuses) {
      const cached = this.#cache.get(createKey(status, context));
      if (cached === undefined)
        return this.#findInTime(statuses, context, (waitContext) => this.#findShared(statuses, waitContext));
      outcomes.push(this.#addEstimate(status, cached));
    }
    return outcomes;
  }

  /** Ends the wait for outcomes before the deadline of the caller. */
  async #findInTime(
    statuses: readonly TransferStatus[],
    context: LookupContext,
    read: (waitContext: LookupContext) => Promise<readonly ReadOutcome[]>,
  ): Promise<readonly DetailsOutcome[]> {
    const availableMs = context.remainingMs();
    const scope = createAbortScope(context.signal, availableMs - Math.min(DEADLINE_MARGIN_MS, availableMs / 5));
    setMaxListeners(0, scope.signal);
    try {
      const outcomes = await read(copyContext(context, scope.signal));
      return statuses.map((status, index) =>
        this.#addEstimate(status, outcomes[index] ?? { error: tooSlowError(status) }),
      );
    } catch (error) {
      if (error !== scope.signal.reason) throw error;
      return statuses.map((status) => ({ error: tooSlowError(status) }));
    } finally {
      scope.cancel();
    }
  }

  async #findShared(statuses: readonly TransferStatus[], context: LookupContext): Promise<readonly ReadOutcome[]> {
    const keys = statuses.map((status) => createKey(status, context));
    if (keys.some((key) => !this.#cache.has(key) && !this.#reads.isInFlight(key)))
      this.#options.limiter.assertCapacity(context.waiters ?? context.caller);
    return this.#findTogether(statuses, context);
  }

  /** Reads statuses together that are neither cached nor being read, until nobody waits for any of them. */
  #findTogether(
    statuses: readonly TransferStatus[],
    context: LookupContext,
    mayRepeat = true,
  ): Promise<readonly ReadOutcome[]> {
    const group: TransferStatus[] = [];
    const groupWaiters = new Waiters(this.#options.closing);
    let start = (_: Promise<readonly ReadOutcome[]>): void => {};
    const outcomes = new Promise<readonly ReadOutcome[]>((resolve) => {
      start = resolve;
    });
    const found = statuses.map(async (status) => {
      const key = createKey(status, context);
      const cached = this.#cache.get(key);
      if (cached !== undefined) return cached;
      let isOwn = false;
      const read = async (waiters: Waiters): Promise<ReadOutcome> => {
        isOwn = true;
        const place = group.push(status) - 1;
        const leave = groupWaiters.addAll(waiters);
        const outcome = await outcomes.then((all) => all[place] ?? { error: tooSlowError(status) }).finally(leave);
        this.#store(key, status, outcome);
        return outcome;
      };
      const outcome = await this.#reads.run(key, context, read);
      const isSpent = !isOwn && "error" in outcome && isBudgetExhausted(outcome.error, "caller");
      if (!isSpent || !mayRepeat) return outcome;
      // Another caller has spent its budget; this one has its own.
      const [again = outcome] = await this.#findTogether([status], context, false);
      return again;
    });
    start(this.#readGroup(group, groupWaiters, context));
    return Promise.all(found);
  }

  /** Reads statuses in the time that all who may join have. Returns nothing if that is over before there was a slot. */
  async #readGroup(
    statuses: readonly TransferStatus[],
    waiters: Waiters,
    context: LookupContext,
  ): Promise<readonly ReadOutcome[]> {
    const { timeoutMs, now } = this.#options;
    const scope = createAbortScope(waiters.signal, timeoutMs);
    // Each of the reads listens to it.
    setMaxListeners(0, scope.signal);
    const deadline = now() + timeoutMs;
    const remainingMs = (): number => deadline - now();
    try {
      if (statuses.length === 0) return [];
      return await this.#readAll(statuses, { ...context, waiters, signal: scope.signal, remainingMs });
    } catch (error) {
      if (error !== scope.signal.reason) throw error;
      return [];
    } finally {
      scope.cancel();
      waiters.close();
    }
  }

  /** Reads the details of statuses within one budget and one slot of the limiter. */
  #readAll(statuses: readonly TransferStatus[], context: LookupContext): Promise<readonly ReadOutcome[]> {
    const { budgets, limiter } = this.#options;
    const { signal, waiters, isPrivate } = context;
    const callers = waiters ?? context.caller;
    return limiter.run(callers, signal, async () => {
      const budget = budgets.open(callers, isPrivate);
      const chains = joinCalls(meterChains(context.chains, budget), signal);
      const readContext: LookupContext = { ...context, chains };
      const outcomes: ReadOutcome[] = [];
      for (let start = 0; start < statuses.length; start += MAX_PARALLEL_READS) {
        const part = statuses.slice(start, start + MAX_PARALLEL_READS);
        outcomes.push(...(await Promise.all(part.map((status) => this.#readOne(status, readContext)))));
      }
      return outcomes.map((outcome) => {
        const exhaustion = "error" in outcome ? budget.getExhaustion() : undefined;
        return exhaustion === undefined ? outcome : { error: exhaustion };
      });
    });
  }

  async #readOne(status: TransferStatus, context: LookupContext): Promise<ReadOutcome> {
    try {
      return { details: await this.#options.readDetails(status, context) };
    } catch (error) {
      if (error instanceof ServiceError) return { error };
      if (error === context.signal.reason) return { error: tooSlowError(status) };
      throw error;
    }
  }

  #store(key: string, status: TransferStatus, outcome: ReadOutcome): void {
    if ("error" in outcome) return;
    const isSettled = isImmutableStatus(status) && areFinalDetails(outcome.details);
    this.#cache.set(key, outcome, { ttl: isSettled ? IMMUTABLE_TTL_MS : getStatusTtlMs(status) });
  }

  #addEstimate({ sent }: TransferStatus, outcome: ReadOutcome): DetailsOutcome {
    if ("error" in outcome) return outcome;
    const seconds = this.#options.getMedianDeliverySeconds?.(sent);
    const estimatedDeliveryAt = seconds === undefined ? undefined : sent.timestamp + seconds;
    return { details: { ...outcome.details, estimatedDeliveryAt } };
  }
}

/** Identifies a transfer and what its details depend on. */
function createKey({ sent, delivery, state, source, isFinal }: TransferStatus, { network }: LookupContext): string {
  const { transactionHash, logIndex, id } = sent;
  return `${network.slug} ${transactionHash} ${logIndex} ${id} ${state} ${source} ${isFinal} ${delivery?.transactionHash ?? ""}`;
}

function tooSlowError({ sent: { source, destination } }: TransferStatus): ServiceError {
  const message = `the details of the transfer could not be read from ${source.slug} and ${destination.slug} in time`;
  return new ServiceError("UPSTREAM_UNAVAILABLE", message);
}

/**
 * Decorates the clients of chains: single calls to one chain that are made in the same turn of the event loop go out in one
 * batch.
 * @param signal ends the batches, in place of the signals of their calls
 */
export function joinCalls(chains: NetworkChainClients, signal: AbortSignal): NetworkChainClients {
  const clients = new Map<string, ChainClient>();
  return {
    hasCustomEndpoint: (slug) => chains.hasCustomEndpoint(slug),
    getClient(slug) {
      const client = clients.get(slug) ?? new JoiningClient(chains.getClient(slug), signal);
      clients.set(slug, client);
      return client;
    },
  };
}

interface QueuedCall {
  readonly call: RpcCall;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

class JoiningClient implements ChainClient {
  readonly slug: string;
  readonly heads: HeadTracker;
  readonly #client: ChainClient;
  readonly #signal: AbortSignal;
  #queue: QueuedCall[] = [];

  constructor(client: ChainClient, signal: AbortSignal) {
    this.slug = client.slug;
    this.heads = getHeadTracker(client);
    this.#client = client;
    this.#signal = signal;
  }

  send(...[method, params, , options]: Parameters<ChainClient["send"]>): Promise<unknown> {
    // After the callbacks of all promises that are settled now, so that their calls join.
    if (this.#queue.length === 0) process.nextTick(() => this.#flush());
    return new Promise((resolve, reject) => {
      this.#queue.push({ call: { ...options, method, params }, resolve, reject });
    });
  }

  sendBatch(...args: Parameters<ChainClient["sendBatch"]>): ReturnType<ChainClient["sendBatch"]> {
    return this.#client.sendBatch(...args);
  }

  getLogs(...args: Parameters<ChainClient["getLogs"]>): ReturnType<ChainClient["getLogs"]> {
    return this.#client.getLogs(...args);
  }

  #flush(): void {
    const calls = this.#queue;
    this.#queue = [];
    for (let start = 0; start < calls.length; start += MAX_BATCH_CALLS) {
      void this.#sendTogether(calls.slice(start, start + MAX_BATCH_CALLS));
    }
  }

  async #sendTogether(queued: readonly QueuedCall[]): Promise<void> {
    try {
      const outcomes = await this.#client.sendBatch(
        queued.map(({ call }) => call),
        this.#signal,
      );
      for (const [index, call] of queued.entries()) settle(call, outcomes[index]);
    } catch (error) {
      for (const { reject } of queued) reject(error);
    }
  }
}

function settle({ resolve, reject }: QueuedCall, outcome: RpcCallResult | undefined): void {
  if (outcome === undefined) reject(new Error("the call has no outcome"));
  else if ("revert" in outcome) reject(outcome.revert);
  else resolve(outcome.result);
}
