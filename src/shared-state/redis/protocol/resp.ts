/** A reply of Redis. Doubles, big numbers and maps, which no command here returns, are texts and flat lists. */
export type RedisReply = string | number | boolean | null | RedisErrorReply | readonly RedisReply[];

/** An error that Redis replies. Its text is not kept: a server that echoes what it was sent could put a password into it. */
export interface RedisErrorReply {
  /** The first word, such as OOM or NOPERM. */
  readonly errorCode: string;
}

export interface RespHandlers {
  onReply(reply: RedisReply): void;
  /** Takes what Redis sends without being asked: messages of channels. */
  onPush(values: readonly RedisReply[]): void;
}

/** Largest reply or message, in bytes. The state of a chain takes about a hundredth. */
export const MAX_FRAME_BYTES = 2 * 1024 * 1024;
/** Longest line: a header or a short text. */
const MAX_LINE_BYTES = 1_024;
/** Values in a frame, counting those in lists. The reply to HELLO has about 50. */
const MAX_FRAME_VALUES = 1_024;
const MAX_DEPTH = 8;

const CR = 13;
const LF = 10;
const ERROR_CODE_PATTERN = /^[A-Z]{1,32}/;

/** Thrown for bytes that are not RESP, or for more than the limits allow. The connection is of no use after it. */
export class RespError extends Error {}

/** Thrown when a frame is incomplete. */
class IncompleteFrame {
  /** @param neededBytes length that the frame has at least */
  constructor(readonly neededBytes: number) {}
}

/** Encodes a command as an array of bulk strings. */
export function encodeCommand(args: readonly string[]): string {
  let text = `*${args.length}\r\n`;
  for (const arg of args) text += `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`;
  return text;
}

/**
 * Creates a parser of RESP2 and RESP3 (https://redis.io/docs/latest/develop/reference/protocol-spec/) with bounded memory.
 * @returns a function that takes the received bytes and throws RespError
 */
export function createRespParser(handlers: RespHandlers): (chunk: Buffer) => void {
  let chunks: Buffer[] = [];
  let receivedBytes = 0;
  let neededBytes = 1;

  return (chunk) => {
    chunks.push(chunk);
    receivedBytes += chunk.length;
    if (receivedBytes < neededBytes) return;
    let buffer = chunks.length === 1 ? chunk : Buffer.concat(chunks);
    neededBytes = 1;
    while (buffer.length >= neededBytes) {
      const frame = parseFrame(buffer);
      if (frame instanceof IncompleteFrame) {
        neededBytes = Math.max(frame.neededBytes, buffer.length + 1);
        if (neededBytes > MAX_FRAME_BYTES) throw new RespError("a reply is too long");
        break;
      }
      buffer = buffer.subarray(frame.endsAt);
      if (frame.isPush) handlers.onPush(Array.isArray(frame.value) ? frame.value : []);
      else handlers.onReply(frame.value);
    }
    chunks = buffer.length === 0 ? [] : [buffer];
    receivedBytes = buffer.length;
  };
}

interface Frame {
  readonly value: RedisReply;
  readonly isPush: boolean;
  readonly endsAt: number;
}

function parseFrame(buffer: Buffer): Frame | IncompleteFrame {
  const cursor = { at: 0, values: 0 };

  function readLine(): string {
    const end = buffer.indexOf(LF, cursor.at);
    const length = (end === -1 ? buffer.length : end) - cursor.at;
    if (length > MAX_LINE_BYTES) throw new RespError("a line is too long");
    if (end === -1) throw new IncompleteFrame(buffer.length + 1);
    if (buffer[end - 1] !== CR) throw new RespError("a line does not end with CRLF");
    const line = buffer.toString("utf8", cursor.at, end - 1);
    cursor.at = end + 1;
    return line;
  }

  function readLength(max: number): number {
    const line = readLine();
    const length = /^(?:-1|[0-9]{1,10})$/.test(line) ? Number(line) : Number.NaN;
    if (!(length <= max)) throw new RespError("a length is invalid");
    return length;
  }

  function readBytes(length: number): string {
    const end = cursor.at + length;
    if (buffer.length < end + 2) throw new IncompleteFrame(end + 2);
    if (buffer[end] !== CR || buffer[end + 1] !== LF) throw new RespError("a text does not end with CRLF");
    const text = buffer.toString("utf8", cursor.at, end);
    cursor.at = end + 2;
    return text;
  }

  function readBulk(): string | null {
    const length = readLength(MAX_FRAME_BYTES);
    return length === -1 ? null : readBytes(length);
  }

  function readList(valuesPerItem: number, depth: number): readonly RedisReply[] | null {
    const length = readLength(MAX_FRAME_VALUES);
    if (length === -1) return null;
    return Array.from({ length: length * valuesPerItem }, () => readValue(depth + 1));
  }

  function readValue(depth: number): RedisReply {
    cursor.values += 1;
    if (depth > MAX_DEPTH || cursor.values > MAX_FRAME_VALUES) throw new RespError("a reply has too many values");
    if (cursor.at >= buffer.length) throw new IncompleteFrame(cursor.at + 1);
    const type = String.fromCharCode(buffer[cursor.at] ?? 0);
    cursor.at += 1;
    switch (type) {
      case "+":
      case ",":
      case "(":
        return readLine();
      case ":":
        return parseInteger(readLine());
      case "#":
        return readLine() === "t";
      case "_":
        readLine();
        return null;
      case "-":
        return toErrorReply(readLine());
      case "!":
        return toErrorReply(readBulk() ?? "");
      case "$":
      case "=":
        return readBulk();
      case "*":
      case "~":
      case ">":
        return readList(1, depth);
      case "%":
        return readList(2, depth);
      default:
        throw new RespError("a value has an unknown type");
    }
  }

  try {
    const isPush = buffer[0] === ">".charCodeAt(0);
    return { value: readValue(0), isPush, endsAt: cursor.at };
  } catch (error) {
    if (error instanceof IncompleteFrame) return error;
    throw error;
  }
}

function parseInteger(line: string): number {
  const value = /^[+-]?[0-9]{1,19}$/.test(line) ? Number(line) : Number.NaN;
  if (Number.isNaN(value)) throw new RespError("an integer is invalid");
  return value;
}

function toErrorReply(line: string): RedisErrorReply {
  return { errorCode: ERROR_CODE_PATTERN.exec(line)?.[0] ?? "ERR" };
}

/** Returns whether a reply is an error. */
export function isErrorReply(reply: RedisReply): reply is RedisErrorReply {
  return typeof reply === "object" && reply !== null && "errorCode" in reply;
}
