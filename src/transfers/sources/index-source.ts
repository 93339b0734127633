import { getCctpDomain } from "../../hop/cctp/cctp.js";
import type { Chain, Network } from "../../hop/networks.js";
import type { CoverageTimes } from "../index/store/index-coverage.js";
import type { IndexedTransfer } from "../index/store/pages/transfer-page.js";
import type { TransferIndexReader } from "../index/store/transfer-index.js";
import { buildTransferStatus, type TransferStatus } from "../status.js";
import type { SentTransfer } from "../transfer.js";
import {
  ambiguousNonceError,
  isCctpNonce,
  type LastSearchedBlock,
  type LookupContext,
  type TransferQuery,
  usesCustomEndpoints,
} from "./transfer-source.js";

/** A transfer whose send is final, while its delivery is unknown to the index. */
export interface FinalizedSend {
  readonly transfer: SentTransfer;
  readonly otherTransferIds: readonly string[];
}

/**
 * Answers from the local index. It is not a TransferSource, because it can never prove that a transfer does not exist: the
 * transfer may have been sent after the last poll. In every method undefined means that the index does not know; that a
 * transfer is absent from a finished range of blocks is what `getLastSearchedBlock` tells.
 */
export interface IndexLookup {
  /**
   * Returns the status of a transfer; undefined when the index does not know it.
   * @throws ServiceError INVALID_PARAMETER for a CCTP nonce that several source chains use
   */
  findKnownStatus(query: TransferQuery, context: LookupContext): TransferStatus | undefined;
  /**
   * Returns a transfer whose send is final but whose delivery is not known; undefined when the index has no such transfer.
   * @throws ServiceError INVALID_PARAMETER as `findKnownStatus`
   */
  findFinalizedSend(query: TransferQuery, context: LookupContext): FinalizedSend | undefined;
  /**
   * Returns a function that tells the last block of a chain up to which, from the chain's beginning, a transfer ID that the
   * index does not know was certainly not sent; -1 for none. undefined when the index does not apply to this lookup.
   */
  getLastSearchedBlock(context: LookupContext): LastSearchedBlock | undefined;
}

export interface IndexSourceOptions {
  /** Returns undefined until the index is open. */
  readonly getIndex: () => TransferIndexReader | undefined;
  /** The network that is indexed. */
  readonly network: Network;
  /** Returns the interval at which the index polls a chain, in milliseconds. */
  readonly getPollIntervalMs: (chain: Chain) => number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** After this many missed polls the index no longer claims that a transfer has not been delivered. */
const MAX_MISSED_POLLS = 3;

export function createIndexLookup({ getIndex, network, getPollIntervalMs, now }: IndexSourceOptions): IndexLookup {
  const cctpChains = [...network.chains.values()].filter((chain) => getCctpDomain(chain) !== undefined);

  /** Reads from the index. A file that cannot be read is not the caller's fault: other sources may know the transfer. */
  function read<T>(query: (index: TransferIndexReader) => T): T | undefined {
    const index = getIndex();
    try {
      return index && query(index);
    } catch {
      return undefined;
    }
  }

  /** Returns whether a lookup is about the indexed chains, read through our own endpoints. */
  function isApplicable(context: LookupContext): boolean {
    return context.network === network && !usesCustomEndpoints(context.chains, network.chains.keys());
  }

  /** Returns whether the index has followed a chain up to the present. */
  function isCurrent(chain: Chain, coverage: CoverageTimes | undefined): boolean {
    // After the wall clock was set back, an observation lies in the future and is as unreliable as an old one.
    return (
      coverage !== undefined && Math.abs(now() - coverage.observedAtMs) <= MAX_MISSED_POLLS * getPollIntervalMs(chain)
    );
  }

  /** Returns whether the index has read every block of a chain from the first to the present. */
  function hasCurrentHistory(chain: Chain): boolean {
    const coverage = read((index) => index.getCoverage(chain.slug));
    return coverage?.fromBlock === 0 && isCurrent(chain, coverage);
  }

  /** Returns whether a transfer is certainly not delivered: the destination was read from the send to the present. */
  function isKnownPending({ sent, isFinal, sourceCoverage, destinationCoverage }: IndexedTransfer): boolean {
    if (destinationCoverage === undefined || destinationCoverage.fromTimestamp > sent.timestamp) return false;
    // A send that is not final may have been reorged since the source was last read.
    return isCurrent(sent.destination, destinationCoverage) && (isFinal || isCurrent(sent.source, sourceCoverage));
  }

  function selectTransfer(
    { transactionHash, transferId }: TransferQuery,
    context: LookupContext,
  ): IndexedTransfer | undefined {
    if (!isApplicable(context)) return undefined;
    if (transactionHash !== undefined) {
      const transfers = read((index) => index.findByTransactionHash(transactionHash));
      return transfers?.find(({ sent }) => transferId === undefined || sent.id === transferId);
    }
    const id = transferId ?? "";
    const [transfer, ...others] = read((index) => index.findByTransferId(id)) ?? [];
    if (isCctpNonce(id)) {
      if (others.length > 0) throw ambiguousNonceError();
      // Another chain may have used the same nonce before the index begins.
      if (!cctpChains.every(hasCurrentHistory)) return undefined;
    }
    return transfer;
  }

  return {
    findKnownStatus(query, context) {
      const transfer = selectTransfer(query, context);
      if (transfer === undefined) return undefined;
      const { sent, delivery, isFinal, isUnambiguous, otherTransferIds, destinationCoverage } = transfer;
      if (!isUnambiguous || destinationCoverage === undefined) return undefined;
      if (delivery === undefined && !isKnownPending(transfer)) return undefined;
      const { observedAtMs } = destinationCoverage;
      return buildTransferStatus(sent, delivery, {
        source: "index",
        observedAtMs,
        isFinal,
        otherTransferIds,
        priceUsd: undefined,
      });
    },
    findFinalizedSend(query, context) {
      const transfer = selectTransfer(query, context);
      if (transfer === undefined || transfer.delivery !== undefined || !transfer.isFinal) return undefined;
      return { transfer: transfer.sent, otherTransferIds: transfer.otherTransferIds };
    },
    getLastSearchedBlock(context) {
      if (!isApplicable(context)) return undefined;
      return (chain) => {
        const coverage = read((index) => index.getCoverage(chain.slug));
        return coverage?.fromBlock === 0 ? coverage.finalizedBlock : -1;
      };
    },
  };
}
