import type { ChainAccess } from "../chain/chains.js";
import type { Network } from "../hop/networks.js";
import type { TransferStatus } from "./transfer.js";

/** Which transfer is meant. Hex is lower case. */
export interface TransferQuery {
  readonly transferId: string | undefined;
  /** Hash of the sending transaction; with an id as well, the transfer of that transaction with that id. */
  readonly transactionHash: string | undefined;
}

/** Somebody who knows of transfers. */
export interface TransferSource {
  /**
   * The transfer that is meant, or undefined when this source is sure that there is none.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the source cannot know.
   */
  find(
    network: Network,
    query: TransferQuery,
    chains: ChainAccess,
    signal: AbortSignal,
  ): Promise<TransferStatus | undefined>;
}
