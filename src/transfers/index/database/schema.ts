import type { Generated } from "kysely";

/** The position of an event among the logs of its chain; unique to the event. */
export interface EventPosition {
  readonly chain_id: number;
  readonly block_number: number;
  readonly log_index: number;
}

/** An event that sent a transfer. Hashes, addresses and keys are stored as bytes, in half the size of hex. */
export interface SendRow extends EventPosition {
  readonly transaction_hash: Uint8Array;
  readonly kind: "l1" | "l2" | "cctp";
  readonly token: string;
  /** The key that the send has in common with its delivery: see correlation-key.ts. */
  readonly arrival_key: Uint8Array;
  readonly destination_chain_id: number;
  readonly recipient: Uint8Array;
  /** 256-bit values are decimal text. */
  readonly amount: string;
  readonly amount_out_min: string;
  readonly deadline: string;
  readonly bonder_fee: string;
  readonly relayer: Uint8Array | null;
  /** Sender of the transaction. */
  readonly account: Uint8Array;
  /** Unix seconds. */
  readonly timestamp: number;
  /** The nonce that is part of the transfer ID; null for other kinds than "l2", and where the commits are not indexed. */
  readonly transfer_nonce: Uint8Array | null;
  /** Place among the leaves of its root; null as `transfer_nonce`. */
  readonly tree_index: number | null;
}

/** An event that made the transfers a bridge had collected for a destination a transfer root. */
export interface CommitRow extends EventPosition {
  readonly transaction_hash: Uint8Array;
  readonly token: string;
  readonly destination_chain_id: number;
  readonly root_hash: Uint8Array;
  /** Decimal text. */
  readonly total_amount: string;
  /** Unix seconds. */
  readonly committed_at: number;
}

/** An event that delivered a transfer. */
export interface DeliveryRow extends EventPosition {
  readonly transaction_hash: Uint8Array;
  readonly token: string;
  readonly arrival_key: Uint8Array;
  /** Sender of the bonding transaction; null for other deliveries. */
  readonly bonder: Uint8Array | null;
  /** Time of the block, Unix seconds; null in rows of versions that stored it for completions from L1 only. */
  readonly timestamp: number | null;
}

/** A change of a transfer: its send or its delivery was added or removed. */
export interface ChangeRow {
  /** Grows with every change, across all chains and processes. */
  readonly sequence: number;
  readonly arrival_key: Uint8Array;
  /** The transaction of the event. */
  readonly transaction_hash: Uint8Array;
  /** null for a delivery, as are the other values that only a send has. */
  readonly kind: SendRow["kind"] | null;
  readonly account: Uint8Array | null;
  readonly recipient: Uint8Array | null;
  /**
   * A random number of the transaction that recorded the change; null in rows of older versions. A copy of an index, or one that
   * was restored, goes on with the same sequences: this tells them apart.
   */
  readonly nonce: number | null;
}

/** The rows of a set of events. */
export interface EventRows {
  readonly sends: readonly SendRow[];
  readonly deliveries: readonly DeliveryRow[];
  readonly commits: readonly CommitRow[];
}

/** The range of a chain's blocks that is indexed. */
export interface CursorRow {
  readonly chain_id: number;
  readonly from_block: number;
  /** Time of that block, Unix seconds. */
  readonly from_timestamp: number;
  readonly to_block: number;
  /** The last block that was read when it was final. */
  readonly final_to: number;
  /** Milliseconds since 1970. */
  readonly observed_at: number;
  /** The first block from which on commits are indexed, and sends with nonce and place. */
  readonly commits_from_block: number;
  /**
   * The last block of that range: `to_block`, unless a process of a version without commits has moved that on its own. Then no
   * commits count as indexed.
   */
  readonly commits_to_block: number;
}

export interface IndexTables {
  readonly sends: SendRow & {
    /**
     * Time of the block in which the send was indexed first, if a reorg has moved it to a block of another time. Lists are
     * ordered by it, so that a transfer keeps its place.
     */
    readonly first_timestamp: Generated<number | null>;
  };
  readonly deliveries: DeliveryRow;
  readonly commits: CommitRow;
  /** The blocks that were once the last one of the index; kept until they are final. */
  readonly blocks: {
    readonly chain_id: number;
    readonly number: number;
    readonly hash: Uint8Array;
    /** Unix seconds. */
    readonly timestamp: number;
  };
  readonly cursors: CursorRow;
  /** The sends that a reorg has removed; kept until the final blocks of their chain are beyond them. */
  readonly removed_sends: {
    readonly chain_id: number;
    readonly transaction_hash: Uint8Array;
    readonly arrival_key: Uint8Array;
    /** Unix seconds. */
    readonly first_timestamp: number;
    readonly block_number: number;
  };
  readonly changes: ChangeRow;
  /** One row: the sequence of the newest change. */
  readonly change_counter: { readonly id: number; readonly value: number };
  /** The rights of single processes to pieces of work, as leases.ts uses them. */
  readonly leases: {
    readonly name: string;
    /** Unique to a process, also after a restart. */
    readonly holder: string;
    readonly host: string;
    readonly pid: number;
    /** Grows with every change of the holder. */
    readonly fence: number;
    /** By the clock of the database, in a form of its own. */
    readonly expires_at: unknown;
  };
  /** The migrations that were run. */
  readonly index_migrations: {
    readonly name: string;
    /** The newest migration that a version of this service must have to work with the tables. */
    readonly oldest_compatible: string;
  };
}
