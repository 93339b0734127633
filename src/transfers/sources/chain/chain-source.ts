import { type Receipt, readReceipt } from "../../../chain/read/chain-reads.js";
import type { FinalityTracker } from "../../../chain/read/finality-tracker.js";
import { type ContractRegistry, createContractRegistry } from "../../../hop/contract-registry.js";
import type { Network } from "../../../hop/networks.js";
import type { TransferStatus } from "../../status.js";
import type { SentTransfer } from "../../transfer.js";
import { isCctpNonce, type LookupContext, type TransferSource } from "../transfer-source.js";
import { createDeliveredTransferFinder } from "./delivered-transfers.js";
import { raceFirstDefined } from "./first-defined.js";
import type { SearchCaches } from "./search-caches.js";
import { findSendByNonce, findSendByTransferId, findTransaction, type LocatedSend } from "./send-search.js";
import { createSendStatusResolver } from "./sent-transfers.js";
import { createStatusBuilder } from "./status-builder.js";
import { parseSentTransferIds } from "./transfer-logs.js";

export interface ChainSourceOptions extends SearchCaches {
  readonly finality: FinalityTracker;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** Reads transfers from the receipts, logs and contracts of the chains. */
export interface ChainSource extends TransferSource {
  /**
   * Returns the status of a transfer whose send is already known from another source.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the chains cannot tell
   */
  resolveStatus(
    sent: SentTransfer,
    otherTransferIds: readonly string[],
    context: LookupContext,
  ): Promise<TransferStatus>;
}

/** A located send, with its receipt where that has been read already. */
interface SendCandidate {
  readonly send: LocatedSend;
  readonly receipt: Receipt | undefined;
}

export function createChainSource({ finality, now, ...caches }: ChainSourceOptions): ChainSource {
  const getContracts = createContractRegistryCache();
  const buildStatus = createStatusBuilder({ finality, now });
  const { resolveSend, findDeliveryOf } = createSendStatusResolver({ getContracts, caches, buildStatus });
  const findDeliveredTransfer = createDeliveredTransferFinder({ getContracts, caches, resolveSend });

  /** Finds a transfer from L1 by its ID, which is the hash of its transaction. */
  async function findSendOnL1(transferId: string, context: LookupContext): Promise<SendCandidate | undefined> {
    const { network, chains, signal } = context;
    for (const chain of network.chains.values()) {
      if (!chain.isL1) continue;
      const receipt = await readReceipt(chains.getClient(chain.slug), transferId, signal);
      const send =
        receipt &&
        parseSentTransferIds(network, getContracts(network), chain, receipt).find(({ id }) => id === transferId);
      if (receipt !== undefined && send !== undefined) return { send: { chain, log: send.log }, receipt };
    }
    return undefined;
  }

  async function findSendOnL2s(transferId: string, context: LookupContext): Promise<SendCandidate | undefined> {
    const { network, lastSearchedBlock } = context;
    const sources = [...network.chains.values()].filter(({ isL1 }) => !isL1);
    const hints = { lastSearchedBlock };
    const send = await findSendByTransferId(transferId, sources, getContracts(network), caches, context, hints);
    return send && { send, receipt: undefined };
  }

  return {
    async findByTransactionHash(hash, transferId, context) {
      const { network } = context;
      const transaction = await findTransaction(hash, context);
      if (transaction === undefined) return undefined;
      const { chain, receipt } = transaction;
      const sends = parseSentTransferIds(network, getContracts(network), chain, receipt);
      const candidates = sends.filter(({ id }) => transferId === undefined || id === transferId);
      const send = candidates.find(({ isDestinationKnown }) => isDestinationKnown) ?? candidates[0];
      if (send !== undefined) return resolveSend({ chain, log: send.log }, context, { receipt });
      return findDeliveredTransfer(transaction, transferId, context);
    },

    async findByTransferId(transferId, context) {
      const { network } = context;
      if (isCctpNonce(transferId)) {
        const sources = [...network.chains.values()];
        const send = await findSendByNonce(BigInt(transferId), sources, getContracts(network), caches, context);
        return send && resolveSend(send, context);
      }
      const candidate = await raceFirstDefined(
        [findSendOnL1, findSendOnL2s],
        (find, signal) => find(transferId, { ...context, signal }),
        context.signal,
      );
      return candidate && resolveSend(candidate.send, context, { receipt: candidate.receipt });
    },

    async resolveStatus(sent, otherTransferIds, context) {
      const delivery = await findDeliveryOf(sent, Promise.resolve(sent.timestamp), context);
      return buildStatus(sent, delivery, otherTransferIds, context);
    },
  };
}

function createContractRegistryCache(): (network: Network) => ContractRegistry {
  const registries = new Map<Network, ContractRegistry>();
  return (network) => {
    const registry = registries.get(network) ?? createContractRegistry(network);
    registries.set(network, registry);
    return registry;
  };
}
