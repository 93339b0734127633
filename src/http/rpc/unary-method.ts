import type { DescMethodUnary, Message } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { createProtobufJsonPrinter } from "../codec/json-printer.js";
import { memoizeFrozen } from "../codec/messages.js";
import { createFastPathBinaryReader, type FastPathBinaryReader } from "../codec/read-binary.js";
import { createBinaryWriter } from "../codec/write-binary.js";
import type { AnyOperation } from "../request/mounted-service.js";
import { createJsonReader, writeEnvelope } from "./rpc-messages.js";

/** A unary method as the fast paths serve it. */
export class UnaryMethod {
  /** Full name of service and method, for the log. */
  readonly name: string;
  /** Package that defines the reasons of its errors. */
  readonly errorDomain: string;
  /** Whether it may be called by GET: it has no side effects (RFC 9110 9.2.1). */
  readonly isSafe: boolean;
  readonly readBinary: FastPathBinaryReader;
  readonly readJson: (bytes: Buffer) => Message | undefined;
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
    this.readJson = createJsonReader(method.input);
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
