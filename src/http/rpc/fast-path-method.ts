import type { DescMethod, Message } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import type { CallContext } from "../../operations/operation.js";
import { isPromise, type MaybePromise } from "../../resilience/maybe-async.js";
import { memoizeFrozen } from "../codec/memoize-frozen.js";
import { createFastPathBinaryReader, type FastPathBinaryReader } from "../codec/read-binary.js";
import { createFastPathJsonReader, type FastPathJsonReader } from "../codec/read-json.js";
import { createBinaryWriter } from "../codec/write-binary.js";
import { createJsonWriter } from "../codec/write-json.js";
import { ENVELOPE_BYTES } from "../request/body.js";
import type { AnyOperation } from "../request/mounted-service.js";

/** A unary method as the fast paths serve it. */
export interface FastPathMethod {
  /** Full name of service and method, for the log. */
  readonly name: string;
  /** Package that defines the reasons of its errors. */
  readonly errorDomain: string;
  /** Whether it may be called by GET: it has no side effects (RFC 9110 9.2.1). */
  readonly isSafe: boolean;
  /** Whether its calls count against the rate limit of their callers. */
  readonly isRateLimited: boolean;
  readonly operation: AnyOperation;
  readonly readBinary: FastPathBinaryReader;
  readonly readJson: FastPathJsonReader;
  readonly writeBinary: (message: Message) => Buffer;
  /** Binary, after the prefix of an uncompressed length-prefixed message of gRPC. */
  readonly writeEnveloped: (message: Message) => Buffer;
  /** As a text if it is sent once and each of its characters is one byte. */
  readonly writeJson: (message: Message) => Buffer | string;
}

export function createFastPathMethod(
  method: DescMethod,
  operation: AnyOperation,
  isRateLimited: boolean,
): FastPathMethod {
  const writeBinary = createBinaryWriter(method.output);
  const writeJson = createJsonWriter(method.output);
  return {
    name: `${method.parent.typeName}/${method.name}`,
    errorDomain: method.parent.file.proto.package,
    isSafe: method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS,
    isRateLimited,
    operation,
    readBinary: createFastPathBinaryReader(method.input),
    readJson: createFastPathJsonReader(method.input),
    writeBinary: memoizeFrozen((message) => writeBinary(message, 0)),
    writeEnveloped: memoizeFrozen((message) => {
      const bytes = writeBinary(message, ENVELOPE_BYTES);
      bytes[0] = 0;
      bytes.writeUInt32BE(bytes.length - ENVELOPE_BYTES, 1);
      return bytes;
    }),
    writeJson: memoizeFrozen((message, isMemoized) => {
      const text = writeJson(message);
      return isMemoized || Buffer.byteLength(text) !== text.length ? Buffer.from(text) : text;
    }),
  };
}

/**
 * Runs an operation and passes on its outcome: synchronously if the operation is synchronous.
 * @param call passed on with the outcome, so that a call needs no functions of its own
 */
export function invokeOperation<Call>(
  operation: AnyOperation,
  request: Message,
  context: CallContext,
  call: Call,
  succeed: (call: Call, message: Message) => void,
  fail: (call: Call, error: unknown) => void,
): void {
  let result: MaybePromise<Message>;
  try {
    result = operation(request as never, context);
  } catch (error) {
    fail(call, error);
    return;
  }
  if (isPromise(result)) {
    void result.then(
      (message) => succeed(call, message),
      (error) => fail(call, error),
    );
  } else succeed(call, result);
}

/** Returns the end of a timeout in whole milliseconds since the epoch, as Connect computes it. */
export function toDeadlineMs(timeoutMs: number | undefined): number | undefined {
  return timeoutMs === undefined ? undefined : Math.trunc(Date.now() + timeoutMs);
}

/** Returns the time until a deadline in milliseconds; negative if it has passed. */
export function toRemainingMs(deadlineMs: number | undefined): number | undefined {
  return deadlineMs === undefined ? undefined : deadlineMs - Date.now();
}
