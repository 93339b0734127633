import { keccak_256 } from "@noble/hashes/sha3.js";
import { bytesToHex, hexToBytes } from "@noble/hashes/utils.js";
import type { Log } from "../chain/read/chain-reads.js";

/** Topic 0 of the events that tell of a transfer. */
export const eventTopics = {
  transferSent: computeEventTopic(
    "TransferSent(bytes32,uint256,address,uint256,bytes32,uint256,uint256,uint256,uint256)",
  ),
  transferSentToL2: computeEventTopic("TransferSentToL2(uint256,address,uint256,uint256,uint256,address,uint256)"),
  cctpTransferSent: computeEventTopic("CCTPTransferSent(uint64,uint256,address,uint256,uint256)"),
  withdrawalBonded: computeEventTopic("WithdrawalBonded(bytes32,uint256)"),
  withdrew: computeEventTopic("Withdrew(bytes32,address,uint256,bytes32)"),
  transferFromL1Completed: computeEventTopic(
    "TransferFromL1Completed(address,uint256,uint256,uint256,address,uint256)",
  ),
  messageReceived: computeEventTopic("MessageReceived(address,uint32,uint64,bytes32,bytes)"),
} as const;

/** What an event says of the transfer that it sends. Amounts in the token's smallest unit, deadline in Unix seconds. */
export interface TransferSentEvent {
  /** The transfer ID; undefined from L1, where there is none. For CCTP the decimal nonce. */
  readonly transferId: string | undefined;
  readonly destinationChainId: number;
  readonly recipient: string;
  readonly amount: bigint;
  readonly amountOutMin: bigint;
  readonly deadline: bigint;
  readonly bonderFee: bigint;
  /** Who is paid for delivering; from L1 only. */
  readonly relayer: string | undefined;
}

/** What an event says of the transfer that it delivers. Which of them a transfer has depends on how it was sent. */
export type TransferReceivedEvent =
  | { readonly kind: "l2"; readonly transferId: string; readonly isBond: boolean }
  | { readonly kind: "cctp"; readonly sourceDomain: number; readonly nonce: bigint }
  | ({ readonly kind: "l1" } & L1CompletionFields);

/** All that TransferFromL1Completed says: it names no transfer. */
export type L1CompletionFields = Pick<
  TransferSentEvent,
  "recipient" | "amount" | "amountOutMin" | "deadline" | "bonderFee"
> & {
  readonly relayer: string;
};

/** Words of data that each event has. */
const dataWordsByTopic: Readonly<Record<string, number>> = {
  [eventTopics.transferSent]: 6,
  [eventTopics.transferSentToL2]: 4,
  [eventTopics.cctpTransferSent]: 2,
  [eventTopics.withdrawalBonded]: 1,
  [eventTopics.withdrew]: 2,
  [eventTopics.transferFromL1Completed]: 4,
  [eventTopics.messageReceived]: 1,
};

/** Reads the log of a sending contract; undefined when it is another event. */
export function decodeSentEvent(log: Log): TransferSentEvent | undefined {
  const [topic0, first, second, third] = log.topics;
  const word = createWordReader(log);
  if (word === undefined || first === undefined || second === undefined || third === undefined) return undefined;
  switch (topic0) {
    case eventTopics.transferSent:
      // data: amount, transferNonce, bonderFee, index, amountOutMin, deadline
      return {
        transferId: first,
        destinationChainId: Number(BigInt(second)),
        recipient: decodeAddressTopic(third),
        amount: word(0),
        bonderFee: word(2),
        amountOutMin: word(4),
        deadline: word(5),
        relayer: undefined,
      };
    case eventTopics.transferSentToL2:
      // data: amount, amountOutMin, deadline, relayerFee
      return {
        transferId: undefined,
        destinationChainId: Number(BigInt(first)),
        recipient: decodeAddressTopic(second),
        amount: word(0),
        amountOutMin: word(1),
        deadline: word(2),
        bonderFee: word(3),
        relayer: decodeAddressTopic(third),
      };
    case eventTopics.cctpTransferSent:
      // data: amount, bonderFee
      return {
        transferId: BigInt(first).toString(),
        destinationChainId: Number(BigInt(second)),
        recipient: decodeAddressTopic(third),
        amount: word(0),
        bonderFee: word(1),
        amountOutMin: 0n,
        deadline: 0n,
        relayer: undefined,
      };
    default:
      return undefined;
  }
}

/** Reads the log of a contract on which transfers arrive; undefined when it is another event. */
export function decodeReceivedEvent(log: Log): TransferReceivedEvent | undefined {
  const [topic0, first, second] = log.topics;
  const word = createWordReader(log);
  if (word === undefined || first === undefined) return undefined;
  switch (topic0) {
    case eventTopics.withdrawalBonded:
    case eventTopics.withdrew:
      return { kind: "l2", transferId: first, isBond: topic0 === eventTopics.withdrawalBonded };
    case eventTopics.messageReceived:
      // topics: caller, nonce; data: sourceDomain, sender, messageBody
      if (second === undefined) return undefined;
      return { kind: "cctp", sourceDomain: Number(word(0)), nonce: BigInt(second) };
    case eventTopics.transferFromL1Completed:
      // data: amount, amountOutMin, deadline, relayerFee
      if (second === undefined) return undefined;
      return {
        kind: "l1",
        recipient: decodeAddressTopic(first),
        relayer: decodeAddressTopic(second),
        amount: word(0),
        amountOutMin: word(1),
        deadline: word(2),
        bonderFee: word(3),
      };
    default:
      return undefined;
  }
}

/** Whether an event from L1 sends a transfer with these values, or a completion of it has them. */
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

/** Calldata of a bridge's `isTransferIdSpent(bytes32)`. */
export function encodeIsTransferIdSpentCall(transferId: string): string {
  return `0x3a7af631${transferId.slice(2)}`;
}

/** Calldata of a message transmitter's `usedNonces(bytes32)`: the key is keccak256 of domain and nonce, packed. */
export function encodeUsedNoncesCall(sourceDomain: number, nonce: bigint): string {
  const packed = `${sourceDomain.toString(16).padStart(8, "0")}${nonce.toString(16).padStart(16, "0")}`;
  return `0xfeb61724${bytesToHex(keccak_256(hexToBytes(packed)))}`;
}

/** A number or address as a 32-byte topic. */
export function encodeTopic(value: bigint | string): string {
  const hex = typeof value === "bigint" ? value.toString(16) : value.slice(2);
  return `0x${hex.padStart(64, "0")}`;
}

/** Reads the n-th 32-byte word of an event's data as an unsigned integer; undefined for an event without such data. */
function createWordReader({ topics: [topic0 = ""], data }: Log): ((index: number) => bigint) | undefined {
  const words = dataWordsByTopic[topic0];
  if (words === undefined || data.length < 2 + words * 64) return undefined;
  return (index) => BigInt(`0x${data.slice(2 + index * 64, 66 + index * 64)}`);
}

function decodeAddressTopic(topic: string): string {
  return `0x${topic.slice(-40)}`;
}

function computeEventTopic(signature: string): string {
  return `0x${bytesToHex(keccak_256(new TextEncoder().encode(signature)))}`;
}
