import { decodeUintAt } from "../../chain/abi/abi-encoding.js";
import type { RpcCallResult } from "../../chain/chain-client.js";
import { type Log, readReceipt } from "../../chain/read/chain-reads.js";
import { readContracts } from "../../chain/read/contract-reads.js";
import {
  decodeStoredRoot,
  decodeTransfersCommitted,
  encodeGetTransferRootCall,
  encodeLastCommitTimeCall,
  encodePendingTransferIdCall,
  encodeWithdrawCall,
  FORCE_COMMIT_DELAY_CALL,
} from "../../hop/settlement.js";
import { encodeIsTransferIdSpentCall } from "../../hop/transfer-events.js";
import { getBridges } from "../details/settlement.js";
import type { TransferTree } from "../index/transfer-tree.js";
import { incompleteChainDataError } from "../sources/chain/search-context.js";
import type { LookupContext } from "../sources/transfer-source.js";
import type { SentTransfer } from "../status.js";
import { findRefusal } from "./refusal.js";
import { proveTransfer, type TreeSearch } from "./transfer-tree.js";
import { FailedCheckError, type MerkleProof, type Withdrawal, type WithdrawalCheck } from "./withdrawal.js";

/** Words with which a bridge refuses a proof that is wrong, or that the same bridge has just said something else about. */
const CONTRADICTIONS = /Invalid transfer proof|Transfer root not found|already been withdrawn|Lib_MerkleTree/;

/** What the index alone can fail. It may be behind the chains in all others. */
const INDEX_CHECKS: ReadonlySet<WithdrawalCheck> = new Set(["transfer_id", "leaves", "root", "total"]);

/** Returns the transfers of the root of one as the index has them; undefined where it does not have all. */
export type FindIndexedTree = (sent: SentTransfer, context: LookupContext) => Promise<TransferTree | undefined>;

/**
 * Reads what is left to do for a transfer from an L2 that has not been received. All that is returned was compared: see
 * WithdrawalCheck. What the index says is only used if it passes: it may be behind the chains, or wrong.
 * @throws FailedCheckError when what the chains say does not fit
 * @throws ServiceError UPSTREAM_UNAVAILABLE when a chain does not answer, or cannot be searched far enough
 */
export async function readBridgeWithdrawal(
  sent: SentTransfer,
  {
    findIndexedTree,
    treeSearch,
    onWrongIndex,
  }: {
    /** undefined: there is no index. */
    readonly findIndexedTree: FindIndexedTree | undefined;
    readonly treeSearch: TreeSearch;
    /** Called when what the index has does not fit by itself. The chains are searched then. */
    readonly onWrongIndex: () => void;
  },
  context: LookupContext,
): Promise<Withdrawal> {
  const bridges = getBridges(sent, context.network);
  const indexed = await findIndexedTree?.(sent, context);
  if (indexed !== undefined) {
    try {
      return await concludeFrom(indexed, { sent, bridges, isIndexed: true }, context);
    } catch (error) {
      if (!(error instanceof FailedCheckError)) throw error;
      if (INDEX_CHECKS.has(error.check)) onWrongIndex();
    }
  }
  try {
    const found = await treeSearch.find(sent, bridges.from, context);
    return await concludeFrom(found, { sent, bridges, isIndexed: false }, context);
  } catch (error) {
    if (error instanceof FailedCheckError) treeSearch.forget(sent, context);
    throw error;
  }
}

/** What is concluded about. */
interface Subject {
  readonly sent: SentTransfer;
  readonly bridges: ReturnType<typeof getBridges>;
  /** Whether the commit has to be read from the chain. */
  readonly isIndexed: boolean;
}

async function concludeFrom(tree: TransferTree, subject: Subject, context: LookupContext): Promise<Withdrawal> {
  const { sent, bridges } = subject;
  const { source, destination } = sent;
  const proven = proveTransfer(sent, tree);
  const commitTransactionHash = tree.commit?.transactionHash ?? "";
  const proof: MerkleProof | undefined = proven && {
    kind: "merkle",
    bridge: bridges.to,
    commitTransactionHash,
    ...proven,
  };
  const [collected, arrived] = await Promise.all([
    readCollected(tree, subject, context),
    readArrived(sent, bridges.to, proof, context),
  ]);
  if (arrived.isSpent) return { state: "RECEIVED" };
  // Otherwise a commit whose log is left out would look like waiting, and an invented one like a root on its way.
  if (collected.isPending !== (proof === undefined)) throw new FailedCheckError("pending", source.slug);
  if (proof === undefined) return { state: "WAITING_FOR_COMMIT", availableAt: collected.availableAt };
  if (!arrived.isRootSet) return { state: "WAITING_FOR_ROOT", proof };
  const refusal = findRefusal(arrived.withdrawal, destination.slug);
  if (refusal === undefined) return { state: "WITHDRAWABLE", proof };
  if (CONTRADICTIONS.test(refusal)) throw new FailedCheckError("withdraw", destination.slug);
  const warning = `the bridge on ${destination.slug} refuses the withdrawal: ${refusal}`;
  return { state: "BLOCKED", proof, warning };
}

/**
 * Reads from the source whether its bridge still collects the transfer, and from when anybody may commit.
 * @throws FailedCheckError when the chain does not have the indexed commit
 */
async function readCollected(
  { treeIndex, commit }: TransferTree,
  { sent: { id, source, destination }, bridges: { from: to }, isIndexed }: Subject,
  { chains, signal }: LookupContext,
): Promise<{ readonly isPending: boolean; readonly availableAt: number }> {
  const contractCalls = [
    { to, data: encodePendingTransferIdCall(destination.chainId, treeIndex) },
    { to, data: encodeLastCommitTimeCall(destination.chainId) },
    { to, data: FORCE_COMMIT_DELAY_CALL },
  ];
  const client = chains.getClient(source.slug);
  const [{ block, returnData }, receipt] = await Promise.all([
    readContracts(client, source.multicallAddress, { contractCalls }, signal),
    isIndexed && commit !== undefined ? readReceipt(client, commit.transactionHash, signal) : undefined,
  ]);
  if (isIndexed && commit !== undefined) {
    const isCommit = (log: Log): boolean => {
      const event = log.address === to ? decodeTransfersCommitted(log) : undefined;
      const { rootHash, totalAmount } = commit;
      return (
        event?.rootHash === rootHash &&
        event.totalAmount === totalAmount &&
        event.destinationChainId === destination.chainId
      );
    };
    if (receipt?.logs.some(isCommit) !== true) throw new FailedCheckError("pending", source.slug);
  }
  const lastCommit = decodeUintAt(returnData[1] ?? "0x", 0);
  const delay = decodeUintAt(returnData[2] ?? "0x", 0);
  if (lastCommit === undefined || delay === undefined) throw incompleteChainDataError(source);
  const availableAt = Number(lastCommit === 0n ? block.timeSeconds : lastCommit + delay);
  if (!Number.isSafeInteger(availableAt)) throw incompleteChainDataError(source);
  return { isPending: returnData[0]?.toLowerCase() === id, availableAt };
}

/** Reads from the bridge of the destination whether the transfer was received and its root arrived, and tries to withdraw. */
async function readArrived(
  { id, event, destination }: SentTransfer,
  to: string,
  proof: MerkleProof | undefined,
  { chains, signal }: LookupContext,
): Promise<{ readonly isSpent: boolean; readonly isRootSet: boolean; readonly withdrawal: RpcCallResult | undefined }> {
  const contractCalls = [{ to, data: encodeIsTransferIdSpentCall(id) }];
  const otherCalls = [];
  if (proof !== undefined) {
    contractCalls.push({ to, data: encodeGetTransferRootCall(proof) });
    otherCalls.push({ method: "eth_call", params: [{ to, data: encodeWithdrawCall(event, proof) }, "latest"] });
  }
  const client = chains.getClient(destination.slug);
  const reads = { contractCalls, otherCalls };
  const { returnData, outcomes } = await readContracts(client, destination.multicallAddress, reads, signal);
  const spent = decodeUintAt(returnData[0] ?? "0x", 0);
  const root = proof === undefined ? undefined : decodeStoredRoot(returnData[1] ?? "0x");
  if (spent === undefined || (proof !== undefined && root === undefined)) throw incompleteChainDataError(destination);
  return { isSpent: spent === 1n, isRootSet: root !== undefined && root.createdAt > 0n, withdrawal: outcomes[0] };
}
