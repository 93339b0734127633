import { utils } from "ethers";
import type { ChainClient, RpcCallResult } from "../../../../src/chain/chain-client.js";
import { RevertError } from "../../../../src/chain/json-rpc/rpc-errors.js";
import { merkleRoot, rootFromSiblings } from "../../../../src/hop/merkle-tree.js";
import { getNetwork } from "../../../../src/hop/networks.js";
import { TRANSFERS_COMMITTED_TOPIC } from "../../../../src/hop/settlement.js";
import { EVENT_TOPICS, encodeTopic, type TransferSentEvent } from "../../../../src/hop/transfer-events.js";
import { AdaptiveLimiter } from "../../../../src/resilience/adaptive-limiter.js";
import { ResumableLogScanner } from "../../../../src/transfers/sources/chain/resumable-log-scanner.js";
import { LookupBudgets } from "../../../../src/transfers/spend/lookup-budget.js";
import type { SentTransfer } from "../../../../src/transfers/status.js";
import { WithdrawalFinder } from "../../../../src/transfers/withdrawals/withdrawal-finder.js";
import {
  type ChainEvent,
  createSentTransfer,
  createTransferChainStub,
  getChain,
} from "../../../support/stubs/transfer-fixtures.js";

// A bridge from Optimism to Arbitrum whose contracts answer as Hop's do, by their own ABI.

const contracts = getNetwork("mainnet").contracts.get("ETH");
export const sourceBridge = String(contracts?.get("optimism")?.l2Bridge).toLowerCase();
export const destinationBridge = String(contracts?.get("arbitrum")?.l2Bridge).toLowerCase();
export const ARBITRUM = 42161;

const bridgeAbi = new utils.Interface([
  "function pendingTransferIdsForChainId(uint256,uint256) view returns (bytes32)",
  "function lastCommitTimeForChainId(uint256) view returns (uint256)",
  "function minimumForceCommitDelay() view returns (uint256)",
  "function isTransferIdSpent(bytes32) view returns (bool)",
  "function getTransferRoot(bytes32,uint256) view returns (uint256,uint256,uint256)",
  "function withdraw(address,uint256,bytes32,uint256,uint256,uint256,bytes32,uint256,uint256,bytes32[],uint256)",
  "function getCurrentBlockTimestamp() view returns (uint256)",
  "function getBlockNumber() view returns (uint256)",
  "function arbBlockNumber() view returns (uint256)",
]);
const MULTICALL = ["tuple(address target, bool allowFailure, bytes callData)[]"];
const NOW = 1_700_010_000;

/** One transfer that was sent, with its nonce and its place in the list of its destination. */
export interface Sent {
  readonly event: TransferSentEvent;
  readonly id: string;
  readonly nonce: string;
  readonly index: number;
  readonly block: number;
  readonly logIndex: number;
}

export class SettlementWorld {
  readonly source = createTransferChainStub("optimism");
  readonly destination = createTransferChainStub("arbitrum");
  readonly sends: Sent[] = [];
  /** What the bridge of the source collects now. */
  pending: string[] = [];
  pendingAmount = 0n;
  lastCommitTime = 1_700_000_000n;
  readonly spent = new Set<string>();
  /** The roots at the destination, by hash and total. */
  readonly roots = new Map<string, { withdrawn: bigint }>();
  /** Words with which the destination refuses every withdrawal; undefined: it does not. */
  refusal: string | undefined;
  /** Number of requests of both chains so far. */
  requests = 0;
  #nonce = 0;

  /** Sends a transfer. @param block of the source */
  send(block: number, logIndex = 0, amount = BigInt(this.#nonce + 1)): Sent {
    const nonce = utils.id(`nonce ${this.#nonce++}`);
    const recipient = `0x${"d2".repeat(20)}`;
    const parts = [recipient, amount, nonce, 1n, 2n, 2n ** 200n] as const;
    const types = ["uint256", "address", "uint256", "bytes32", "uint256", "uint256", "uint256"];
    const id = utils.keccak256(utils.defaultAbiCoder.encode(types, [ARBITRUM, ...parts]));
    const index = this.pending.length;
    const words = [encodeTopic(amount), nonce, ...[1n, BigInt(index), 2n, 2n ** 200n].map(encodeTopic)];
    const topics = [EVENT_TOPICS.transferSent, id, encodeTopic(BigInt(ARBITRUM)), encodeTopic(recipient)];
    this.#emit(block, logIndex, topics, words);
    const event = {
      ...{ transferId: id, destinationChainId: ARBITRUM, recipient, amount, bonderFee: 1n, amountOutMin: 2n },
      ...{ deadline: 2n ** 200n, relayer: undefined },
    };
    const sent = { event, id, nonce, index, block, logIndex };
    this.pending.push(id);
    this.pendingAmount += amount;
    this.sends.push(sent);
    return sent;
  }

  /** Commits what is collected; returns the root. */
  commit(block: number, logIndex = 0): { readonly rootHash: string; readonly total: bigint } {
    const rootHash = merkleRoot(this.pending);
    const total = this.pendingAmount;
    const topics = [TRANSFERS_COMMITTED_TOPIC, encodeTopic(BigInt(ARBITRUM)), rootHash];
    this.#emit(block, logIndex, topics, [encodeTopic(total), encodeTopic(1n)]);
    this.pending = [];
    this.pendingAmount = 0n;
    return { rootHash, total };
  }

  /** Lets a root arrive at the destination. */
  arrive({ rootHash, total }: { readonly rootHash: string; readonly total: bigint }, withdrawn = 0n): void {
    this.roots.set(`${rootHash} ${total}`, { withdrawn });
  }

  toTransfer({ event, id, block, logIndex }: Sent): SentTransfer {
    return createSentTransfer({ id, event, blockNumber: block, logIndex, transactionHash: hashOf(block, logIndex) });
  }

  /** Returns the client of a chain. */
  getClient(slug: string): ChainClient {
    const { client } = slug === "optimism" ? this.source : this.destination;
    return {
      ...client,
      getLogs: (search, signal) => {
        this.requests += 1;
        return client.getLogs(search, signal);
      },
      send: (...call) => {
        this.requests += 1;
        return client.send(...call);
      },
      sendBatch: async (calls): Promise<readonly RpcCallResult[]> => {
        this.requests += 1;
        return calls.map(({ params: [call] }) => this.#call(slug, call as { to: string; data: string }));
      },
    };
  }

  #call(slug: string, { to, data }: { to: string; data: string }): RpcCallResult {
    if (to.toLowerCase() !== getChain(slug).multicallAddress?.toLowerCase()) return this.#run(data);
    const [calls] = utils.defaultAbiCoder.decode(MULTICALL, `0x${data.slice(10)}`);
    const results = calls.map(([, , callData]: [string, boolean, string]) => {
      const outcome = this.#run(callData);
      return "result" in outcome ? [true, outcome.result] : [false, "0x"];
    });
    return { result: utils.defaultAbiCoder.encode(["tuple(bool,bytes)[]"], [results]) };
  }

  #run(data: string): RpcCallResult {
    const { name, args } = bridgeAbi.parseTransaction({ data });
    const answer = (...values: unknown[]): RpcCallResult => ({ result: bridgeAbi.encodeFunctionResult(name, values) });
    switch (name) {
      case "getCurrentBlockTimestamp":
        return answer(NOW);
      case "getBlockNumber":
      case "arbBlockNumber":
        return answer(this.source.head);
      case "pendingTransferIdsForChainId": {
        const id = Number(args[0]) === ARBITRUM ? this.pending[Number(args[1])] : undefined;
        return id === undefined ? { revert: new RevertError("execution reverted", 3, "0x") } : answer(id);
      }
      case "lastCommitTimeForChainId":
        return answer(this.lastCommitTime);
      case "minimumForceCommitDelay":
        return answer(14_400);
      case "isTransferIdSpent":
        return answer(this.spent.has(args[0]));
      case "getTransferRoot": {
        const root = this.roots.get(`${args[0]} ${args[1]}`);
        return root === undefined ? answer(0, 0, 0) : answer(args[1], root.withdrawn, 5);
      }
      default:
        return this.#withdraw(args);
    }
  }

  /** As Bridge.sol does, in its order. */
  #withdraw(args: utils.Result): RpcCallResult {
    const [recipient, amount, nonce, fee, outMin, deadline, rootHash, total, index, siblings, leaves] = args;
    const refuse = (reason: string): RpcCallResult => {
      const data = `0x08c379a0${utils.defaultAbiCoder.encode(["string"], [reason]).slice(2)}`;
      return { revert: new RevertError(`execution reverted: ${reason}`, 3, data) };
    };
    const types = ["uint256", "address", "uint256", "bytes32", "uint256", "uint256", "uint256"];
    const values = [ARBITRUM, recipient, amount, nonce, fee, outMin, deadline];
    const id = utils.keccak256(utils.defaultAbiCoder.encode(types, values));
    if (rootFromSiblings(id, Number(index), siblings, Number(leaves)) !== rootHash)
      return refuse("BRG: Invalid transfer proof");
    const root = this.roots.get(`${rootHash} ${total}`);
    if (root === undefined) return refuse("BRG: Transfer root not found");
    if (root.withdrawn + amount.toBigInt() > total.toBigInt())
      return refuse("BRG: Withdrawal exceeds TransferRoot total");
    if (this.spent.has(id)) return refuse("BRG: The transfer has already been withdrawn");
    return this.refusal === undefined ? { result: "0x" } : refuse(this.refusal);
  }

  #emit(block: number, logIndex: number, topics: string[], words: readonly string[]): void {
    const data = `0x${words.map((word) => word.slice(2)).join("")}`;
    const event: ChainEvent = { address: sourceBridge, topics, data, transactionHash: hashOf(block, logIndex) };
    this.source.events.push({ event, block, index: logIndex });
  }
}

/** Creates a finder of withdrawals, the checks that failed and its clock. @param more replaces parts of it */
export function createWithdrawalFinder(more: Partial<ConstructorParameters<typeof WithdrawalFinder>[0]> = {}) {
  const state = { now: 1 };
  const now = (): number => state.now;
  const closing = new AbortController().signal;
  const failed: string[] = [];
  const finder = new WithdrawalFinder({
    logScanner: new ResumableLogScanner(closing, now),
    budgets: new LookupBudgets({ now }),
    limiter: new AdaptiveLimiter(now),
    attestations: undefined,
    findIndexedTree: undefined,
    onFailedCheck: (check) => failed.push(check),
    timeoutMs: 10_000,
    closing,
    now,
    ...more,
  });
  return { finder, failed, state };
}

function hashOf(block: number, logIndex: number): string {
  return utils.id(`transaction ${block} ${logIndex}`);
}
