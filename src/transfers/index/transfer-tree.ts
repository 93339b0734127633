import { type CommittedRoot, MAX_LEAVES } from "../../hop/settlement.js";
import type { SentTransfer } from "../status.js";
import type { IndexStatements } from "./compiled-statements.js";
import type { ReadSession } from "./database/index-database.js";
import type { CursorRow } from "./database/schema.js";
import type { CommitBesideRow } from "./statements.js";

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

/**
 * Reads the tree of a transfer from an L2 as the index has it, which is not verified.
 * @param cursor of the source chain
 * @returns undefined: the index does not have all of it
 */
export async function readTransferTree(
  session: ReadSession,
  statements: IndexStatements,
  cursor: CursorRow | undefined,
  { id, token, source, destination, blockNumber, logIndex }: TreeQuery,
): Promise<TransferTree | undefined> {
  if (cursor === undefined || cursor.commits_to_block !== cursor.to_block) return undefined;
  const bridge = [source.chainId, token, destination.chainId];
  const position = [blockNumber, logIndex];
  const [before] = await session.query(statements.commitBefore, [...bridge, ...position]);
  const [commit] = await session.query(statements.commitAfter, [...bridge, ...position]);
  const start = before === undefined ? [cursor.commits_from_block, -1] : [before.block_number, before.log_index];
  const end = commit === undefined ? [cursor.to_block + 1, -1] : [commit.block_number, commit.log_index];
  const leaves = await session.query(statements.leaves, [...position, ...bridge, ...start, ...end]);
  const treeIndex = leaves.findIndex(({ transfer_nonce }) => transfer_nonce !== null);
  const leaf = leaves[treeIndex];
  if (leaf === undefined || leaf.arrival_key !== id || leaf.transfer_nonce === null) return undefined;
  // The tree begins before what is indexed, or a leaf is missing; or so many leaves that commits must be.
  if (leaves.length > MAX_LEAVES || leaves.some(({ tree_index }, index) => tree_index !== index)) return undefined;
  return {
    leaves: leaves.map(({ arrival_key, amount }) => ({ transferId: arrival_key, amount: BigInt(amount) })),
    treeIndex,
    transferNonce: leaf.transfer_nonce,
    commit: commit && toRootCommit(commit),
  };
}

function toRootCommit(row: CommitBesideRow): RootCommit {
  return {
    rootHash: row.root_hash,
    totalAmount: BigInt(row.total_amount),
    transactionHash: row.transaction_hash,
    blockNumber: row.block_number,
    logIndex: row.log_index,
    committedAt: row.committed_at,
  };
}
