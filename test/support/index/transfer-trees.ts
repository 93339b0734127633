import { bytesToHex } from "../../../src/chain/hex.js";
import { getNetwork } from "../../../src/hop/networks.js";
import type { EventRows, SendRow } from "../../../src/transfers/index/database/schema.js";
import type { TransferTree, TreeQuery } from "../../../src/transfers/index/transfer-tree.js";
import { comparePositions, getBridgeKey } from "./random-events.js";

const chains = new Map([...getNetwork("mainnet").chains.values()].map((chain) => [chain.chainId, chain]));

/** Lists the trees of the transfers from L2s in an index that `writeEvents` has written; undefined: it begins before the index. */
export function listExpectedTrees({ sends, commits }: EventRows) {
  return sends.flatMap((send): { readonly query: TreeQuery; readonly tree: TransferTree | undefined }[] => {
    const source = chains.get(send.chain_id);
    const destination = chains.get(send.destination_chain_id);
    if (send.kind !== "l2" || source === undefined || destination === undefined) return [];
    const { token, block_number: blockNumber, log_index: logIndex } = send;
    const query = { id: bytesToHex(send.arrival_key), token, source, destination, blockNumber, logIndex };
    const firstBlock = source.chainId % 3 === 0 ? 20 : 0;
    const isOfBridge = (row: Parameters<typeof getBridgeKey>[0]) => getBridgeKey(row) === getBridgeKey(send);
    const ofBridge = commits.filter(isOfBridge).toSorted(comparePositions);
    const before = ofBridge.findLast((commit) => comparePositions(commit, send) < 0);
    const commit = ofBridge.find((row) => comparePositions(row, send) > 0);
    const leaves = sends
      .filter((row) => row.kind === "l2" && isOfBridge(row))
      .filter((row) => before === undefined || comparePositions(row, before) > 0)
      .filter((row) => commit === undefined || comparePositions(row, commit) < 0)
      .toSorted(comparePositions);
    if (leaves.some((row) => row.block_number < firstBlock)) return [{ query, tree: undefined }];
    return [{ query, tree: toTree(send, leaves, commit) }];
  });
}

function toTree(send: SendRow, leaves: readonly SendRow[], commit: EventRows["commits"][number] | undefined) {
  return {
    leaves: leaves.map((row) => ({ transferId: bytesToHex(row.arrival_key), amount: BigInt(row.amount) })),
    treeIndex: leaves.indexOf(send),
    transferNonce: bytesToHex(send.transfer_nonce ?? Buffer.alloc(0)),
    commit: commit && {
      rootHash: bytesToHex(commit.root_hash),
      totalAmount: BigInt(commit.total_amount),
      transactionHash: bytesToHex(commit.transaction_hash),
      blockNumber: commit.block_number,
      logIndex: commit.log_index,
      committedAt: commit.committed_at,
    },
  };
}
