import { ServiceError } from "../../errors.js";
import { getCctpDomain } from "../../hop/cctp/cctp.js";
import type { Chain, Network } from "../../hop/networks.js";
import type { IndexCoverage, IndexedTransfer, TransferIndex } from "../index/store/transfer-index.js";
import { buildTransferStatus } from "../status.js";
import type { SentTransfer } from "../transfer.js";
import {
  ambiguousNonceError,
  isCctpNonce,
  isUpstreamUnavailable,
  type LastSearchedBlock,
  type LookupContext,
  type LookupResult,
  type TransferQuery,
  type TransferSource,
} from "./transfer-source.js";

/** A transfer that was sent for sure, while what became of it is not known here. */
export interface FinalizedSend {
  readonly transfer: SentTransfer;
  readonly otherTransferIds: readonly string[];
}

/** Knows of transfers what the chains have said before; not, that there is none. */
export interface IndexSource extends TransferSource<LookupResult> {
  /**
   * Tells the last block of a chain up to which, from its beginning, an ID that is not known here has not been sent; -1:
   * none. undefined where the index is not to be asked at all.
   */
  getLastSearchedBlock(context: LookupContext): LastSearchedBlock | undefined;
  /** The transfer that is meant where it is known at least to have been sent, in a block that stays. */
  findFinalizedSend(query: TransferQuery, context: LookupContext): FinalizedSend | undefined;
}

export interface IndexSourceOptions {
  /** undefined: it is not open yet. */
  readonly getIndex: () => TransferIndex | undefined;
  /** The one that the index follows. */
  readonly network: Network;
  /** How often the index reads a chain while nothing goes wrong, in milliseconds. */
  readonly getPollIntervalMs: (chain: Chain) => number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** After so many polls without an answer the index does not know any more that nothing has arrived. */
const MAX_MISSED_POLLS = 3;

export function createIndexSource({
  getIndex: opened,
  network,
  getPollIntervalMs,
  now,
}: IndexSourceOptions): IndexSource {
  /** A file that cannot be read now is no fault of the question: others may know. */
  function read<T>(question: (index: TransferIndex) => T): T {
    const index = opened();
    if (index === undefined) throw unknownTransferError();
    try {
      return question(index);
    } catch (cause) {
      throw unknownTransferError(cause);
    }
  }
  const cctpChains = [...network.chains.values()].filter((chain) => getCctpDomain(chain) !== undefined);

  /** Whether the question is about these chains, as our own endpoints tell of them. */
  function isMeant(context: LookupContext): boolean {
    return context.network === network && ![...network.chains.keys()].some(context.chains.hasCustomEndpoint);
  }

  /** Whether what is known of a chain goes up to now. */
  function isCurrent(chain: Chain, coverage: IndexCoverage | undefined): boolean {
    // Ahead of the clock it is where that was put back, and as little to be trusted.
    return (
      coverage !== undefined && Math.abs(now() - coverage.observedAtMs) <= MAX_MISSED_POLLS * getPollIntervalMs(chain)
    );
  }

  /** That nothing has arrived is known where everything since the sending has been read, and lately. */
  function isKnownToWait({ sent, isFinal, sourceCoverage, destinationCoverage }: IndexedTransfer): boolean {
    if (destinationCoverage === undefined || destinationCoverage.fromTimestamp > sent.timestamp) return false;
    // A sending that may be undone may have been since the source was read last.
    return isCurrent(sent.destination, destinationCoverage) && (isFinal || isCurrent(sent.source, sourceCoverage));
  }

  function describe(found: IndexedTransfer): LookupResult {
    const { sent, delivery, isFinal, isUnambiguous, otherTransferIds, destinationCoverage } = found;
    if (!isUnambiguous || destinationCoverage === undefined) throw unknownTransferError();
    if (delivery === undefined && !isKnownToWait(found)) throw unknownTransferError();
    const { observedAtMs } = destinationCoverage;
    return buildTransferStatus(sent, delivery, {
      source: "index",
      observedAtMs,
      isFinal,
      otherTransferIds,
      priceUsd: undefined,
    });
  }

  /** The transfer that is meant; undefined: it is not here. */
  function choose({ transactionHash, transferId }: TransferQuery, context: LookupContext): IndexedTransfer | undefined {
    if (!isMeant(context)) throw unknownTransferError();
    if (transactionHash !== undefined) {
      const all = read((index) => index.findByTransactionHash(transactionHash));
      return all.find(({ sent }) => transferId === undefined || sent.id === transferId);
    }
    const [chosen, ...more] = read((index) => index.findByTransferId(transferId ?? ""));
    if (isCctpNonce(transferId ?? "")) {
      if (more.length > 0) throw ambiguousNonceError();
      // Another chain may have the same one, before the index begins.
      if (!cctpChains.every(isWhole)) throw unknownTransferError();
    }
    return chosen;
  }

  /** Whether all that happened on a chain is known, from its beginning up to now. */
  function isWhole(chain: Chain): boolean {
    const coverage = read((index) => index.getCoverage(chain.slug));
    return coverage?.fromBlock === 0 && isCurrent(chain, coverage);
  }

  function find(query: TransferQuery, context: LookupContext): LookupResult {
    const chosen = choose(query, context);
    // Never that there is none: it may have been sent since the last poll.
    if (chosen === undefined) throw unknownTransferError();
    return describe(chosen);
  }

  return {
    name: "index",
    findByTransactionHash: (transactionHash, transferId, context) => find({ transactionHash, transferId }, context),
    findByTransferId: (transferId, context) => find({ transactionHash: undefined, transferId }, context),
    getLastSearchedBlock(context) {
      if (!isMeant(context)) return undefined;
      return (chain) => {
        try {
          const coverage = read((index) => index.getCoverage(chain.slug));
          return coverage?.fromBlock === 0 ? coverage.finalizedBlock : -1;
        } catch {
          return -1;
        }
      };
    },
    findFinalizedSend(query, context) {
      try {
        const chosen = choose(query, context);
        if (chosen === undefined || chosen.delivery !== undefined || !chosen.isFinal) return undefined;
        return { transfer: chosen.sent, otherTransferIds: chosen.otherTransferIds };
      } catch (error) {
        if (isUpstreamUnavailable(error)) return undefined;
        throw error;
      }
    },
  };
}

function unknownTransferError(cause?: unknown): ServiceError {
  return new ServiceError("UPSTREAM_UNAVAILABLE", "the index does not know this transfer", { cause });
}
