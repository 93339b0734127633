import type { Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { endStreamFlag, endStreamToJson } from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { trailerFlag, trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";
import { acceptsGzip } from "../codec/compression.js";
import { ENVELOPE_BYTES } from "../request/body.js";
import { buildCommonHeaders, type HttpExchange, writeHead } from "../request/response.js";
import { toDeadlineMs } from "./fast-path-method.js";
import { toNodeTrailers } from "./rpc-errors.js";
import { parseConnectTimeoutMs, parseGrpcTimeoutMs } from "./rpc-headers.js";

/** How a protocol frames the messages of a stream. */
export interface StreamFormat {
  readonly protocol: "grpc" | "grpc-web" | "connect";
  readonly contentType: string;
  readonly isBinary: boolean;
}

const GRPC: StreamFormat = { protocol: "grpc", contentType: "application/grpc+proto", isBinary: true };
const GRPC_WEB: StreamFormat = { protocol: "grpc-web", contentType: "application/grpc-web+proto", isBinary: true };
const CONNECT_JSON: StreamFormat = { protocol: "connect", contentType: "application/connect+json", isBinary: false };
const CONNECT_BINARY: StreamFormat = { protocol: "connect", contentType: "application/connect+proto", isBinary: true };

/** Formats by the content type of their requests. */
const FORMATS: ReadonlyMap<string | undefined, StreamFormat> = new Map([
  ["application/grpc", GRPC],
  [GRPC.contentType, GRPC],
  ["application/grpc-web", GRPC_WEB],
  [GRPC_WEB.contentType, GRPC_WEB],
  [CONNECT_JSON.contentType, CONNECT_JSON],
  [CONNECT_BINARY.contentType, CONNECT_BINARY],
]);

/** A streaming call as its headers describe it. */
export interface StreamCall {
  readonly exchange: HttpExchange;
  readonly format: StreamFormat;
  /** Compression that the caller accepts. Messages are not compressed, but the head names it. */
  readonly encoding: string | undefined;
  /** When the caller's deadline expires, in milliseconds since the epoch. */
  readonly deadlineMs: number | undefined;
}

/** Returns undefined if the request needs the general path. */
export function parseStreamCall(exchange: HttpExchange): StreamCall | undefined {
  const { req, context } = exchange;
  const { headers } = req;
  const format = FORMATS.get(headers["content-type"]);
  if (format === undefined || req.method !== "POST") return undefined;
  const isConnect = context.protocol === "connect";
  // gRPC needs the trailers of HTTP/2.
  if (format === GRPC && req.httpVersionMajor < 2) return undefined;
  const requestEncoding = headers[isConnect ? "connect-content-encoding" : "grpc-encoding"] ?? "identity";
  if (requestEncoding !== "identity") return undefined;
  const accepted = headers[isConnect ? "connect-accept-encoding" : "grpc-accept-encoding"];
  const encoding = (isConnect ? listsGzip : acceptsGzip)(accepted?.toString()) ? "gzip" : undefined;
  const timeout = headers[isConnect ? "connect-timeout-ms" : "grpc-timeout"];
  if (timeout === undefined) return { exchange, format, encoding, deadlineMs: undefined };
  const timeoutMs = isConnect ? parseConnectTimeoutMs(timeout.toString()) : parseGrpcTimeoutMs(timeout.toString());
  if (timeoutMs === undefined || timeoutMs <= 0) return undefined;
  return { exchange, format, encoding, deadlineMs: toDeadlineMs(timeoutMs) };
}

/** Connect's own header lists names without weights and wildcards. Its Node.js client sends `gzip,br`. */
function listsGzip(accepted: string | undefined): boolean {
  return accepted?.split(",").some((name) => name.trim() === "gzip") === true;
}

export function writeStreamHead(
  { exchange: { res, context }, format, encoding }: StreamCall,
  hasFailed: boolean,
): void {
  const headers = ["content-type", format.contentType];
  if (encoding !== undefined) {
    headers.push(format.protocol === "connect" ? "connect-content-encoding" : "grpc-encoding", encoding);
  }
  headers.push(...buildCommonHeaders(context));
  if (!hasFailed) headers.push(...context.buildResponseHeaders());
  writeHead(res, 200, headers);
}

/** Writes the outcome of a stream in the form of its protocol, and ends the response. */
export function writeStreamEnd({ exchange: { res }, format }: StreamCall, error: ConnectError | undefined): void {
  if (format.protocol === "connect") {
    const text = JSON.stringify(endStreamToJson(new Headers(), error, undefined));
    res.end(envelop(endStreamFlag, Buffer.from(text)));
    return;
  }
  const trailer = setTrailerStatus(new Headers(), error);
  if (format.protocol === "grpc") {
    res.addTrailers(toNodeTrailers(trailer));
    res.end();
  } else res.end(envelop(trailerFlag, trailerSerialize(trailer)));
}

/** Parses a body of exactly one uncompressed message; returns undefined for any other. */
export function parseEnveloped(
  body: Buffer,
  { isBinary }: StreamFormat,
  readBinary: (bytes: Buffer) => Message | undefined,
  readJson: (text: string) => Message | undefined,
): Message | undefined {
  if (body.length < ENVELOPE_BYTES || body[0] !== 0 || body.readUInt32BE(1) !== body.length - ENVELOPE_BYTES) {
    return undefined;
  }
  const bytes = body.subarray(ENVELOPE_BYTES);
  return isBinary ? readBinary(bytes) : readJson(bytes.toString("latin1"));
}

/** Writes the prefix of a message into the bytes that were left free for it. */
export function fillEnvelope(bytes: Buffer): Buffer {
  bytes[0] = 0;
  bytes.writeUInt32BE(bytes.length - ENVELOPE_BYTES, 1);
  return bytes;
}

function envelop(flags: number, bytes: Uint8Array): Buffer {
  const prefix = Buffer.alloc(ENVELOPE_BYTES);
  prefix.writeUInt8(flags);
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}
