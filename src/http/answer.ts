import { STATUS_CODES } from "node:http";
import { cors } from "@connectrpc/connect";
import type { ServiceError } from "../errors.js";
import type { Call, HttpRequest, HttpResponse } from "./call.js";
import { codeNameOf, headersOf, httpStatusOf, toErrorBody } from "./errors.js";

/** A request, the place for its answer, and its record. */
export interface Exchange {
  readonly req: HttpRequest;
  readonly res: HttpResponse;
  readonly call: Call;
}

/** Handles the requests to one path; `query` is what stands behind the `?`. */
export type PathHandler = (exchange: Exchange, query: string) => void;

const JSON_TYPE = "application/json; charset=utf-8";
const EXPOSED_HEADERS = ["X-Request-Id", "Retry-After", ...cors.exposedHeaders].join(", ");
const ALLOWED_HEADERS = [...cors.allowedHeaders, "X-Request-Id"].join(", ");

/** How long a browser may remember a preflight's answer; it never changes, and browsers cap this at two hours. */
const PREFLIGHT_SECONDS = "7200";

/** Headers of every answer on every protocol. */
export function commonHeaders(requestId: string): Record<string, string> {
  return {
    "x-request-id": requestId,
    "access-control-allow-origin": "*",
    "access-control-expose-headers": EXPOSED_HEADERS,
    "x-content-type-options": "nosniff",
  };
}

// Node's answers over HTTP/1.1 and HTTP/2 have the same methods under types that cannot be called as one.

export function writeHead(res: HttpResponse, status: number, headers: Record<string, string>): void {
  if ("stream" in res) res.writeHead(status, headers);
  else res.writeHead(status, headers);
}

/** False where the caller has to read first; "drain" then says when to go on. */
export function writeChunk(res: HttpResponse, chunk: Uint8Array): boolean {
  return "stream" in res ? res.write(chunk) : res.write(chunk);
}

/** Answers with a JSON text, or to HEAD with its headers alone. */
export function answerJson(
  { req, res, call }: Exchange,
  status: number,
  body: string,
  headers?: Readonly<Record<string, string>>,
): void {
  writeHead(res, status, { ...jsonHeaders(call.requestId, body), ...headers });
  if (req.method === "HEAD") res.end();
  else res.end(body);
}

/** Answers with the JSON form of an error; `status` where it is another than the reason's own. */
export function answerError(
  exchange: Exchange,
  error: ServiceError,
  { status = httpStatusOf(error.reason), headers = {} }: { status?: number; headers?: Record<string, string> } = {},
): void {
  exchange.call.code = codeNameOf(error.reason);
  const all = { "cache-control": "no-store", ...headersOf(error), ...headers };
  answerJson(exchange, status, toErrorBody(error), all);
}

/** Answers OPTIONS, which is above all what browsers ask before a request to another origin. */
export function answerOptions({ res, call }: Exchange, methods: string): void {
  call.code = "ok";
  writeHead(res, 204, {
    ...commonHeaders(call.requestId),
    allow: methods,
    "access-control-allow-methods": methods,
    "access-control-allow-headers": ALLOWED_HEADERS,
    "access-control-max-age": PREFLIGHT_SECONDS,
  });
  res.end();
}

/** A whole HTTP/1.1 answer as text, for a connection on which no request could be made out; it ends the connection. */
export function rawErrorAnswer(
  requestId: string,
  status: number,
  error: ServiceError,
  headers?: Readonly<Record<string, string>>,
): string {
  const body = toErrorBody(error);
  const all = { ...jsonHeaders(requestId, body), "cache-control": "no-store", connection: "close", ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${lines.join("")}\r\n${body}`;
}

function jsonHeaders(requestId: string, body: string): Record<string, string> {
  return {
    ...commonHeaders(requestId),
    "content-type": JSON_TYPE,
    "content-length": String(Buffer.byteLength(body)),
  };
}
