import type { ContractRegistry } from "../../../hop/contract-registry.js";
import type { Chain, Network } from "../../../hop/networks.js";
import type { MaybePromise } from "../../../resilience/maybe-async.js";
import type { TransferQuery } from "../../sources/transfer-source.js";
import type { TransferStatus } from "../../status.js";
import type { Probe } from "../polling/chain-poller.js";
import type { WatchTarget } from "../watch-target.js";
import type { Presented } from "./followed-transfer.js";

/** What all followers share. */
export interface FollowerDeps<M> {
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  /** Milliseconds since 1970. */
  readonly wallNow: () => number;
  /**
   * Returns the statuses of a target's transfers; none when nobody knows the target.
   * @throws ServiceError as TransferResolver.resolve
   */
  findAll(target: WatchTarget, caller: string): Promise<readonly TransferStatus[]>;
  /** Looks a transfer up again, past what is cached. @throws ServiceError as TransferResolver.resolve */
  refresh(network: Network, query: TransferQuery, caller: string): Promise<TransferStatus | undefined>;
  /** Makes the message of a status. @throws ServiceError when the details cannot be read now */
  present(status: TransferStatus, target: WatchTarget, caller: string): MaybePromise<Presented<M>>;
  /** Returns whether a block is final. Never rejects. */
  isFinal(
    network: Network,
    chain: Chain,
    block: { readonly number: number; readonly timestamp?: number },
  ): Promise<boolean>;
  /** Takes a place for an unknown target, and returns the function that releases it; undefined: there is none. */
  acquireUnknown(caller: string): (() => void) | undefined;
  getContracts(network: Network): ContractRegistry;
  addProbe(network: Network, probe: Probe): void;
  removeProbe(network: Network, probe: Probe): void;
}
