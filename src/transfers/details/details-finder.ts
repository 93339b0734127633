import { setMaxListeners } from "node:events";
import { LRUCache } from "lru-cache";
import { ServiceError } from "../../errors.js";
import { createAbortScope, raceAbort } from "../../resilience/abort-scope.js";
import type { AdaptiveLimiter } from "../../resilience/adaptive-limiter.js";
import { type LookupContext, usesCustomEndpoints } from "../sources/transfer-source.js";
import { isBudgetExhausted, type LookupBudgets } from "../spend/lookup-budget.js";
import { meterChains } from "../spend/metered-chains.js";
import { isImmutableStatus, type TransferStatus } from "../status.js";
import { getStatusTtlMs } from "../status-cache.js";
import type { SentTransfer } from "../transfer.js";
import type { ChainDetails, DetailsReader } from "./details-reader.js";
import { joinCalls } from "./join-calls.js";
import { areFinalDetails, type DetailsOutcome, type TransferDetailsFinder } from "./transfer-details.js";

export interface TransferDetailsFinderOptions {
  readonly readDetails: DetailsReader;
  readonly budgets: LookupBudgets;
  /** Limits lookups. */
  readonly limiter: AdaptiveLimiter;
  /** Returns how long half of the transfers of a route took at most, in seconds; 0: unknown. Absent: always unknown. */
  readonly getMedianDeliverySeconds?: ((route: TransferRoute) => number) | undefined;
  /** Time limit of a shared read, in milliseconds. */
  readonly timeoutMs: number;
  /** Stops all reads. */
  readonly closing: AbortSignal;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
}

/** The route of a transfer. */
export type TransferRoute = Pick<SentTransfer, "token" | "source" | "destination">;

/** What the chains say about one status. */
type ReadOutcome = { readonly details: ChainDetails } | { readonly error: ServiceError };

/** About a kilobyte each. */
const MAX_ENTRIES = 10_000;
/** Details that cannot change are read again after this time as well, in milliseconds. */
const IMMUTABLE_TTL_MS = 60 * 60_000;
/** Statuses of one call that are read at the same time: at most five batches per chain and round. */
const MAX_PARALLEL_READS = 100;
/** A caller's wait ends this long before its deadline, to report which chain failed; at most a fifth of the time. */
const DEADLINE_MARGIN_MS = 500;

/**
 * Creates a finder that caches details for as long as their status, and deduplicates concurrent reads of one status. It
 * keeps no errors and nothing read from a caller's custom endpoint. One call spends one lookup budget. A read that has begun
 * is finished even if all its callers leave.
 */
export function createTransferDetailsFinder(options: TransferDetailsFinderOptions): TransferDetailsFinder {
  const { readDetails, budgets, limiter, getMedianDeliverySeconds = () => 0, timeoutMs, closing, now } = options;
  const cache = new LRUCache<string, ReadOutcome>({ max: MAX_ENTRIES, perf: { now }, ttlResolution: 0 });
  const inFlight = new Map<string, Promise<ReadOutcome>>();

  function store(key: string, status: TransferStatus, outcome: ReadOutcome): void {
    if ("error" in outcome) return;
    const isSettled = isImmutableStatus(status) && areFinalDetails(outcome.details);
    cache.set(key, outcome, { ttl: isSettled ? IMMUTABLE_TTL_MS : getStatusTtlMs(status) });
  }

  function addEstimate({ sent }: TransferStatus, outcome: ReadOutcome): DetailsOutcome {
    if ("error" in outcome) return outcome;
    const seconds = getMedianDeliverySeconds(sent);
    return { details: { ...outcome.details, estimatedDeliveryAt: seconds > 0 ? sent.timestamp + seconds : 0 } };
  }

  async function readOne(status: TransferStatus, context: LookupContext): Promise<ReadOutcome> {
    try {
      return { details: await readDetails(status, context) };
    } catch (error) {
      if (error instanceof ServiceError) return { error };
      if (error === context.signal.reason) return { error: tooSlowError(status) };
      throw error;
    }
  }

  /** Reads the details of statuses within one budget and one slot of the limiter. */
  function readAll(
    statuses: readonly TransferStatus[],
    context: LookupContext,
    signal: AbortSignal,
    isPrivate: boolean,
  ): Promise<readonly ReadOutcome[]> {
    return limiter.run(context.caller, signal, async () => {
      const budget = budgets.open(context.caller, isPrivate);
      const chains = joinCalls(meterChains(context.chains, budget.spend), signal);
      const readContext: LookupContext = { ...context, chains, signal };
      const outcomes: ReadOutcome[] = [];
      for (let start = 0; start < statuses.length; start += MAX_PARALLEL_READS) {
        const part = statuses.slice(start, start + MAX_PARALLEL_READS);
        outcomes.push(...(await Promise.all(part.map((status) => readOne(status, readContext)))));
      }
      return outcomes.map((outcome) => {
        const exhaustion = "error" in outcome ? budget.getExhaustion() : undefined;
        return exhaustion === undefined ? outcome : { error: exhaustion };
      });
    });
  }

  /** Starts one read of several statuses that others can join. */
  function startShared(statuses: ReadonlyMap<string, TransferStatus>, context: LookupContext): void {
    const scope = createAbortScope(closing, timeoutMs);
    // Each of the reads listens to it.
    setMaxListeners(0, scope.signal);
    const deadline = now() + timeoutMs;
    const sharedContext: LookupContext = { ...context, signal: scope.signal, remainingMs: () => deadline - now() };
    const all = readAll([...statuses.values()], sharedContext, scope.signal, false).finally(() => scope.cancel());
    for (const [index, [key, status]] of [...statuses].entries()) {
      const one = all.then((outcomes) => {
        const outcome = outcomes[index] ?? { error: tooSlowError(status) };
        store(key, status, outcome);
        return outcome;
      });
      inFlight.set(key, one);
      const remove = (): boolean => inFlight.delete(key);
      one.then(remove, remove);
    }
  }

  async function findShared(
    statuses: readonly TransferStatus[],
    keys: readonly string[],
    context: LookupContext,
  ): Promise<readonly ReadOutcome[]> {
    const missing = new Map<string, TransferStatus>();
    for (const [index, status] of statuses.entries()) {
      const key = keys[index] ?? "";
      if (!cache.has(key) && !inFlight.has(key)) missing.set(key, status);
    }
    if (missing.size > 0) {
      limiter.assertCapacity(context.caller);
      startShared(missing, context);
    }
    const waitFor = async (key: string, status: TransferStatus): Promise<ReadOutcome> => {
      const read = inFlight.get(key);
      return cache.get(key) ?? (read && (await raceAbort(read, context.signal))) ?? { error: tooSlowError(status) };
    };
    return Promise.all(
      statuses.map(async (status, index) => {
        const key = keys[index] ?? "";
        const outcome = await waitFor(key, status);
        const isOwnRead = missing.has(key);
        if (isOwnRead || !("error" in outcome) || !isBudgetExhausted(outcome.error, "caller")) return outcome;
        // Another caller has spent its budget; this one has its own.
        if (!inFlight.has(key)) startShared(new Map([[key, status]]), context);
        return waitFor(key, status);
      }),
    );
  }

  async function findUncached(
    statuses: readonly TransferStatus[],
    keys: readonly string[] | undefined,
    context: LookupContext,
  ): Promise<readonly DetailsOutcome[]> {
    const availableMs = context.remainingMs();
    const scope = createAbortScope(context.signal, availableMs - Math.min(DEADLINE_MARGIN_MS, availableMs / 5));
    setMaxListeners(0, scope.signal);
    const waitContext = { ...context, signal: scope.signal };
    try {
      const outcomes = await (keys === undefined
        ? readAll(statuses, waitContext, scope.signal, true)
        : findShared(statuses, keys, waitContext));
      return outcomes.map((outcome, index) => {
        const status = statuses[index];
        if (status === undefined) throw new Error("an outcome without its status");
        return addEstimate(status, outcome);
      });
    } catch (error) {
      if (error !== scope.signal.reason) throw error;
      return statuses.map((status) => ({ error: tooSlowError(status) }));
    } finally {
      scope.cancel();
    }
  }

  return {
    find(statuses, context) {
      if (usesCustomEndpoints(context.chains, context.network.chains.keys()))
        return findUncached(statuses, undefined, context);
      const keys = statuses.map((status) => createKey(status, context));
      const outcomes: DetailsOutcome[] = [];
      for (const [index, status] of statuses.entries()) {
        const cached = cache.get(keys[index] ?? "");
        if (cached === undefined) return findUncached(statuses, keys, context);
        outcomes.push(addEstimate(status, cached));
      }
      return outcomes;
    },
  };
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
