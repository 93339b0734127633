import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { acceptsGzip, COMPRESS_MIN_BYTES } from "./codec/compression.js";
import { NO_STORE_HEADERS } from "./request/cache-headers.js";
import {
  buildCommonHeaders,
  buildSharedHeaders,
  createGetHandler,
  type HeaderList,
  type HttpExchange,
  type HttpRoute,
  matchesIfNoneMatch,
  sendError,
  writeHead,
} from "./request/response.js";
import { noteSharedBody } from "./request/shared-body.js";

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

/** Documents by path. A dynamic document that throws is answered with INTERNAL. */
export type Documents = ReadonlyMap<string, StaticDocument | (() => DynamicDocument | Promise<DynamicDocument>)>;

/** Asynchronous, since compressing a large document would block the event loop. */
const gzipAsync = promisify<Buffer, Buffer>(gzip);
/** Caches, shared ones too, keep the document but revalidate it for each request, so that a new version is seen at once. */
const REVALIDATE_HEADERS: HeaderList = ["cache-control", "no-cache"];

/** Creates the routes of documents, by path. They are no operations, so that no rate limit applies. */
export function createDocumentRoutes(documents: Documents): Map<string, HttpRoute> {
  const routes = new Map<string, HttpRoute>();
  for (const [path, document] of documents) {
    const serve = typeof document === "function" ? createDynamicHandler(document) : createStaticHandler(document);
    const handle = createGetHandler(serve);
    routes.set(path, { operation: path, isRpc: false, isRateLimited: false, handle, reject: sendError });
  }
  return routes;
}

function createStaticHandler({ contentType, read, headers = [] }: StaticDocument): (exchange: HttpExchange) => void {
  const load = memoizeSuccess(async () => createLoadedDocument(await read(), contentType));
  async function serve(exchange: HttpExchange): Promise<void> {
    const { req, res, context } = exchange;
    const { body, etag, getGzipped } = await load();
    const isGzipped = getGzipped !== undefined && acceptsGzip(req.headers["accept-encoding"]);
    // A weak validator: it is the same for both encodings.
    const documentHeaders = [
      ...headers,
      ...REVALIDATE_HEADERS,
      "etag",
      `W/${etag}`,
      ...(getGzipped ? ["vary", "Accept-Encoding"] : []),
    ];
    context.code = "ok";
    if (matchesIfNoneMatch(req.headers["if-none-match"], etag)) {
      writeHead(res, 304, [...buildSharedHeaders(), ...documentHeaders]);
      res.end();
    } else if (isGzipped) {
      writeDocument(exchange, 200, await getGzipped(), buildSharedHeaders(), [
        "content-type",
        contentType,
        "content-encoding",
        "gzip",
        ...documentHeaders,
      ]);
    } else writeDocument(exchange, 200, body, buildSharedHeaders(), ["content-type", contentType, ...documentHeaders]);
  }
  return (exchange) => {
    serve(exchange).catch((error: unknown) => sendError(exchange, exchange.context.recordFailure(error)));
  };
}

interface LoadedDocument {
  readonly body: Buffer;
  readonly etag: string;
  /** Undefined if compression would not make it smaller. */
  readonly getGzipped: (() => Promise<Buffer>) | undefined;
}

function createLoadedDocument(body: Buffer, type: string): LoadedDocument {
  const isCompressible = body.length >= COMPRESS_MIN_BYTES && /^text\/|[/+](json|javascript|xml)\b/.test(type);
  return {
    body,
    etag: `"${createHash("sha256").update(body).digest("base64url")}"`,
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
  read: () => DynamicDocument | Promise<DynamicDocument>,
): (exchange: HttpExchange) => void {
  let text = "";
  let bytes = Buffer.alloc(0);
  /** Callers with the same document share its bytes. */
  function encode(body: string): Buffer {
    if (body !== text) {
      text = body;
      bytes = Buffer.from(body);
    }
    return bytes;
  }
  return (exchange) => {
    Promise.resolve()
      .then(read)
      .then(
        ({ status, contentType, body }) => {
          exchange.context.code = status < 400 ? "ok" : "unavailable";
          const headers = ["content-type", contentType, ...NO_STORE_HEADERS];
          writeDocument(exchange, status, encode(body), buildCommonHeaders(exchange.context), headers);
        },
        (error: unknown) => sendError(exchange, exchange.context.recordFailure(error)),
      );
  };
}

function writeDocument(
  { req, res }: HttpExchange,
  status: number,
  body: Buffer,
  commonHeaders: HeaderList,
  headers: HeaderList,
): void {
  writeHead(res, status, [...commonHeaders, "content-length", String(body.length), ...headers]);
  if (req.method === "HEAD") res.end();
  else {
    noteSharedBody(res, body.length);
    res.end(body);
  }
}
