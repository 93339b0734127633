import { MAX_TEXT_CHARS } from "../channel.js";
import { RefusedValueError, type Signer } from "./signing.js";

/** What replicas send each other over the channels of Redis. */
export interface TopicMessage {
  readonly kind: "publish" | "request" | "accept" | "reply" | "release";
  readonly topic: string;
  /** The member that sends it. */
  readonly from: string;
  /** Token of the sender's lease; 0: it does not read for all. */
  readonly token: number;
  /** Number of a request, or of the one that is accepted or answered. */
  readonly id: number;
  /** undefined in a reply: the requester has to read for itself. */
  readonly text: string | undefined;
}

const MESSAGE_KINDS: readonly string[] = ["publish", "request", "accept", "reply", "release"];
const MEMBER_PATTERN = /^[0-9a-f]{16}$/;
/** Age up to which messages of a channel are taken; older ones have waited in a server or network that hung. */
export const MAX_MESSAGE_AGE_MS = 5_000;
/** Signature, time and header. */
const MAX_OVERHEAD_CHARS = 512;
export const MAX_MESSAGE_CHARS = MAX_TEXT_CHARS + MAX_OVERHEAD_CHARS;

/** Prints a message as a header of one line, and its text. */
export function printTopicMessage(signer: Signer, place: string, { text, ...header }: TopicMessage): string {
  const line = JSON.stringify({ ...header, hasText: text !== undefined });
  return signer.sign(place, `${line}\n${text ?? ""}`);
}

/** @throws RefusedValueError for anything but a message that was signed for this place within a time */
export function parseTopicMessage(signer: Signer, place: string, printed: string, maxAgeMs: number): TopicMessage {
  if (printed.length > MAX_MESSAGE_CHARS) throw new RefusedValueError("oversized");
  const body = signer.verify(place, printed, maxAgeMs);
  const end = body.indexOf("\n");
  const { kind, topic, from, token, id, hasText } = parseHeader(body.slice(0, end));
  const isValid =
    typeof topic === "string" &&
    typeof from === "string" &&
    MEMBER_PATTERN.test(from) &&
    MESSAGE_KINDS.includes(kind as string) &&
    Number.isSafeInteger(token) &&
    Number.isSafeInteger(id);
  if (!isValid) throw new RefusedValueError("malformed");
  return {
    kind: kind as TopicMessage["kind"],
    topic,
    from,
    token: token as number,
    id: id as number,
    text: hasText === true ? body.slice(end + 1) : undefined,
  };
}

function parseHeader(line: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(line)) as Record<string, unknown>;
  } catch {
    throw new RefusedValueError("malformed");
  }
}
