import type { DescMethodUnary, Message } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { createProtobufJsonPrinter } from "../codec/json-printer.js";
import { memoizeFrozen } from "../codec/messages.js";
import { createFastPathBinaryReader, type FastPathBinaryReader } from "../codec/read-binary.js";
import { createFastPathJsonReader, type FastPathJsonReader } from "../codec/read-json.js";
import { type BinaryWriter, createBinaryWriter } from "../codec/write-binary.js";
import { ENVELOPE_BYTES } from "../request/body.js";
import type { AnyOperation } from "../request/mounted-service.js";

/** A unary method as the fast paths serve it. */
export class UnaryMethod {
  /** Full name of service and method, for the log. */
  readonly name: string;
  /** Package that defines the reasons of its errors. */
  readonly errorDomain: string;
  /** Whether it may be called by GET: it has no side effects (RFC 9110 9.2.1). */
  readonly isSafe: boolean;
  readonly readBinary: FastPathBinaryReader;
  readonly readJson: FastPathJsonReader;
  readonly writeBinary: (message: Message) => Buffer;
  /** Binary, after the prefix of an uncompressed length-prefixed message of gRPC. */
  readonly writeEnveloped: (message: Message) => Buffer;
  /** As a text if it is sent once and each of its characters is one byte. */
  readonly writeJson: (message: Message) => Buffer | string;

  /** @param isRateLimited whether its calls count against the rate limit of their callers */
  constructor(
    method: DescMethodUnary,
    readonly operation: AnyOperation,
    readonly isRateLimited: boolean,
  ) {
    this.name = `${method.parent.typeName}/${method.name}`;
    this.errorDomain = method.parent.file.proto.package;
    this.isSafe = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
    this.readBinary = createFastPathBinaryReader(method.input);
    this.readJson = createFastPathJsonReader(method.input);
    const writeBinary = createBinaryWriter(method.output);
    this.writeBinary = memoizeFrozen((message) => writeBinary(message, 0));
    this.writeEnveloped = memoizeFrozen((message) => writeEnvelope(writeBinary, message));
    const printJson = createProtobufJsonPrinter(method.output);
    this.writeJson = memoizeFrozen((message, isMemoized) => {
      const text = printJson(message);
      return isMemoized || Buffer.byteLength(text) !== text.length ? Buffer.from(text) : text;
    });
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
