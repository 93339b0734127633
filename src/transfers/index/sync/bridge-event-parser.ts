import { hexToBytes } from "../../../chain/hex.js";
import type { Log, LogFilter } from "../../../chain/read/chain-reads.js";
import { getCctpDomain } from "../../../hop/cctp.js";
import { ContractRegistry } from "../../../hop/contract-registry.js";
import type { Chain, Network } from "../../../hop/networks.js";
import { decodeTransfersCommitted, TRANSFERS_COMMITTED_TOPIC } from "../../../hop/settlement.js";
import {
  decodeTransferLeaf,
  EVENT_TOPICS,
  type TransferReceivedEvent,
  type TransferSentEvent,
} from "../../../hop/transfer-events.js";
import { computeL1TransferKey, encodeCctpKey } from "../correlation-key.js";
import type { CommitRow, DeliveryRow, SendRow } from "../database/schema.js";

/** An event of Hop's contracts as far as its log alone describes it. */
export type BridgeEvent = { readonly transactionHash: string; readonly blockHash: string } & (
  | { readonly send: Omit<SendRow, "account" | "timestamp"> }
  | { readonly commit: CommitRow }
  | {
      readonly delivery: Omit<DeliveryRow, "bonder" | "timestamp">;
      readonly isBond: boolean;
    }
);

/** The largest value of the column in PostgreSQL. */
const MAX_TREE_INDEX = 2 ** 31 - 1;

/** Parses the logs of one chain. */
export class BridgeEventParser {
  /** Matches every event that is indexed, and also the CCTP deliveries of other applications. */
  readonly filter: LogFilter;
  /** Matches the events that make transfer roots; undefined: no bridge on this chain emits them. */
  readonly rootFilter: LogFilter | undefined;
  readonly #chain: Chain;
  readonly #domain: number | undefined;
  readonly #contracts: ContractRegistry;

  constructor(network: Network, chain: Chain) {
    this.#chain = chain;
    this.#domain = getCctpDomain(chain);
    this.#contracts = new ContractRegistry(network);
    const transmitter = this.#contracts.findMessageTransmitter(chain);
    const senders = [...this.#contracts.getSendingContracts(chain)];
    this.filter = {
      address: [...senders.map(([address]) => address), ...(transmitter === undefined ? [] : [transmitter])],
      topics: [[...Object.values(EVENT_TOPICS), TRANSFERS_COMMITTED_TOPIC]],
    };
    const bridges = senders.flatMap(([address, { kind }]) => (kind === "l2" ? [address] : []));
    const topics = [[EVENT_TOPICS.transferSent, TRANSFERS_COMMITTED_TOPIC]];
    this.rootFilter = bridges.length === 0 ? undefined : { address: bridges, topics };
  }

  /** Returns undefined for an event that is not indexed. */
  parse(log: Log): BridgeEvent | undefined {
    return this.#parseSend(log) ?? this.#parseDelivery(log) ?? this.#parseCommit(log);
  }

  #parseSend(log: Log): BridgeEvent | undefined {
    const decoded = this.#contracts.decodeSend(this.#chain, log);
    if (decoded === undefined || !Number.isSafeInteger(decoded.event.destinationChainId)) return undefined;
    const { kind, token, event } = decoded;
    const key = getSendCorrelationKey(token, event, this.#domain);
    if (key === undefined) return undefined;
    const leaf = decodeTransferLeaf(log);
    // No tree is so large.
    const isPlaced = leaf !== undefined && leaf.treeIndex <= MAX_TREE_INDEX;
    const send = {
      ...toPositionColumns(this.#chain, log),
      kind,
      token,
      arrival_key: key,
      destination_chain_id: event.destinationChainId,
      recipient: hexToBytes(event.recipient),
      amount: String(event.amount),
      amount_out_min: String(event.amountOutMin),
      deadline: String(event.deadline),
      bonder_fee: String(event.bonderFee),
      relayer: event.relayer === undefined ? null : hexToBytes(event.relayer),
      transfer_nonce: isPlaced ? hexToBytes(leaf.transferNonce) : null,
      tree_index: isPlaced ? leaf.treeIndex : null,
    };
    return { send, transactionHash: log.transactionHash, blockHash: log.blockHash };
  }

  #parseDelivery(log: Log): BridgeEvent | undefined {
    const decoded = this.#contracts.decodeDelivery(this.#chain, log);
    if (decoded === undefined) return undefined;
    const { token, event } = decoded;
    const key = getDeliveryCorrelationKey(token, event, this.#chain);
    if (key === undefined) return undefined;
    return {
      delivery: { ...toPositionColumns(this.#chain, log), token, arrival_key: key },
      isBond: event.kind === "l2" && event.isBond,
      transactionHash: log.transactionHash,
      blockHash: log.blockHash,
    };
  }

  #parseCommit(log: Log): BridgeEvent | undefined {
    const event = decodeTransfersCommitted(log);
    const bridge = this.#contracts.getSendingContracts(this.#chain).get(log.address);
    if (event === undefined || bridge?.kind !== "l2") return undefined;
    const { destinationChainId, committedAt, rootHash, totalAmount } = event;
    if (!Number.isSafeInteger(destinationChainId) || !Number.isSafeInteger(committedAt)) return undefined;
    const commit = {
      ...toPositionColumns(this.#chain, log),
      token: bridge.token,
      destination_chain_id: destinationChainId,
      root_hash: hexToBytes(rootHash),
      total_amount: String(totalAmount),
      committed_at: committedAt,
    };
    return { commit, transactionHash: log.transactionHash, blockHash: log.blockHash };
  }
}

function getSendCorrelationKey(
  token: string,
  event: TransferSentEvent,
  domain: number | undefined,
): Buffer | undefined {
  const { transferId } = event;
  if (transferId === undefined) return computeL1TransferKey(token, event.destinationChainId, event);
  if (transferId.startsWith("0x")) return hexToBytes(transferId);
  return domain === undefined ? undefined : encodeCctpKey(domain, BigInt(transferId));
}

function getDeliveryCorrelationKey(
  token: string,
  event: TransferReceivedEvent,
  { chainId }: Chain,
): Uint8Array | undefined {
  if (event.kind === "l2") return hexToBytes(event.transferId);
  if (event.kind === "cctp") return encodeCctpKey(event.sourceDomain, event.nonce);
  return computeL1TransferKey(token, chainId, event);
}

function toPositionColumns(chain: Chain, log: Log) {
  return {
    chain_id: chain.chainId,
    block_number: log.blockNumber,
    log_index: log.logIndex,
    transaction_hash: hexToBytes(log.transactionHash),
  };
}
