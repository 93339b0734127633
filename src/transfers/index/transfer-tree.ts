import { type RawBuilder, sql } from "kysely";
import { type CommittedRoot, MAX_LEAVES } from "../../hop/settlement.js";
import type { SentTransfer } from "../status.js";
import type { SqlDialect, SqlValue } from "./database/index-database.js";

// The leaves of a transfer root are the transfers that a bridge has collected for a destination since its commit before, in
// the order of the logs, also within a block or a transaction.

/** The event that made transfers a root. */
export interface RootCommit extends CommittedRoot {
  readonly transactionHash: string;
  readonly blockNumber: number;
  readonly logIndex: number;
  /** Unix seconds. */
  readonly committedAt: number;
}

/** The transfers that become, or became, one root. */
export interface TransferTree {
  /** In the order of the tree; of transfers that are not committed, those so far. */
  readonly leaves: readonly { readonly transferId: string; readonly amount: bigint }[];
  /** Place of the transfer among the leaves. */
  readonly treeIndex: number;
  readonly transferNonce: string;
  /** undefined: the index knows of none. */
  readonly commit: RootCommit | undefined;
}

/** What identifies a transfer from an L2 and its tree. */
export type TreeQuery = Pick<SentTransfer, "id" | "token" | "source" | "destination" | "blockNumber" | "logIndex">;

/** A leaf of a tree. Bytes are hex with 0x. Only the leaf that was asked for has a nonce, and its commit if there is one. */
export interface LeafRow {
  readonly arrival_key: string;
  readonly amount: string;
  readonly tree_index: number | null;
  readonly transfer_nonce: string | null;
  readonly commit_hash: string | null;
  readonly commit_block: number;
  readonly commit_log_index: number;
  readonly root_hash: string;
  readonly total_amount: string;
  readonly committed_at: number;
}

/**
 * Selects the transfers that a bridge sent to a destination between two commits, in their order; nothing where the commits of the
 * chain are not indexed. It is one statement, which reads one state and may be prepared. Its parameters are those of
 * `toTreeParameters`.
 */
export function selectTree({ toHexText }: SqlDialect): RawBuilder<LeafRow> {
  const isOfBridge = sql`r.chain_id = ${0} and r.token = ${""} and r.destination_chain_id = ${0}`;
  const selectCommit = (comparison: "<" | ">", order: "asc" | "desc") => sql`select * from commits as r
    where ${isOfBridge} and (r.block_number, r.log_index) ${sql.raw(comparison)} (${0}, ${0})
    order by r.block_number ${sql.raw(order)}, r.log_index ${sql.raw(order)} limit 1`;
  const isSubject = sql`r.block_number = ${0} and r.log_index = ${0}`;
  return sql<LeafRow>`with source as (select commits_from_block, to_block from cursors
      where chain_id = ${0} and commits_to_block = to_block),
    earlier as (${selectCommit("<", "desc")}), later as (${selectCommit(">", "asc")})
    select r.amount, r.tree_index, ${toHexText("r.arrival_key")} as arrival_key,
      case when ${isSubject} then ${toHexText("r.transfer_nonce")} end as transfer_nonce,
      ${toHexText("later.transaction_hash")} as commit_hash, ${toHexText("later.root_hash")} as root_hash,
      later.block_number as commit_block, later.log_index as commit_log_index, later.total_amount, later.committed_at
    from sends as r left join later on ${isSubject}
    where ${isOfBridge} and r.kind = ${sql.lit("l2")}
      and (r.block_number, r.log_index) >
        (select coalesce(block_number, commits_from_block), coalesce(log_index, -1) from source left join earlier on true)
      and (r.block_number, r.log_index) <
        (select coalesce(block_number, to_block + 1), coalesce(log_index, -1) from source left join later on true)
    order by r.block_number, r.log_index limit ${sql.lit(MAX_LEAVES + 1)}`;
}

/** Returns the parameters of the statement that `selectTree` builds. */
export function toTreeParameters({
  source,
  token,
  destination,
  blockNumber,
  logIndex,
}: TreeQuery): readonly SqlValue[] {
  const bridge = [source.chainId, token, destination.chainId];
  const position = [blockNumber, logIndex];
  return [source.chainId, ...bridge, ...position, ...bridge, ...position, ...position, ...position, ...bridge];
}

/**
 * Builds the tree of a transfer from an L2 as the index has it, which is not verified.
 * @param leaves rows of the statement
 * @returns undefined: the index does not have all of it
 */
export function buildTree({ id }: TreeQuery, leaves: readonly LeafRow[]): TransferTree | undefined {
  const treeIndex = leaves.findIndex(({ transfer_nonce }) => transfer_nonce !== null);
  const leaf = leaves[treeIndex];
  if (leaf === undefined || leaf.arrival_key !== id || leaf.transfer_nonce === null) return undefined;
  // The tree begins before what is indexed, or a leaf is missing; or so many leaves that commits must be.
  if (leaves.length > MAX_LEAVES || leaves.some(({ tree_index }, index) => tree_index !== index)) return undefined;
  return {
    leaves: leaves.map(({ arrival_key, amount }) => ({ transferId: arrival_key, amount: BigInt(amount) })),
    treeIndex,
    transferNonce: leaf.transfer_nonce,
    commit: toRootCommit(leaf),
  };
}

function toRootCommit(row: LeafRow): RootCommit | undefined {
  if (row.commit_hash === null) return undefined;
  return {
    rootHash: row.root_hash,
    totalAmount: BigInt(row.total_amount),
    transactionHash: row.commit_hash,
    blockNumber: row.commit_block,
    logIndex: row.commit_log_index,
    committedAt: row.committed_at,
  };
}
