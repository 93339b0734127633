import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { BodyBudget } from "../admission/body-budget.js";
import type { StreamQuota } from "../admission/stream-quota.js";
import { createFastPathBinaryReader } from "../codec/read-binary.js";
import { createFastPathJsonReader } from "../codec/read-json.js";
import { createBinaryWriter } from "../codec/write-binary.js";
import { createJsonWriter } from "../codec/write-json.js";
import type { HttpLimits } from "../connection/http-limits.js";
import { collectBody, ENVELOPE_BYTES } from "../request/body.js";
import type { AnyStreamOperation } from "../request/mounted-service.js";
import type { PathHandler } from "../request/response.js";
import { admitStream } from "../stream/admit-stream.js";
import { writeFlushedChunk } from "../stream/flushed-chunk.js";
import type { StreamTransport } from "../stream/stream-transport.js";
import type { StreamingCalls } from "../stream/streaming-calls.js";
import { toRemainingMs } from "./fast-path-method.js";
import { mapConnectError } from "./rpc-errors.js";
import { sendRpcError } from "./send-rpc-error.js";
import {
  fillEnvelope,
  parseEnveloped,
  parseStreamCall,
  type StreamCall,
  type StreamFormat,
  writeStreamEnd,
  writeStreamHead,
} from "./stream-format.js";

export interface ServerStreamOptions {
  readonly limits: HttpLimits;
  readonly calls: StreamingCalls;
  readonly quota: StreamQuota;
  readonly budget: BodyBudget;
  /** Serves requests in unusual forms. */
  readonly general: PathHandler;
}

/**
 * Creates the fast path of a server-streaming method for uncompressed requests over gRPC, gRPC-Web and Connect. Connect's
 * adapter takes four times the memory for each open stream. Other requests fall back to `general`.
 */
export function createServerStreamHandler(
  method: DescMethod,
  operation: AnyStreamOperation,
  { limits, calls, quota, budget, general }: ServerStreamOptions,
): PathHandler {
  const readBinary = createFastPathBinaryReader(method.input);
  const readJson = createFastPathJsonReader(method.input);
  const writeBinary = createBinaryWriter(method.output);
  const writeJson = createJsonWriter(method.output);
  const domain = method.parent.file.proto.package;
  const bodyLimits = { maxBytes: limits.requestBytes + ENVELOPE_BYTES, timeoutMs: limits.requestMs, budget };

  function encode(message: Message, { isBinary }: StreamFormat): Buffer {
    if (isBinary) return fillEnvelope(writeBinary(message, ENVELOPE_BYTES));
    const text = writeJson(message);
    const bytes = Buffer.allocUnsafe(ENVELOPE_BYTES + Buffer.byteLength(text));
    bytes.write(text, ENVELOPE_BYTES);
    return fillEnvelope(bytes);
  }

  function refuse(call: StreamCall, error: unknown): void {
    const { exchange, format } = call;
    const { req, context } = exchange;
    req.resume();
    if (format.protocol !== "connect") {
      sendRpcError(exchange, context.recordFailure(error), domain);
      return;
    }
    writeStreamHead(call, true);
    writeStreamEnd(call, mapConnectError(context, error, domain));
  }

  function createTransport(call: StreamCall): StreamTransport {
    const { res, context } = call.exchange;
    return {
      write(message, onFlushed) {
        const bytes = encode(message, call.format);
        if (bytes.length > limits.responseBytes + ENVELOPE_BYTES) throw new Error("the message is too large");
        if (!res.headersSent) writeStreamHead(call, false);
        writeFlushedChunk(res, bytes, onFlushed);
        return bytes.length;
      },
      finish(outcome) {
        const error = outcome.kind === "failed" ? mapConnectError(context, outcome.error, domain) : undefined;
        if (error === undefined) context.code = "ok";
        if (!res.headersSent) writeStreamHead(call, error !== undefined);
        writeStreamEnd(call, error);
      },
    };
  }

  return (exchange, query) => {
    const call = parseStreamCall(exchange);
    if (call === undefined) {
      general(exchange, query);
      return;
    }
    // Before the request is read: a stream takes its memory from the start, and a refusal should take little.
    let release: () => void;
    try {
      release = admitStream(exchange, quota);
    } catch (error) {
      refuse(call, error);
      return;
    }
    collectBody(exchange, { ...bodyLimits, remainingMs: toRemainingMs(call.deadlineMs) }, (body, bufferedBody) => {
      const request = body && parseEnveloped(body, call.format, readBinary, readJson);
      if (request === undefined) {
        release();
        general({ ...exchange, bufferedBody }, query);
        return;
      }
      const { context } = exchange;
      const remainingMs = toRemainingMs(call.deadlineMs);
      calls.open({ context, operation, request, transport: createTransport(call), remainingMs });
    });
  };
}
