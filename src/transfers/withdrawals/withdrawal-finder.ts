import { LRUCache } from "lru-cache";
import { ServiceError } from "../../errors.js";
import type { AttestationClient } from "../../hop/attestation-client.js";
import { createAbortScope } from "../../resilience/abort-scope.js";
import type { AdaptiveLimiter } from "../../resilience/adaptive-limiter.js";
import { SingleFlight } from "../../resilience/single-flight.js";
import type { ResumableLogScanner } from "../sources/chain/resumable-log-scanner.js";
import { isSourceUnavailable, type LookupContext } from "../sources/transfer-source.js";
import { isBudgetExhausted, type LookupBudgets } from "../spend/lookup-budget.js";
import { meterChains } from "../spend/metered-chains.js";
import type { TransferStatus } from "../status.js";
import { getStatusTtlMs } from "../status-cache.js";
import { type FindIndexedTree, readBridgeWithdrawal } from "./bridge-withdrawal.js";
import { readCctpWithdrawal } from "./cctp-withdrawal.js";
import { TreeSearch } from "./transfer-tree.js";
import { FailedCheckError, type Withdrawal, type WithdrawalCheck } from "./withdrawal.js";

/** At most two kilobytes each: a proof has ten siblings, a message 248 bytes. */
const MAX_ENTRIES = 1_000;
/** A read ends this long before its deadline, to report which chain was too slow; at most a fifth of the time. */
const DEADLINE_MARGIN_MS = 500;
/** How much of the time that its callers have at least a read waits for an attestation. */
const ATTESTATION_SHARE = 0.6;

/**
 * Finds what is left to do for transfers that have not been received. Keeps it for about a block, and deduplicates concurrent
 * reads; keeps no errors and nothing read from a caller's custom endpoint. A read ends when all its callers have left.
 */
export class WithdrawalFinder {
  readonly #options;
  readonly #cache: LRUCache<string, Withdrawal>;
  readonly #reads: SingleFlight<Withdrawal>;
  readonly #treeSearch: TreeSearch;

  constructor(options: {
    /** undefined: there is no index. */
    readonly findIndexedTree: FindIndexedTree | undefined;
    readonly logScanner: ResumableLogScanner;
    readonly budgets: LookupBudgets;
    /** Limits lookups. */
    readonly limiter: AdaptiveLimiter;
    /** undefined: the source is switched off. */
    readonly attestations: Pick<AttestationClient, "findCurrent"> | undefined;
    /** Called when what the configured endpoints, or the index, say does not fit. */
    readonly onFailedCheck: (check: WithdrawalCheck | "index") => void;
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
    this.#treeSearch = new TreeSearch(options.logScanner);
  }

  /**
   * Returns what is left to do for a transfer.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when a chain does not tell, or not in time, or what it tells does not fit;
   * OVERLOADED or RATE_LIMITED when the chains cannot be read for this caller now
   */
  async find(status: TransferStatus, context: LookupContext): Promise<Withdrawal> {
    const { sent, delivery, source, observedAtMs } = status;
    // What the explorer says cannot be verified: it answers where the chains did not.
    if (source === "explorer") {
      const message = `${sent.source.slug} did not return the transfer, which the explorer knows`;
      throw new ServiceError("UPSTREAM_UNAVAILABLE", message);
    }
    if (delivery !== undefined) return { state: "RECEIVED" };
    if (sent.kind === "l1") return { state: "AUTOMATIC" };
    const { limiter, timeoutMs, now } = this.#options;
    const { network, caller, signal } = context;
    // Callers share reads with those who have about as much time, from 2^n up to 2^(n+1) ms: the wait ends before the deadline of
    // each, and none ends it for those who have more.
    const timeClass = Math.floor(Math.log2(Math.max(context.remainingMs(), 1)));
    const attestationWaitMs = 2 ** timeClass * ATTESTATION_SHARE;
    if (context.isPrivate) return limiter.run(caller, signal, () => this.#read(status, context, attestationWaitMs));
    // What was read after one observation is not returned as being as new as the next one.
    const key = `${network.slug} ${sent.transactionHash} ${sent.blockNumber} ${sent.logIndex} ${observedAtMs}`;
    const cached = this.#cache.get(key);
    if (cached !== undefined) return cached;
    const readKey = sent.kind === "cctp" ? `${key} ${timeClass}` : key;
    if (!this.#reads.isInFlight(readKey)) limiter.assertCapacity(caller);
    return this.#reads.run(readKey, context, async (waiters) => {
      const deadline = now() + timeoutMs;
      const shared = { ...context, waiters, signal: waiters.signal, remainingMs: () => deadline - now() };
      const withdrawal = await limiter.run(waiters, waiters.signal, () =>
        this.#read(status, shared, attestationWaitMs),
      );
      this.#cache.set(key, withdrawal, { ttl: getStatusTtlMs(status) });
      return withdrawal;
    });
  }

  /**
   * Reads within one budget, and in time to tell which chain was too slow.
   * @param attestationWaitMs longest wait for an attestation, in milliseconds
   */
  async #read({ sent }: TransferStatus, context: LookupContext, attestationWaitMs: number): Promise<Withdrawal> {
    const { isPrivate } = context;
    const { budgets, findIndexedTree, attestations, onFailedCheck } = this.#options;
    const budget = budgets.open(context.waiters ?? context.caller, isPrivate);
    const availableMs = context.remainingMs();
    const scope = createAbortScope(context.signal, availableMs - Math.min(DEADLINE_MARGIN_MS, availableMs / 5));
    const chains = meterChains(context.chains, budget);
    const readContext: LookupContext = { ...context, chains, signal: scope.signal };
    // What a caller's own endpoint says is the caller's.
    const report = isPrivate ? (): void => {} : onFailedCheck;
    const trees = { findIndexedTree, treeSearch: this.#treeSearch, onWrongIndex: () => report("index") };
    const read = (): Promise<Withdrawal> =>
      sent.kind === "cctp"
        ? readCctpWithdrawal(sent, attestations, attestationWaitMs, readContext)
        : readBridgeWithdrawal(sent, trees, readContext);
    try {
      // A new block between two reads looks like a contradiction, once: with a commit, or a withdrawal.
      return await read().catch((error: unknown) => {
        if (error instanceof FailedCheckError) return read();
        throw error;
      });
    } catch (error) {
      if (error instanceof FailedCheckError) report(error.check);
      if (error === scope.signal.reason && !context.signal.aborted)
        throw tooSlowError(sent.source.slug, sent.destination.slug);
      if (!isSourceUnavailable(error) && !isBudgetExhausted(error)) throw error;
      throw budget.getExhaustion() ?? error;
    } finally {
      scope.cancel();
    }
  }
}

function tooSlowError(source: string, destination: string): ServiceError {
  const message = `what the withdrawal needs could not be read from ${source} and ${destination} in time`;
  return new ServiceError("UPSTREAM_UNAVAILABLE", message);
}
