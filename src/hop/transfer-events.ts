import { keccak_256 } from "@noble/hashes/sha3.js";
import { bytesToHex, hexToBytes } from "@noble/hashes/utils.js";
import { toEventTopic } from "../chain/abi/abi-encoding.js";
import type { Log } from "../chain/read/chain-reads.js";

/** Topic 0 of the events that send or deliver transfers. */
export const EVENT_TOPICS = {
  transferSent: toEventTopic("TransferSent(bytes32,uint256,address,uint256,bytes32,uint256,uint256,uint256,uint256)"),
  transferSentToL2: toEventTopic("TransferSentToL2(uint256,address,uint256,uint256,uint256,address,uint256)"),
  cctpTransferSent: toEventTopic("CCTPTransferSent(uint64,uint256,address,uint256,uint256)"),
  withdrawalBonded: toEventTopic("WithdrawalBonded(bytes32,uint256)"),
  withdrew: toEventTopic("Withdrew(bytes32,address,uint256,bytes32)"),
  transferFromL1Completed: toEventTopic("TransferFromL1Completed(address,uint256,uint256,uint256,address,uint256)"),
  messageReceived: toEventTopic("MessageReceived(address,uint32,uint64,bytes32,bytes)"),
} as const;

/** Fields of an event that sends a transfer. Amounts in the token's smallest unit, deadline in Unix seconds. */
export interface TransferSentEvent {
  /** The transfer ID; for CCTP the decimal nonce; undefined from L1, where transfers have no ID. */
  readonly transferId: string | undefined;
  readonly destinationChainId: number;
  readonly recipient: string;
  readonly amount: bigint;
  readonly amountOutMin: bigint;
  readonly deadline: bigint;
  readonly bonderFee: bigint;
  /** Address that is paid for the delivery; from L1 only. */
  readonly relayer: string | undefined;
}

/** Fields of an event that delivers a transfer; its kind is that of the transfer. */
export type TransferReceivedEvent =
  | { readonly kind: "l2"; readonly transferId: string; readonly isBond: boolean }
  | { readonly kind: "cctp"; readonly sourceDomain: number; readonly nonce: bigint }
  | ({ readonly kind: "l1" } & L1CompletionFields);

/** Fields of TransferFromL1Completed, which does not identify a transfer. */
export type L1CompletionFields = Pick<
  TransferSentEvent,
  "recipient" | "amount" | "amountOutMin" | "deadline" | "bonderFee"
> & {
  readonly relayer: string;
};

/** Minimum number of data words of each event. */
const DATA_WORDS_BY_TOPIC: Readonly<Record<string, number>> = {
  [EVENT_TOPICS.transferSent]: 6,
  [EVENT_TOPICS.transferSentToL2]: 4,
  [EVENT_TOPICS.cctpTransferSent]: 2,
  [EVENT_TOPICS.withdrawalBonded]: 1,
  [EVENT_TOPICS.withdrew]: 2,
  [EVENT_TOPICS.transferFromL1Completed]: 4,
  [EVENT_TOPICS.messageReceived]: 1,
};

/** Decodes a log of a sending contract; returns undefined for other or malformed events. */
export function decodeSentEvent(log: Log): TransferSentEvent | undefined {
  const [topic0, first, second, third] = log.topics;
  const readWord = createWordReader(log);
  if (readWord === undefined || first === undefined || second === undefined || third === undefined) return undefined;
  switch (topic0) {
    case EVENT_TOPICS.transferSent:
      // data: amount, transferNonce, bonderFee, index, amountOutMin, deadline
      return {
        transferId: first,
        destinationChainId: Number(BigInt(second)),
        recipient: decodeAddressTopic(third),
        amount: readWord(0),
        bonderFee: readWord(2),
        amountOutMin: readWord(4),
        deadline: readWord(5),
        relayer: undefined,
      };
    case EVENT_TOPICS.transferSentToL2:
      // data: amount, amountOutMin, deadline, relayerFee
      return {
        transferId: undefined,
        destinationChainId: Number(BigInt(first)),
        recipient: decodeAddressTopic(second),
        amount: readWord(0),
        amountOutMin: readWord(1),
        deadline: readWord(2),
        bonderFee: readWord(3),
        relayer: decodeAddressTopic(third),
      };
    case EVENT_TOPICS.cctpTransferSent:
      // data: amount, bonderFee
      return {
        transferId: BigInt(first).toString(),
        destinationChainId: Number(BigInt(second)),
        recipient: decodeAddressTopic(third),
        amount: readWord(0),
        bonderFee: readWord(1),
        amountOutMin: 0n,
        deadline: 0n,
        relayer: undefined,
      };
    default:
      return undefined;
  }
}

/**
 * Decodes what TransferSent says of the transfer's place in its root: a nonce of 32 bytes, which is part of the transfer ID,
 * and its place among the collected transfers and in the Merkle tree of their root. Returns undefined for other or malformed
 * events.
 */
export function decodeTransferLeaf(log: Log) {
  const readWord = log.topics[0] === EVENT_TOPICS.transferSent ? createWordReader(log) : undefined;
  return readWord && { transferNonce: encodeTopic(readWord(1)), treeIndex: Number(readWord(3)) };
}

/** Decodes a log of a contract that delivers transfers; returns undefined for other or malformed events. */
export function decodeReceivedEvent(log: Log): TransferReceivedEvent | undefined {
  const [topic0, first, second] = log.topics;
  const readWord = createWordReader(log);
  if (readWord === undefined || first === undefined) return undefined;
  switch (topic0) {
    case EVENT_TOPICS.withdrawalBonded:
    case EVENT_TOPICS.withdrew:
      return { kind: "l2", transferId: first, isBond: topic0 === EVENT_TOPICS.withdrawalBonded };
    case EVENT_TOPICS.messageReceived:
      // topics: caller, nonce; data: sourceDomain, sender, messageBody
      if (second === undefined) return undefined;
      return { kind: "cctp", sourceDomain: Number(readWord(0)), nonce: BigInt(second) };
    case EVENT_TOPICS.transferFromL1Completed:
      // data: amount, amountOutMin, deadline, relayerFee
      if (second === undefined) return undefined;
      return {
        kind: "l1",
        recipient: decodeAddressTopic(first),
        relayer: decodeAddressTopic(second),
        amount: readWord(0),
        amountOutMin: readWord(1),
        deadline: readWord(2),
        bonderFee: readWord(3),
      };
    default:
      return undefined;
  }
}

/** Returns whether an event from L1 and a completion, or two completions, have equal transfer fields. */
export function hasSameTransferFields(a: TransferSentEvent | L1CompletionFields, b: L1CompletionFields): boolean {
  return (
    a.recipient === b.recipient &&
    a.relayer === b.relayer &&
    a.amount === b.amount &&
    a.amountOutMin === b.amountOutMin &&
    a.deadline === b.deadline &&
    a.bonderFee === b.bonderFee
  );
}

/** Encodes a call of a bridge's `isTransferIdSpent(bytes32)`. */
export function encodeIsTransferIdSpentCall(transferId: string): string {
  return `0x3a7af631${transferId.slice(2)}`;
}

/** Encodes a call of a MessageTransmitter's `usedNonces(bytes32)`; the key is keccak256 of the packed domain and nonce. */
export function encodeUsedNoncesCall(sourceDomain: number, nonce: bigint): string {
  const packed = `${sourceDomain.toString(16).padStart(8, "0")}${nonce.toString(16).padStart(16, "0")}`;
  return `0xfeb61724${bytesToHex(keccak_256(hexToBytes(packed)))}`;
}

/** Encodes a number or address as a 32-byte topic. */
export function encodeTopic(value: bigint | string): string {
  const hex = typeof value === "bigint" ? value.toString(16) : value.slice(2);
  return `0x${hex.padStart(64, "0")}`;
}

/** Returns a reader of the n-th 32-byte word of an event's data; undefined for an event with too little data. */
function createWordReader({ topics: [topic0 = ""], data }: Log): ((index: number) => bigint) | undefined {
  const wordCount = DATA_WORDS_BY_TOPIC[topic0];
  if (wordCount === undefined || data.length < 2 + wordCount * 64) return undefined;
  return (index) => BigInt(`0x${data.slice(2 + index * 64, 66 + index * 64)}`);
}

function decodeAddressTopic(topic: string): string {
  return `0x${topic.slice(-40)}`;
}
