import type { DescMethod, Message } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import type { CallContext } from "../../operations/operation.js";
import { memoizeFrozen } from "../codec/memoize-frozen.js";
import { createFastPathBinaryReader, type FastPathBinaryReader } from "../codec/read-binary.js";
import { createFastPathJsonReader, type FastPathJsonReader } from "../codec/read-json.js";
import { createBinaryWriter } from "../codec/write-binary.js";
import { createJsonWriter } from "../codec/write-json.js";
import { ENVELOPE_BYTES } from "../request/body.js";
import type { AnyOperation } from "../request/mounted-service.js";

/** A unary method as the short ways in front of Connect's adapter serve it. */
export interface FastPathMethod {
  /** Full name of service and method, for the log. */
  readonly name: string;
  /** Who defines the reasons of its errors. */
  readonly errorDomain: string;
  /** Whether it may be asked by GET. */
  readonly isSafe: boolean;
  /** Whether its calls count against their callers' limit. */
  readonly isRateLimited: boolean;
  readonly operation: AnyOperation;
  readonly readBinary: FastPathBinaryReader;
  readonly readJson: FastPathJsonReader;
  readonly writeBinary: (message: Message) => Buffer;
  /** Binary behind the bytes that gRPC puts in front of a message, which say that it is not compressed. */
  readonly writeEnveloped: (message: Message) => Buffer;
  readonly writeJson: (message: Message) => Buffer;
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
    writeJson: memoizeFrozen((message) => Buffer.from(writeJson(message))),
  };
}

/** Runs an operation and hands on how it ended: at once where it answers at once. */
export function invokeOperation(
  operation: AnyOperation,
  request: Message,
  context: CallContext,
  succeed: (answer: Message) => void,
  fail: (error: unknown) => void,
): void {
  let answer: Message | Promise<Message>;
  try {
    answer = operation(request as never, context);
  } catch (error) {
    fail(error);
    return;
  }
  if (answer instanceof Promise) answer.then(succeed, fail);
  else succeed(answer);
}

/** What is left of a deadline in milliseconds, as Connect counts it: by the clock, in whole milliseconds. */
export function toDeadlineMs(timeoutMs: number | undefined): number | undefined {
  return timeoutMs === undefined ? undefined : Math.trunc(Date.now() + timeoutMs);
}

export function toRemainingMs(deadline: number | undefined): number | undefined {
  return deadline === undefined ? undefined : deadline - Date.now();
}
