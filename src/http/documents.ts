import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { acceptsGzip, COMPRESS_MIN_BYTES } from "./codec/gzip.js";
import type { HttpRequest } from "./request/request-context.js";
import {
  createGetHandler,
  createPostHandler,
  type HttpExchange,
  type HttpRoute,
  matchesIfNoneMatch,
  noteSharedBody,
  type PathHandler,
  sendError,
  writeHead,
} from "./request/response.js";
import {
  buildCommonHeaders,
  buildSharedHeaders,
  type HeaderList,
  NO_STORE_HEADERS,
} from "./request/response-headers.js";

/** A document with the same bytes for every caller, such as a page or its assets. */
export interface StaticDocument {
  /** Media type, with its charset if it is text. */
  readonly contentType: string;
  /** Reads the bytes. Called for the first request, and again only after a failure. */
  read(): Promise<Buffer>;
  /** Headers such as Content-Security-Policy: names and values alternate. */
  readonly headers?: HeaderList;
}

/** The present content of a path, such as whether the service is ready. It is never cached. */
export interface DynamicDocument {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** A path that does something, and therefore serves POST alone. Cross-site requests are for `post` to refuse. */
export interface Action {
  /** Does it. The body of the request is not read. */
  post(request: HttpRequest): Promise<DynamicDocument>;
}

export type Document = StaticDocument | Action | (() => DynamicDocument | Promise<DynamicDocument>);

/** Documents by path. A dynamic document or an action that throws is answered with INTERNAL. */
export type Documents = ReadonlyMap<string, Document>;

/** Asynchronous, since compressing a large document would block the event loop. */
const gzipAsync = promisify<Buffer, Buffer>(gzip);
/**
 * Caches, shared ones too, keep the document but revalidate it for each request, so that a new version is seen at once.
 */
const REVALIDATE_HEADERS: HeaderList = ["cache-control", "no-cache"];

/** Creates the routes of documents, by path. They are no operations, so that no rate limit applies. */
export function createDocumentRoutes(documents: Documents): Map<string, HttpRoute> {
  const routes = new Map<string, HttpRoute>();
  for (const [path, document] of documents) {
    const handle = createDocumentHandler(document);
    routes.set(path, { operation: path, isRpc: false, isRateLimited: false, handle, reject: sendError });
  }
  return routes;
}

function createDocumentHandler(document: Document): PathHandler {
  if (typeof document === "function") return createGetHandler(createDynamicHandler(document));
  if ("post" in document) return createPostHandler(createDynamicHandler((request) => document.post(request)));
  return createGetHandler(createStaticHandler(document));
}

function createStaticHandler({ contentType, read, headers = [] }: StaticDocument): (exchange: HttpExchange) => void {
  const load = memoizeSuccess(async () => createLoadedDocument(await read(), contentType));
  return createHandler(async (exchange) => {
    const { req, res, context } = exchange;
    const { body, etag, getGzipped } = await load();
    // A weak validator: it is the same for both encodings.
    const documentHeaders = [...headers, ...REVALIDATE_HEADERS, "etag", `W/${etag}`];
    if (getGzipped !== undefined) documentHeaders.push("vary", "Accept-Encoding");
    context.code = "ok";
    if (matchesIfNoneMatch(req.headers["if-none-match"], etag)) {
      writeHead(res, 304, [...buildSharedHeaders(), ...documentHeaders]);
      res.end();
      return;
    }
    const isGzipped = getGzipped !== undefined && acceptsGzip(req.headers["accept-encoding"]);
    const bytes = isGzipped ? await getGzipped() : body;
    const encodingHeaders = isGzipped ? ["content-encoding", "gzip"] : [];
    const contentHeaders = ["content-length", String(bytes.length), "content-type", contentType, ...encodingHeaders];
    writeDocument(exchange, 200, [...buildSharedHeaders(), ...contentHeaders, ...documentHeaders], bytes);
  });
}

function createLoadedDocument(body: Buffer, type: string) {
  const isCompressible = body.length >= COMPRESS_MIN_BYTES && /^text\/|[/+](json|javascript|xml)\b/.test(type);
  return {
    body,
    etag: `"${createHash("sha256").update(body).digest("base64url")}"`,
    /** Undefined if compression would not make it smaller. */
    getGzipped: isCompressible ? memoizeSuccess(() => gzipAsync(body)) : undefined,
  };
}

/** Memoizes the result of a function; the call after a failure runs it again. */
function memoizeSuccess<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined;
  return () => {
    loading ??= load().catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    return loading;
  };
}

function createDynamicHandler(
  read: (request: HttpRequest) => DynamicDocument | Promise<DynamicDocument>,
): (exchange: HttpExchange) => void {
  /** The latest document: callers who get the same share its bytes. */
  let latest = { body: "", bytes: Buffer.alloc(0) };
  return createHandler(async (exchange) => {
    const { status, contentType, body } = await read(exchange.req);
    if (body !== latest.body) latest = { body, bytes: Buffer.from(body) };
    const { bytes } = latest;
    exchange.context.code = status < 400 ? "ok" : "unavailable";
    const contentHeaders = ["content-length", String(bytes.length), "content-type", contentType];
    const headers = [...buildCommonHeaders(exchange.context), ...contentHeaders, ...NO_STORE_HEADERS];
    writeDocument(exchange, status, headers, bytes);
  });
}

/** Returns a handler that answers with an error if `serve` fails. */
function createHandler(serve: (exchange: HttpExchange) => Promise<void>): (exchange: HttpExchange) => void {
  return (exchange) => {
    serve(exchange).catch((error: unknown) => sendError(exchange, exchange.context.recordFailure(error)));
  };
}

function writeDocument({ req, res }: HttpExchange, status: number, headers: HeaderList, body: Buffer): void {
  writeHead(res, status, headers);
  if (req.method === "HEAD") {
    res.end();
    return;
  }
  noteSharedBody(res, body.length);
  res.end(body);
}
