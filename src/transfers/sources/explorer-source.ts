import { ServiceError } from "../../errors.js";
import type { ExplorerClient } from "../../hop/explorer-client.js";
import type { ExplorerRecord } from "../../hop/explorer-record.js";
import { buildTransferStatus, isCctpNonce, type TransferStatus } from "../status.js";
import {
  ambiguousNonceError,
  type LookupContext,
  type LookupResult,
  type TransferQuery,
  type TransferSource,
} from "./transfer-source.js";

/** Reads Hop's explorer. Its answers are unverified, so none of them is final. */
export class ExplorerSource implements TransferSource {
  readonly #explorer: ExplorerClient;
  readonly #now: () => number;

  /** @param now milliseconds since 1970 */
  constructor(explorer: ExplorerClient, now: () => number) {
    this.#explorer = explorer;
    this.#now = now;
  }

  async resolve({ transactionHash: hash, transferId }: TransferQuery, context: LookupContext): Promise<LookupResult> {
    const records = await this.#findRecords(hash ?? transferId ?? "", context);
    if (hash === undefined) return this.#selectById(records, transferId ?? "");
    const sends = records.filter((record) => record.transactionHash === hash);
    const siblings = sends.length > 0 ? sends : records.filter((record) => record.bondTransactionHash === hash);
    const match = siblings.find((record) => transferId === undefined || getTransferId(record) === transferId);
    return match && this.#buildStatus(match, siblings);
  }

  #selectById(records: readonly ExplorerRecord[], transferId: string): LookupResult {
    const [match, ...others] = records.filter((record) => getTransferId(record) === transferId);
    if (isCctpNonce(transferId) && others.length > 0) throw ambiguousNonceError();
    if (match === undefined) return undefined;
    const siblings = records.filter(({ transactionHash }) => transactionHash === match.transactionHash);
    return this.#buildStatus(match, siblings);
  }

  async #findRecords(idOrHash: string, { network, signal }: LookupContext): Promise<readonly ExplorerRecord[]> {
    if (network.slug !== "mainnet") throw new ServiceError("UPSTREAM_UNAVAILABLE", "the explorer covers mainnet only");
    return this.#explorer.findTransfers(idOrHash, signal);
  }

  #buildStatus(record: ExplorerRecord, siblings: readonly ExplorerRecord[]): TransferStatus {
    const { isReceived, bondTransactionHash, bonder, priceUsd, ...transfer } = record;
    // The explorer does not report the position of the event.
    const sent = { ...transfer, id: getTransferId(record), blockNumber: 0, logIndex: 0 };
    // Transfers from L1 and over CCTP have no bonder: the explorer reports the sender of the transaction instead.
    const delivery = {
      transactionHash: bondTransactionHash,
      blockNumber: undefined,
      bonder: sent.kind === "l2" ? bonder : undefined,
    };
    return buildTransferStatus(sent, isReceived ? delivery : undefined, {
      otherTransferIds: siblings.filter((sibling) => sibling !== record).map(getTransferId),
      source: "explorer",
      observedAtMs: this.#now(),
      isFinal: false,
      priceUsd,
    });
  }
}

/** Returns the ID as in SentTransfer: for a transfer from L1 the transaction's hash. */
function getTransferId({ event, transactionHash }: ExplorerRecord): string {
  return event.transferId ?? transactionHash;
}
