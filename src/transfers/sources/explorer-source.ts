import { ServiceError } from "../../errors.js";
import type { ExplorerClient } from "../../hop/explorer/explorer-client.js";
import type { ExplorerRecord } from "../../hop/explorer/explorer-record.js";
import { buildTransferStatus, type TransferStatus } from "../status.js";
import type { SentTransfer } from "../transfer.js";
import { ambiguousNonceError, isCctpNonce, type LookupContext, type TransferSource } from "./transfer-source.js";

export interface ExplorerSourceOptions {
  readonly explorer: ExplorerClient;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** Creates a source that reads Hop's explorer. Its answers are unverified, so none of them is final. */
export function createExplorerSource({ explorer, now }: ExplorerSourceOptions): TransferSource {
  async function findRecords(idOrHash: string, context: LookupContext): Promise<readonly ExplorerRecord[]> {
    if (context.network.slug !== "mainnet")
      throw new ServiceError("UPSTREAM_UNAVAILABLE", "the explorer covers mainnet only");
    return explorer.findTransfers(idOrHash, context.signal);
  }

  function buildStatus(record: ExplorerRecord, siblings: readonly ExplorerRecord[]): TransferStatus {
    const { isReceived, bondTransactionHash, bonder, kind, priceUsd } = record;
    // Transfers from L1 and over CCTP have no bonder: the explorer reports the sender of the transaction instead.
    const delivery = {
      transactionHash: bondTransactionHash,
      blockNumber: undefined,
      bonder: kind === "l2" ? bonder : undefined,
    };
    return buildTransferStatus(toSentTransfer(record), isReceived ? delivery : undefined, {
      otherTransferIds: siblings.filter((sibling) => sibling !== record).map(getTransferId),
      source: "explorer",
      observedAtMs: now(),
      isFinal: false,
      priceUsd,
    });
  }

  return {
    async findByTransactionHash(hash, transferId, context) {
      const records = await findRecords(hash, context);
      const sends = records.filter((record) => record.transactionHash === hash);
      const siblings = sends.length > 0 ? sends : records.filter((record) => record.bondTransactionHash === hash);
      const match = siblings.find((record) => transferId === undefined || getTransferId(record) === transferId);
      return match && buildStatus(match, siblings);
    },
    async findByTransferId(transferId, context) {
      const records = await findRecords(transferId, context);
      const [match, ...others] = records.filter((record) => getTransferId(record) === transferId);
      if (isCctpNonce(transferId) && others.length > 0) throw ambiguousNonceError();
      if (match === undefined) return undefined;
      return buildStatus(
        match,
        records.filter(({ transactionHash }) => transactionHash === match.transactionHash),
      );
    },
  };
}

/** Returns the ID as in SentTransfer: for a transfer from L1 the transaction's hash. */
function getTransferId({ kind, id, transactionHash }: ExplorerRecord): string {
  return kind === "l1" ? transactionHash : id;
}

function toSentTransfer(record: ExplorerRecord): SentTransfer {
  const { kind, token, source, destination, transactionHash, timestamp, account } = record;
  const { recipient, amount, amountOutMin, deadline, bonderFee } = record;
  const transferId = kind === "l1" ? undefined : record.id;
  const destinationChainId = destination.chainId;
  return {
    kind,
    id: getTransferId(record),
    token,
    source,
    destination,
    transactionHash,
    // The explorer reports neither the block nor the relayer.
    blockNumber: 0,
    logIndex: 0,
    timestamp,
    account,
    event: { transferId, destinationChainId, recipient, amount, amountOutMin, deadline, bonderFee, relayer: undefined },
  };
}
