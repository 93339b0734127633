import type { ContractCall } from "../../../chain/abi/multicall.js";
import type { LogFilter, Receipt } from "../../../chain/read/chain-reads.js";
import { getCctpDomain } from "../../../hop/cctp/cctp.js";
import type { ContractRegistry } from "../../../hop/contract-registry.js";
import type { Chain } from "../../../hop/networks.js";
import {
  EVENT_TOPICS,
  encodeIsTransferIdSpentCall,
  encodeTopic,
  encodeUsedNoncesCall,
} from "../../../hop/transfer-events.js";
import { isCctpNonce } from "../../sources/transfer-source.js";
import type { SentTransfer } from "../../transfer.js";

// What followers ask a chain at each poll. The answers only tell that something may have changed; a lookup then finds out
// what. A question is therefore one cheap call, and equal questions of several followers are asked once.

export type Question =
  /** Has the transaction been mined, and in which block? */
  | { readonly kind: "receipt"; readonly hash: string }
  /** Does a contract's flag say that a transfer was delivered? */
  | { readonly kind: "flag"; readonly call: ContractCall }
  /** Is there a log with these topics? */
  | { readonly kind: "log"; readonly address: readonly string[]; readonly topics: readonly (string | null)[] };

/** The answer of a chain to one question. */
export interface Answer {
  /** Number of the newest block that the endpoint has. */
  readonly head: number;
  /** undefined: the endpoint does not have it. Only for a question of that kind. */
  readonly receipt: Receipt | undefined;
  /** Whether the flag is set, or the log was found. */
  readonly isFound: boolean;
}

/** Returns a key that equal questions share. */
export function getQuestionKey(question: Question): string {
  switch (question.kind) {
    case "receipt":
      return question.hash;
    case "flag":
      return `${question.call.to} ${question.call.data}`;
    case "log":
      return `${question.address.join()} ${question.topics.join()}`;
  }
}

/** Returns what tells on its destination that a transfer was delivered; undefined: nothing, the route does not exist. */
export function createDeliveryQuestion(sent: SentTransfer, contracts: ContractRegistry): Question | undefined {
  const { kind, id, token, source, destination, event } = sent;
  if (kind === "cctp") {
    const transmitter = contracts.findMessageTransmitter(destination);
    const domain = getCctpDomain(source);
    if (transmitter === undefined || domain === undefined) return undefined;
    return { kind: "flag", call: { to: transmitter, data: encodeUsedNoncesCall(domain, BigInt(id)) } };
  }
  const bridge = contracts.findBridge(token, destination);
  if (bridge === undefined) return undefined;
  if (kind === "l2") return { kind: "flag", call: { to: bridge, data: encodeIsTransferIdSpentCall(id) } };
  if (event.relayer === undefined) return undefined;
  const topics = [EVENT_TOPICS.transferFromL1Completed, encodeTopic(event.recipient), encodeTopic(event.relayer)];
  return { kind: "log", address: [bridge], topics };
}

/** Returns what tells on a chain that a transfer has appeared which nobody knew; undefined: it cannot appear there. */
export function createAppearanceQuestion(
  target: { readonly kind: "id" | "hash"; readonly value: string },
  chain: Chain,
  contracts: ContractRegistry,
): Question | undefined {
  const { kind, value } = target;
  if (kind === "hash") return { kind: "receipt", hash: value };
  const isNonce = isCctpNonce(value);
  // The ID of a transfer from L1 is the hash of its transaction.
  if (!isNonce && chain.isL1) return { kind: "receipt", hash: value };
  const senders = [...contracts.getSendingContracts(chain)];
  const address = senders.flatMap(([each, sender]) => (sender.kind === (isNonce ? "cctp" : "l2") ? [each] : []));
  if (address.length === 0) return undefined;
  const topics = isNonce
    ? [EVENT_TOPICS.cctpTransferSent, encodeTopic(BigInt(value))]
    : [EVENT_TOPICS.transferSent, value];
  return { kind: "log", address, topics };
}

/** Joins log questions to as few filters as possible: one for each event. A filter may match more than was asked for. */
export function joinLogFilters(questions: readonly (Question & { readonly kind: "log" })[]): readonly LogFilter[] {
  const events = new Set(questions.map(({ topics: [event] }) => event));
  return [...events].map((event) => {
    const group = questions.filter(({ topics }) => topics[0] === event);
    const topicCount = Math.min(...group.map(({ topics }) => topics.length));
    const topics = Array.from({ length: topicCount }, (_, index) =>
      joinTopics(group.map(({ topics }) => topics[index])),
    );
    return { address: unique(group.flatMap(({ address }) => address)), topics };
  });
}

/** Returns the topics of which a log has one; null: any. */
function joinTopics(topics: readonly (string | null | undefined)[]): string[] | null {
  const known = topics.filter((topic) => typeof topic === "string");
  return known.length < topics.length ? null : unique(known);
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)];
}
