import { ServiceError } from "../../errors.js";
import { getCctpDomain } from "../../hop/cctp.js";
import { type Chain, getPollIntervalMs, type Network } from "../../hop/networks.js";
import { catchMaybeAsync, type MaybePromise, mapMaybeAsync } from "../../resilience/maybe-async.js";
import type { ReadableIndex } from "../index/index-reader.js";
import {
  type CoverageTimes,
  hasCompleteHistory,
  type IndexCoverage,
  type IndexedTransfer,
} from "../index/row-mapping.js";
import type { TransferTree } from "../index/transfer-tree.js";
import { buildTransferStatus, isCctpNonce, type SentTransfer, type TransferStatus } from "../status.js";
import {
  ambiguousNonceError,
  type LastSearchedBlock,
  type LookupContext,
  type TransferQuery,
} from "./transfer-source.js";

/** What the index says about a lookup, all of one state. */
interface IndexAnswer {
  /** undefined: the index does not know the status. */
  readonly status: TransferStatus | undefined;
  /** A transfer whose send is final, while its delivery is unknown to the index; undefined: there is none. */
  readonly send: { readonly transfer: SentTransfer; readonly otherTransferIds: readonly string[] } | undefined;
  /** Up to which blocks a transfer ID that the index does not know was certainly not sent. */
  readonly lastSearchedBlock: LastSearchedBlock;
}

type LookupIndex = ReadableIndex<"findByTransactionHash" | "findByTransferId" | "findCovered" | "readTree">;

/** After this many missed polls the index no longer claims that a transfer has not been delivered. */
const MAX_MISSED_POLLS = 3;

/**
 * Answers from the index. It is not a TransferSource, because it can never prove that a transfer does not exist: the
 * transfer may have been sent after the last poll. undefined means that the index does not know, or cannot be read: other
 * sources may know the transfer.
 */
export class IndexLookup {
  readonly #index: LookupIndex;
  readonly #network: Network;
  readonly #cctpChains: readonly Chain[];
  readonly #now: () => number;

  /**
   * @param network the network that is indexed
   * @param now milliseconds since 1970
   */
  constructor(index: LookupIndex, network: Network, now: () => number) {
    this.#index = index;
    this.#network = network;
    this.#cctpChains = [...network.chains.values()].filter((chain) => getCctpDomain(chain) !== undefined);
    this.#now = now;
  }

  /**
   * Returns the status of a transfer; undefined when the index does not know it. A file answers at once.
   * @throws ServiceError INVALID_PARAMETER for a CCTP nonce that several source chains use
   */
  findKnownStatus(query: TransferQuery, context: LookupContext): MaybePromise<TransferStatus | undefined> {
    if (!this.#isApplicable(context)) return undefined;
    const { transactionHash: hash, transferId = "" } = query;
    if (hash === undefined && isCctpNonce(transferId))
      return mapMaybeAsync(this.ask(query, context), (answer) => answer?.status);
    const transfers = this.#readSafely(
      (reader) => (hash === undefined ? reader.findByTransferId(transferId) : reader.findByTransactionHash(hash)),
      context,
    );
    return mapMaybeAsync(transfers, (found) => {
      const transfer = found && selectTransfer(query, found);
      return transfer && this.#toKnownStatus(transfer);
    });
  }

  /**
   * Returns all that the index says about a lookup; undefined when it does not apply to it, or cannot be read.
   * @throws ServiceError INVALID_PARAMETER as `findKnownStatus`
   */
  async ask(query: TransferQuery, context: LookupContext): Promise<IndexAnswer | undefined> {
    if (!this.#isApplicable(context)) return undefined;
    const found = await this.#readSafely((reader) => reader.findCovered(query), context);
    if (found === undefined) return undefined;
    const { transfers, coverage } = found;
    const transfer = this.#selectCovered(query, transfers, coverage);
    return {
      status: transfer && this.#toKnownStatus(transfer),
      send:
        transfer !== undefined && transfer.delivery === undefined && transfer.isFinal
          ? { transfer: transfer.sent, otherTransferIds: transfer.otherTransferIds }
          : undefined,
      lastSearchedBlock({ slug }) {
        const chain = coverage.get(slug);
        return chain?.fromBlock === 0 ? chain.finalizedBlock : -1;
      },
    };
  }

  /** Returns the transfers of which one root is, or will be, made; undefined when the index does not have all of them. */
  async findTree(sent: SentTransfer, context: LookupContext): Promise<TransferTree | undefined> {
    if (!this.#isApplicable(context)) return undefined;
    return this.#readSafely((reader) => reader.readTree(sent), context);
  }

  #selectCovered(
    query: TransferQuery,
    transfers: readonly IndexedTransfer[],
    coverage: ReadonlyMap<string, IndexCoverage>,
  ): IndexedTransfer | undefined {
    if (query.transactionHash === undefined && isCctpNonce(query.transferId ?? "")) {
      if (transfers.length > 1) throw ambiguousNonceError();
      // Another chain may have used the same nonce before the index begins.
      if (!this.#cctpChains.every((chain) => this.#hasCurrentHistory(chain, coverage.get(chain.slug))))
        return undefined;
    }
    return selectTransfer(query, transfers);
  }

  #toKnownStatus(transfer: IndexedTransfer): TransferStatus | undefined {
    const { sent, delivery, isFinal, isUnambiguous, otherTransferIds, destinationCoverage } = transfer;
    if (!isUnambiguous || destinationCoverage === undefined) return undefined;
    if (delivery === undefined && !this.#isKnownPending(transfer)) return undefined;
    const { observedAtMs } = destinationCoverage;
    return buildTransferStatus(sent, delivery, {
      source: "index",
      observedAtMs,
      isFinal,
      otherTransferIds,
      priceUsd: undefined,
    });
  }

  /** Reads from the index. One that cannot be read is not the caller's fault. */
  #readSafely<T>(
    query: (reader: LookupIndex["reader"]) => MaybePromise<T>,
    context: LookupContext,
  ): MaybePromise<T | undefined> {
    const { database, reader } = this.#index;
    const ignore = (error: unknown): undefined => {
      if (error instanceof ServiceError) throw error;
      return undefined;
    };
    try {
      return catchMaybeAsync<T | undefined>(
        database.admit(context, () => query(reader)),
        ignore,
      );
    } catch (error) {
      return ignore(error);
    }
  }

  /** Returns whether a lookup is about the indexed chains, read through our own endpoints. */
  #isApplicable({ network, isPrivate }: LookupContext): boolean {
    return network === this.#network && !isPrivate;
  }

  /** Returns whether the index has followed a chain up to the present. */
  #isCurrent(chain: Chain, coverage: CoverageTimes | undefined): boolean {
    // After the wall clock was set back, an observation lies in the future and is as unreliable as an old one.
    return (
      coverage !== undefined &&
      Math.abs(this.#now() - coverage.observedAtMs) <= MAX_MISSED_POLLS * getPollIntervalMs(chain)
    );
  }

  /** Returns whether the index has read every block of a chain from the first to the present. */
  #hasCurrentHistory(chain: Chain, coverage: IndexCoverage | undefined): boolean {
    return coverage?.fromBlock === 0 && this.#isCurrent(chain, coverage);
  }

  /** Returns whether a transfer is certainly not delivered: the destination was read from the send to the present. */
  #isKnownPending({ sent, isFinal, sourceCoverage, destinationCoverage }: IndexedTransfer): boolean {
    if (destinationCoverage === undefined) return false;
    if (!hasCompleteHistory(destinationCoverage) && destinationCoverage.fromTimestamp > sent.timestamp) return false;
    // A send that is not final may have been reorged since the source was last read.
    return (
      this.#isCurrent(sent.destination, destinationCoverage) &&
      (isFinal || this.#isCurrent(sent.source, sourceCoverage))
    );
  }
}

function selectTransfer(
  { transactionHash, transferId }: TransferQuery,
  transfers: readonly IndexedTransfer[],
): IndexedTransfer | undefined {
  const isAny = transactionHash === undefined || transferId === undefined;
  return isAny ? transfers[0] : transfers.find(({ sent }) => sent.id === transferId);
}
