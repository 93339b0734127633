import { keccak_256 } from "@noble/hashes/sha3.js";
import { bytesToHex, hexToBytes } from "@noble/hashes/utils.js";
import type { Log } from "../chain/reads.js";

/** Topic 0 of the events that tell of a transfer. */
export const topics = {
  transferSent: eventTopic("TransferSent(bytes32,uint256,address,uint256,bytes32,uint256,uint256,uint256,uint256)"),
  transferSentToL2: eventTopic("TransferSentToL2(uint256,address,uint256,uint256,uint256,address,uint256)"),
  cctpTransferSent: eventTopic("CCTPTransferSent(uint64,uint256,address,uint256,uint256)"),
  withdrawalBonded: eventTopic("WithdrawalBonded(bytes32,uint256)"),
  withdrew: eventTopic("Withdrew(bytes32,address,uint256,bytes32)"),
  transferFromL1Completed: eventTopic("TransferFromL1Completed(address,uint256,uint256,uint256,address,uint256)"),
  messageReceived: eventTopic("MessageReceived(address,uint32,uint64,bytes32,bytes)"),
} as const;

/** What an event says of the transfer that it sends. Amounts in the token's smallest unit, deadline in Unix seconds. */
export interface SentEvent {
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

/** Words of data that each event has. */
const wordsOf: Readonly<Record<string, number>> = {
  [topics.transferSent]: 6,
  [topics.transferSentToL2]: 4,
  [topics.cctpTransferSent]: 2,
  [topics.transferFromL1Completed]: 4,
  [topics.messageReceived]: 1,
};

/** Reads the log of a sending contract; undefined when it is another event. */
export function decodeSent(log: Log): SentEvent | undefined {
  const [topic0, first, second, third] = log.topics;
  const word = reader(log);
  if (word === undefined || first === undefined || second === undefined || third === undefined) return undefined;
  switch (topic0) {
    case topics.transferSent:
      // data: amount, transferNonce, bonderFee, index, amountOutMin, deadline
      return {
        transferId: first.toLowerCase(),
        destinationChainId: Number(BigInt(second)),
        recipient: addressOf(third),
        amount: word(0),
        bonderFee: word(2),
        amountOutMin: word(4),
        deadline: word(5),
        relayer: undefined,
      };
    case topics.transferSentToL2:
      // data: amount, amountOutMin, deadline, relayerFee
      return {
        transferId: undefined,
        destinationChainId: Number(BigInt(first)),
        recipient: addressOf(second),
        amount: word(0),
        amountOutMin: word(1),
        deadline: word(2),
        bonderFee: word(3),
        relayer: addressOf(third),
      };
    case topics.cctpTransferSent:
      // data: amount, bonderFee
      return {
        transferId: BigInt(first).toString(),
        destinationChainId: Number(BigInt(second)),
        recipient: addressOf(third),
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

/** Whether a TransferFromL1Completed log delivers a transfer with the values of this event: it names no transfer. */
export function isCompletionOf(log: Log, sent: SentEvent): boolean {
  const [topic0, recipient, relayer] = log.topics;
  const word = reader(log);
  if (word === undefined || recipient === undefined || relayer === undefined) return false;
  // data: amount, amountOutMin, deadline, relayerFee
  return (
    topic0 === topics.transferFromL1Completed &&
    addressOf(recipient) === sent.recipient &&
    addressOf(relayer) === sent.relayer &&
    word(0) === sent.amount &&
    word(1) === sent.amountOutMin &&
    word(2) === sent.deadline &&
    word(3) === sent.bonderFee
  );
}

/** Whether a MessageReceived log came from this CCTP domain; its nonce is an indexed topic. */
export function isFromDomain(log: Log, sourceDomain: number): boolean {
  return log.topics[0] === topics.messageReceived && reader(log)?.(0) === BigInt(sourceDomain);
}

/** Calldata of a bridge's `isTransferIdSpent(bytes32)`. */
export function isTransferIdSpentCall(transferId: string): string {
  return `0x3a7af631${transferId.slice(2)}`;
}

/** Calldata of a message transmitter's `usedNonces(bytes32)`: the key is keccak256 of domain and nonce, packed. */
export function usedNoncesCall(sourceDomain: number, nonce: bigint): string {
  const packed = `${sourceDomain.toString(16).padStart(8, "0")}${nonce.toString(16).padStart(16, "0")}`;
  return `0xfeb61724${bytesToHex(keccak_256(hexToBytes(packed)))}`;
}

/** A number or address as a 32-byte topic. */
export function topicOf(value: bigint | string): string {
  const hex = typeof value === "bigint" ? value.toString(16) : value.slice(2);
  return `0x${hex.padStart(64, "0")}`;
}

/** Reads the n-th 32-byte word of an event's data as an unsigned integer; undefined for an event without such data. */
function reader({ topics: [topic0 = ""], data }: Log): ((index: number) => bigint) | undefined {
  const words = wordsOf[topic0];
  if (words === undefined || data.length < 2 + words * 64) return undefined;
  return (index) => BigInt(`0x${data.slice(2 + index * 64, 66 + index * 64)}`);
}

function addressOf(topic: string): string {
  return `0x${topic.slice(-40).toLowerCase()}`;
}

function eventTopic(signature: string): string {
  return `0x${bytesToHex(keccak_256(new TextEncoder().encode(signature)))}`;
}
