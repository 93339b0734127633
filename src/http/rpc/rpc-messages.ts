import { type DescMessage, fromJsonString, type Message } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { decompressGzip } from "../codec/gzip.js";
import { assertBinaryLimits, assertJsonLimits } from "../codec/message-limits.js";
import type { BinaryWriter } from "../codec/write-binary.js";
import { ENVELOPE_BYTES } from "../request/body.js";

const COMPRESSED_FLAG = 1;

const textDecoder = new TextDecoder();

/**
 * Creates a reader of uncompressed JSON messages. It returns undefined for one that is not valid or holds more than a request
 * may, which Connect then rejects.
 */
export function createJsonReader(schema: DescMessage): (bytes: Uint8Array) => Message | undefined {
  return (bytes) => {
    try {
      assertJsonLimits(schema, bytes);
      return fromJsonString(schema, textDecoder.decode(bytes), { ignoreUnknownFields: true });
    } catch {
      return undefined;
    }
  };
}

/** How many messages of a call that has one are examined: Connect reads a second one before it rejects the call. */
const MAX_READ_MESSAGES = 2;

/** Examines the messages of one type before Connect reads them. */
export class RequestMessages {
  readonly #schema: DescMessage;
  readonly #maxBytes: number;

  /** @param maxBytes largest size of a message after decompression */
  constructor(schema: DescMessage, maxBytes: number) {
    this.#schema = schema;
    this.#maxBytes = maxBytes;
  }

  /**
   * Returns a message without its compression; undefined if it is not valid gzip or compressed otherwise, which is for
   * Connect to report.
   * @param encoding compression of the message; none: it has none
   * @throws ServiceError INVALID_PARAMETER for one that holds too much
   */
  open(bytes: Uint8Array, isJson: boolean, encoding: string | null | undefined): Uint8Array | undefined {
    const message = this.#decompress(bytes, encoding ?? "identity");
    if (message !== undefined) (isJson ? assertJsonLimits : assertBinaryLimits)(this.#schema, message);
    return message;
  }

  /**
   * The same for the messages at the start of a body, each in its envelope: as many as Connect may read.
   * @param encoding compression of the messages whose envelope says that they are compressed
   */
  openEnvelopes(body: Buffer, isJson: boolean, encoding: string | undefined, maxMessages = MAX_READ_MESSAGES): Buffer {
    const parts: Buffer[] = [];
    let start = 0;
    for (let i = 0; i < maxMessages && body.length - start >= ENVELOPE_BYTES; i++) {
      const end = start + ENVELOPE_BYTES + body.readUInt32BE(start + 1);
      if (end > body.length) break;
      const flags = body[start] ?? 0;
      const isCompressed = (flags & COMPRESSED_FLAG) !== 0;
      const bytes = body.subarray(start + ENVELOPE_BYTES, end);
      const message = this.open(bytes, isJson, isCompressed ? (encoding ?? "unknown") : "identity");
      const isUnchanged = message === undefined || message === bytes;
      parts.push(isUnchanged ? body.subarray(start, end) : envelop(flags ^ COMPRESSED_FLAG, message));
      start = end;
    }
    return Buffer.concat([...parts, body.subarray(start)]);
  }

  #decompress(bytes: Uint8Array, encoding: string): Uint8Array | undefined {
    if (encoding === "identity") return bytes;
    try {
      return encoding === "gzip" ? decompressGzip(bytes, this.#maxBytes) : undefined;
    } catch {
      return undefined;
    }
  }
}

/** Returns the message of a GET over the Connect protocol; undefined for text that is not base64. */
export function decodeQueryMessage(parameters: URLSearchParams): Buffer | undefined {
  const text = parameters.get("message") ?? "";
  try {
    return parameters.get("base64") === "1" ? Buffer.from(base64Decode(text)) : Buffer.from(text);
  } catch {
    return undefined;
  }
}

/** Writes a message in an envelope: a byte of flags and the length, as gRPC and the streams of Connect send it. */
export function writeEnvelope(write: BinaryWriter, message: Message): Buffer {
  return fillEnvelope(write(message, ENVELOPE_BYTES));
}

/** Writes the flags of an uncompressed message and its length into the bytes that were left free for them. */
export function fillEnvelope(bytes: Buffer): Buffer {
  bytes[0] = 0;
  bytes.writeUInt32BE(bytes.length - ENVELOPE_BYTES, 1);
  return bytes;
}

/** Puts bytes into an envelope. */
export function envelop(flags: number, bytes: Uint8Array): Buffer {
  const prefix = Buffer.alloc(ENVELOPE_BYTES);
  prefix.writeUInt8(flags);
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}

/** Parses a body of exactly one uncompressed message in its envelope; returns undefined for any other. */
export function parseEnveloped(body: Buffer, read: (bytes: Buffer) => Message | undefined): Message | undefined {
  if (body.length < ENVELOPE_BYTES || body[0] !== 0 || body.readUInt32BE(1) !== body.length - ENVELOPE_BYTES) {
    return undefined;
  }
  return read(body.subarray(ENVELOPE_BYTES));
}
