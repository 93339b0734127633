import { LRUCache } from "lru-cache";
import { usesCustomEndpoints } from "../../chain/chains.js";
import type { Log, LogPage } from "../../chain/read/chain-reads.js";
import { searchLogs } from "../../chain/read/log-search.js";
import { merkleSiblings, rootFromSiblings } from "../../hop/merkle-tree.js";
import { computeTransferId, decodeTransfersCommitted, MAX_LEAVES, type TransferProof } from "../../hop/settlement.js";
import { decodeSentEvent, decodeTransferLeaf, EVENT_TOPICS, encodeTopic } from "../../hop/transfer-events.js";
import { findCommit, forgetCommit } from "../details/settlement.js";
import type { TransferTree } from "../index/transfer-tree.js";
import type { ResumableLogScanner } from "../sources/chain/resumable-log-scanner.js";
import { incompleteChainDataError } from "../sources/chain/search-context.js";
import type { LookupContext } from "../sources/transfer-source.js";
import type { SentTransfer } from "../status.js";
import { FailedCheckError } from "./withdrawal.js";

type Leaf = TransferTree["leaves"][number];

/** Where a log stands in its chain. */
type Position = Pick<Log, "blockNumber" | "logIndex">;

/** A search for the transfers of a commit, from that backwards. */
interface LeafSearch {
  /** Newest first. */
  readonly logs: Log[];
  /** The last block that has not been searched. */
  next: number;
}

/** Time that the first part of a search covers, in milliseconds: most roots are of less. */
const FIRST_SEARCH_MS = 24 * 60 * 60_000;
/** Each part of a search is so many times as long as the one before it. */
const SEARCH_GROWTH = 8;
/** Logs of searches that have spent their budget, kept so that the next lookup continues: together some 12 MB. */
const MAX_KEPT_LOGS = 20_000;

/** Finds the transfers of roots in the logs of their source. */
export class TreeSearch {
  readonly #logScanner: ResumableLogScanner;
  readonly #unfinished = new LRUCache<string, LeafSearch>({
    maxSize: MAX_KEPT_LOGS,
    sizeCalculation: ({ logs }) => logs.length + 1,
  });

  constructor(logScanner: ResumableLogScanner) {
    this.#logScanner = logScanner;
  }

  /**
   * Finds the place of a transfer, its commit and the transfers of that.
   * @param bridge of the source
   * @returns no leaves while it is not committed
   * @throws FailedCheckError when the logs lack transfers, or do not fit their IDs
   */
  async find(sent: SentTransfer, bridge: string, context: LookupContext): Promise<TransferTree> {
    const { send, log } = await findCommit(sent, bridge, this.#logScanner, context);
    const leaf = decodeTransferLeaf(send);
    if (leaf === undefined) throw incompleteChainDataError(sent.source);
    const event = log && decodeTransfersCommitted(log);
    if (log === undefined || event === undefined) return { ...leaf, leaves: [], commit: undefined };
    const { transactionHash, blockNumber, logIndex } = log;
    const leaves = await this.#readLeaves(sent, bridge, log, context);
    return { ...leaf, leaves, commit: { ...event, transactionHash, blockNumber, logIndex } };
  }

  /** Begins anew when it is next asked for a transfer: what was found does not fit. */
  forget(sent: SentTransfer, context: LookupContext): void {
    forgetCommit(sent, this.#logScanner, context);
  }

  /**
   * Reads the transfers that a commit made a root, in the order of the logs: from the last one of index 0 up to the commit. A
   * send to a full collection commits that before its own log.
   */
  async #readLeaves(
    { source, destination }: SentTransfer,
    address: string,
    commit: Log,
    { network, chains, signal }: LookupContext,
  ): Promise<readonly Leaf[]> {
    const isPrivate = usesCustomEndpoints(chains, [source.slug]);
    // The hash stands for all blocks before it as well: after a reorg, the search begins again.
    const key = `${network.slug} ${source.slug} ${commit.blockHash} ${commit.logIndex}`;
    const kept = isPrivate ? undefined : this.#unfinished.get(key);
    const search: LeafSearch = { logs: [...(kept?.logs ?? [])], next: kept?.next ?? commit.blockNumber };
    const findStart = (): number =>
      search.logs.findIndex((log) => isAfter(commit, log) && decodeTransferLeaf(log)?.treeIndex === 0);
    const onPage = ({ logs, range }: LogPage): void => {
      search.logs.push(...logs.toReversed());
      search.next = range.from - 1;
    };
    const topics = [EVENT_TOPICS.transferSent, null, encodeTopic(BigInt(destination.chainId))];
    try {
      let width = Math.ceil(FIRST_SEARCH_MS / source.blockTimeMs);
      for (; findStart() === -1 && search.next >= 0 && search.logs.length <= MAX_LEAVES; width *= SEARCH_GROWTH) {
        const range = { from: Math.max(0, search.next - width), to: search.next };
        const isComplete = (): boolean => findStart() !== -1 || search.logs.length > MAX_LEAVES;
        const part = { filter: { address, topics }, range, newestFirst: true, isComplete, onPage };
        await searchLogs(chains.getClient(source.slug), part, signal);
      }
    } catch (error) {
      if (!isPrivate) this.#unfinished.set(key, search);
      throw error;
    }
    this.#unfinished.delete(key);
    const start = findStart();
    if (start === -1) throw new FailedCheckError("leaves", source.slug);
    const logs = search.logs.slice(0, start + 1).filter((log) => isAfter(commit, log));
    return logs.reverse().map((log, index) => toLeaf(log, index, source.slug));
  }
}

/** Returns a log as a leaf whose ID and place are what the log says they are. */
function toLeaf(log: Log, index: number, chain: string): Leaf {
  const event = decodeSentEvent(log);
  const leaf = decodeTransferLeaf(log);
  if (event?.transferId === undefined || leaf?.treeIndex !== index) throw new FailedCheckError("leaves", chain);
  // Binds the amount to the ID, and so to the root.
  if (computeTransferId(event, leaf.transferNonce) !== event.transferId)
    throw new FailedCheckError("transfer_id", chain);
  return { transferId: event.transferId, amount: event.amount };
}

/**
 * Proves that a transfer is in its root; undefined: it is not committed.
 * @throws FailedCheckError when it is not the hash of its parts, or the leaves are not those of the root
 */
export function proveTransfer(
  { id, event, source }: SentTransfer,
  { transferNonce, treeIndex, leaves, commit }: TransferTree,
): TransferProof | undefined {
  if (computeTransferId(event, transferNonce) !== id) throw new FailedCheckError("transfer_id", source.slug);
  if (commit === undefined) return undefined;
  const { rootHash, totalAmount } = commit;
  const ids = leaves.map(({ transferId }) => transferId);
  if (ids[treeIndex] !== id) throw new FailedCheckError("leaves", source.slug);
  const siblings = merkleSiblings(ids, treeIndex);
  const totalLeaves = ids.length;
  // As the contract computes it. The siblings are made of all leaves, so a wrong one changes the root as well.
  if (rootFromSiblings(id, treeIndex, siblings, totalLeaves) !== rootHash)
    throw new FailedCheckError("root", source.slug);
  const sum = leaves.reduce((total, { amount }) => total + amount, 0n);
  if (sum !== totalAmount) throw new FailedCheckError("total", source.slug);
  return { transferNonce, rootHash, totalAmount, treeIndex, siblings, totalLeaves };
}

function isAfter(one: Position, other: Position): boolean {
  return (
    one.blockNumber > other.blockNumber || (one.blockNumber === other.blockNumber && one.logIndex > other.logIndex)
  );
}
