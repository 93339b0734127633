import type { DescMessage } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { decompressGzip } from "../codec/gzip.js";
import { assertBinaryLimits, assertJsonLimits } from "../codec/message-limits.js";
import { ENVELOPE_BYTES } from "../request/body.js";
import { envelop } from "./unary-method.js";

/** How the messages of a request are written. */
export interface MessageFormat {
  readonly isJson: boolean;
  /** Compression of the messages whose envelope says that they are compressed, or of the message without an envelope. */
  readonly encoding: string | null | undefined;
}

const COMPRESSED_FLAG = 1;

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
   * @throws ServiceError INVALID_PARAMETER for one that holds too much
   */
  open(bytes: Uint8Array, { isJson, encoding }: MessageFormat): Uint8Array | undefined {
    const message = this.#decompress(bytes, encoding ?? "identity");
    if (message !== undefined) (isJson ? assertJsonLimits : assertBinaryLimits)(this.#schema, message);
    return message;
  }

  /** The same for the messages at the start of a body, each in its envelope: as many as Connect may read. */
  openEnvelopes(body: Buffer, format: MessageFormat, maxMessages = MAX_READ_MESSAGES): Buffer {
    const parts: Buffer[] = [];
    let start = 0;
    for (let i = 0; i < maxMessages && body.length - start >= ENVELOPE_BYTES; i++) {
      const end = start + ENVELOPE_BYTES + body.readUInt32BE(start + 1);
      if (end > body.length) break;
      const flags = body[start] ?? 0;
      const isCompressed = (flags & COMPRESSED_FLAG) !== 0;
      const encoding = isCompressed ? (format.encoding ?? "unknown") : "identity";
      const bytes = body.subarray(start + ENVELOPE_BYTES, end);
      const message = this.open(bytes, { ...format, encoding });
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
