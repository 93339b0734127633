import { hash } from "node:crypto";
import type { Message } from "@bufbuild/protobuf";
import { createRestJsonPrinter } from "../codec/json-printer.js";
import { memoizeFrozen } from "../codec/messages.js";
import { getOperation, getStreamOperation, type MountedService } from "../request/mounted-service.js";
import type { CallResponder } from "../request/request-context.js";
import {
  buildSuccessHeaders,
  createGetHandler,
  formatHeaderLines,
  type HttpExchange,
  type HttpRoute,
  JSON_CONTENT_TYPE,
  MIN_SHARED_BODY_BYTES,
  matchesIfNoneMatch,
  noteSharedBody,
  type PathHandler,
  sendError,
  trySendInOneWrite,
  writeHead,
} from "../request/response.js";
import { buildSharedHeaders, type HeaderList } from "../request/response-headers.js";
import { type GetRoute, readGetRoutes } from "./annotations.js";
import { createEventStreamHandler, type EventStreamOptions } from "./event-stream.js";
import { createQueryParser } from "./query-parser.js";

/** A JSON text with what its headers need. */
interface JsonBody {
  readonly text: string;
  /** The text in UTF-8, if it is long and sent repeatedly. */
  readonly bytes?: Buffer | undefined;
  /** Length of the text in UTF-8. */
  readonly byteLength: number;
  /** Strong validator, with its quotes, of a text that is sent repeatedly. */
  readonly etag: string | undefined;
}

const TYPE_HEADERS: HeaderList = ["content-type", JSON_CONTENT_TYPE];
const SHARED_HEADER_LINES = formatHeaderLines([...buildSharedHeaders(), ...TYPE_HEADERS]);

/** What operations added to the last response, and its lines: most responses have the same as the one before. */
let lastHeaders: { readonly list: HeaderList; readonly lines: string } = { list: [], lines: "" };

/**
 * Sends a JSON text with status 200, or its headers alone for HEAD. Sends 304 if the response is cacheable and the
 * caller has it already.
 * @param fastPath whether ordinary responses are sent in one write
 */
function sendJson(exchange: HttpExchange, body: JsonBody, fastPath: boolean): void {
  const { req, res, context } = exchange;
  const { isCacheable } = context;
  const etag = isCacheable ? body.etag : undefined;
  context.code = "ok";
  if (etag !== undefined && matchesIfNoneMatch(req.headers["if-none-match"], etag)) {
    writeHead(res, 304, [...buildSuccessHeaders(context), "etag", etag, ...context.buildResponseHeaders()]);
    res.end();
    return;
  }
  if (fastPath && isCacheable && trySendShared(exchange, body, etag)) return;
  writeHead(res, 200, [
    ...buildSuccessHeaders(context),
    ...TYPE_HEADERS,
    "content-length",
    String(body.byteLength),
    ...(etag === undefined ? [] : ["etag", etag]),
    ...context.buildResponseHeaders(),
  ]);
  const { text, byteLength, bytes } = body;
  if (req.method === "HEAD") res.end();
  else if (bytes !== undefined) {
    noteSharedBody(res, byteLength);
    res.end(bytes);
  } else res.end(text, isLatin1(body) ? "latin1" : "utf8");
}

/** Sends a response that shared caches may keep if a single write can do it. Otherwise returns false. */
function trySendShared({ res, context }: HttpExchange, body: JsonBody, etag: string | undefined): boolean {
  if ("stream" in res) return false;
  const { text, byteLength, bytes } = body;
  if (bytes === undefined && !isLatin1(body)) return false;
  const validator = etag === undefined ? "" : `etag: ${etag}\r\n`;
  const list = context.buildResponseHeaders();
  if (list !== lastHeaders.list) lastHeaders = { list, lines: formatHeaderLines(list) };
  const lines = `${SHARED_HEADER_LINES}content-length: ${byteLength}\r\n${validator}${lastHeaders.lines}`;
  if (!trySendInOneWrite(res, lines, bytes ?? text)) return false;
  if (bytes !== undefined) noteSharedBody(res, byteLength);
  return true;
}

/** If every character is one byte, the text needs no conversion. */
function isLatin1({ text, byteLength }: JsonBody): boolean {
  return byteLength === text.length;
}

/** Creates the routes, by path, of the methods that google.api.http serves under GET. */
export function createRestRoutes(
  services: readonly MountedService[],
  options: EventStreamOptions,
): Map<string, HttpRoute> {
  const routes = new Map<string, HttpRoute>();
  for (const mounted of services) {
    for (const route of readGetRoutes(mounted.service)) {
      const { path, method } = route;
      if (routes.has(path)) throw new Error(`two methods share GET ${path}`);
      const isStream = method.methodKind === "server_streaming";
      routes.set(path, {
        operation: `${method.parent.typeName}/${method.name}`,
        isRpc: false,
        isRateLimited: true,
        isStream,
        handle: isStream
          ? createEventStreamHandler(method, getStreamOperation(mounted, method.localName), options)
          : createUnaryHandler(mounted, route, options.fastPath),
        reject: sendError,
      });
    }
  }
  return routes;
}

/** @param fastPath whether plain queries are parsed without the general parser, and ordinary responses sent in one write */
function createUnaryHandler(
  mounted: MountedService,
  { method, responseBody }: GetRoute,
  fastPath: boolean,
): PathHandler {
  const operation = getOperation(mounted, method.localName);
  const parse = createQueryParser(method.input, { fastPath });
  const print = createRestJsonPrinter(method.output, responseBody);
  const write = memoizeFrozen((message, isMemoized) =>
    toJsonBody(print(message), !Object.isExtensible(message), isMemoized),
  );
  return createGetHandler((exchange, query) => {
    const call = new RestCall(exchange, write, fastPath);
    let request: Message;
    try {
      request = parse(query);
    } catch (error) {
      call.fail(error);
      return;
    }
    exchange.context.invoke(operation, request, undefined, call);
  });
}

class RestCall implements CallResponder {
  constructor(
    private readonly exchange: HttpExchange,
    private readonly write: (message: Message) => JsonBody,
    private readonly fastPath: boolean,
  ) {}

  succeed(message: Message): void {
    let body: JsonBody;
    try {
      body = this.write(message);
    } catch (error) {
      this.fail(error);
      return;
    }
    sendJson(this.exchange, body, this.fastPath);
  }

  fail(error: unknown): void {
    sendError(this.exchange, this.exchange.context.recordFailure(error));
  }
}

/** @param hasValidator whether callers can ask again with the hash of the text */
function toJsonBody(text: string, hasValidator: boolean, isMemoized: boolean): JsonBody {
  const byteLength = Buffer.byteLength(text);
  if (!hasValidator) return { text, byteLength, etag: undefined };
  const etag = `"${hash("sha256", text, "base64url")}"`;
  // Only texts that are sent repeatedly are encoded, and short ones are faster to send as part of the headers.
  const isEncoded = isMemoized && byteLength >= MIN_SHARED_BODY_BYTES;
  return { text, byteLength, etag, bytes: isEncoded ? Buffer.from(text) : undefined };
}
