import { ServiceError } from "../../errors.js";
import type { ExplorerClient } from "../../hop/explorer/explorer-client.js";
import type { ExplorerRecord } from "../../hop/explorer/explorer-record.js";
import { buildTransferStatus, type TransferStatus } from "../status.js";
import type { SentTransfer } from "../transfer.js";
import {
  ambiguousNonceError,
  isCctpNonce,
  type LookupContext,
  type LookupResult,
  type TransferSource,
} from "./transfer-source.js";

export interface ExplorerSourceOptions {
  readonly explorer: ExplorerClient;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** Knows of transfers what the explorer says, which is hearsay: nothing of it is final. */
export function createExplorerSource({ explorer, now }: ExplorerSourceOptions): TransferSource<Promise<LookupResult>> {
  async function ask(asked: string, { network, signal }: LookupContext): Promise<readonly ExplorerRecord[]> {
    if (network.slug !== "mainnet") throw new ServiceError("UPSTREAM_UNAVAILABLE", "the explorer knows mainnet only");
    return explorer.findTransfers(asked, signal);
  }

  function describe(chosen: ExplorerRecord, ofOneTransaction: readonly ExplorerRecord[]): TransferStatus {
    const { isReceived, bondTransactionHash, bonder, kind, priceUsd } = chosen;
    // From L1, and by CCTP, nobody bonds: the explorer names who sent the transaction.
    const delivery = {
      transactionHash: bondTransactionHash,
      blockNumber: undefined,
      bonder: kind === "l2" ? bonder : undefined,
    };
    return buildTransferStatus(toSentTransfer(chosen), isReceived ? delivery : undefined, {
      otherTransferIds: ofOneTransaction.filter((record) => record !== chosen).map(toTransferId),
      source: "explorer",
      observedAtMs: now(),
      isFinal: false,
      priceUsd,
    });
  }

  return {
    name: "explorer",
    async findByTransactionHash(hash, transferId, context) {
      const all = await ask(hash, context);
      const sends = all.filter((record) => record.transactionHash === hash);
      const ofOne = sends.length > 0 ? sends : all.filter((record) => record.bondTransactionHash === hash);
      const chosen = ofOne.find((record) => transferId === undefined || toTransferId(record) === transferId);
      return chosen && describe(chosen, ofOne);
    },
    async findByTransferId(transferId, context) {
      const all = await ask(transferId, context);
      const [chosen, ...more] = all.filter((record) => toTransferId(record) === transferId);
      if (isCctpNonce(transferId) && more.length > 0) throw ambiguousNonceError();
      if (chosen === undefined) return undefined;
      return describe(
        chosen,
        all.filter(({ transactionHash }) => transactionHash === chosen.transactionHash),
      );
    },
  };
}

/** From L1 the transaction's hash is the id. */
function toTransferId({ kind, id, transactionHash }: ExplorerRecord): string {
  return kind === "l1" ? transactionHash : id;
}

function toSentTransfer(record: ExplorerRecord): SentTransfer {
  const { kind, token, source, destination, transactionHash, timestamp, account } = record;
  const { recipient, amount, amountOutMin, deadline, bonderFee } = record;
  const transferId = kind === "l1" ? undefined : record.id;
  const destinationChainId = destination.chainId;
  return {
    kind,
    id: toTransferId(record),
    token,
    source,
    destination,
    transactionHash,
    // The explorer does not tell in which block, nor who is paid for delivering.
    blockNumber: 0,
    logIndex: 0,
    timestamp,
    account,
    event: { transferId, destinationChainId, recipient, amount, amountOutMin, deadline, bonderFee, relayer: undefined },
  };
}
