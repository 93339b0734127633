import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { acceptsGzip, COMPRESS_MIN_BYTES } from "./codec/compression.js";
import { NO_STORE_HEADERS } from "./request/cache-headers.js";
import {
  buildCommonHeaders,
  createGetHandler,
  type HeaderList,
  type HttpExchange,
  matchesIfNoneMatch,
  type PathHandler,
  sendError,
  writeHead,
} from "./request/response.js";

/** The same bytes for whoever asks, such as a page or what belongs to it. */
export interface StaticDocument {
  /** Media type, with its charset where it is text. */
  readonly contentType: string;
  /** Gives the bytes. Called when they are first asked for, and again only where it failed. */
  read(): Promise<Buffer>;
  /** Names and values in turn, such as a Content-Security-Policy. */
  readonly headers?: HeaderList;
}

/** What a path says of this moment, such as whether the service is ready. Nobody may keep it. */
export interface DynamicDocument {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** What stands at paths beside the operations. A report that fails is answered as INTERNAL. */
export type Documents = ReadonlyMap<string, StaticDocument | (() => DynamicDocument | Promise<DynamicDocument>)>;

/** Not in one go: a large one would hold up everybody. */
const gzipAsync = promisify<Buffer, Buffer>(gzip);
/** May be kept, and is asked for again each time: what comes with the next version is seen at once. */
const REVALIDATE_HEADERS: HeaderList = ["cache-control", "no-cache"];

/** Handlers, by path, for documents. They are no operations: their callers are not counted. */
export function createDocumentHandlers(documents: Documents): Map<string, PathHandler> {
  const handlers = new Map<string, PathHandler>();
  for (const [path, document] of documents) {
    const answer = typeof document === "function" ? createDynamicHandler(document) : createStaticHandler(document);
    const handler = createGetHandler(answer);
    handlers.set(path, (exchange, query) => {
      exchange.context.operation = path;
      handler(exchange, query);
    });
  }
  return handlers;
}

function createStaticHandler({ contentType, read, headers = [] }: StaticDocument): (exchange: HttpExchange) => void {
  const load = memoizeSuccess(async () => createLoadedDocument(await read(), contentType));
  async function give(exchange: HttpExchange): Promise<void> {
    const { req, res, context } = exchange;
    const { body, etag, getGzipped } = await load();
    const isGzipped = getGzipped !== undefined && acceptsGzip(req.headers["accept-encoding"]);
    // Weak: compressed or not, it is the same.
    const common = [
      ...headers,
      ...REVALIDATE_HEADERS,
      "etag",
      `W/${etag}`,
      ...(getGzipped ? ["vary", "Accept-Encoding"] : []),
    ];
    context.code = "ok";
    if (matchesIfNoneMatch(req.headers["if-none-match"], etag)) {
      writeHead(res, 304, [...buildCommonHeaders(context), ...common]);
      res.end();
    } else if (isGzipped) {
      writeDocument(exchange, 200, await getGzipped(), [
        "content-type",
        contentType,
        "content-encoding",
        "gzip",
        ...common,
      ]);
    } else writeDocument(exchange, 200, body, ["content-type", contentType, ...common]);
  }
  return (exchange) => {
    give(exchange).catch((error: unknown) => sendError(exchange, exchange.context.recordFailure(error)));
  };
}

/** A document that has been read. */
interface LoadedDocument {
  readonly body: Buffer;
  readonly etag: string;
  /** Undefined: it would not be smaller. */
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

/** Does it at the first call and gives that to all others, unless it fails. */
function memoizeSuccess<T>(act: () => Promise<T>): () => Promise<T> {
  let done: Promise<T> | undefined;
  return () => {
    done ??= act().catch((error: unknown) => {
      done = undefined;
      throw error;
    });
    return done;
  };
}

function createDynamicHandler(
  report: () => DynamicDocument | Promise<DynamicDocument>,
): (exchange: HttpExchange) => void {
  return (exchange) => {
    Promise.resolve()
      .then(report)
      .then(
        ({ status, contentType, body: text }) => {
          exchange.context.code = status < 400 ? "ok" : "unavailable";
          writeDocument(exchange, status, Buffer.from(text), ["content-type", contentType, ...NO_STORE_HEADERS]);
        },
        (error: unknown) => sendError(exchange, exchange.context.recordFailure(error)),
      );
  };
}

function writeDocument({ req, res, context }: HttpExchange, status: number, body: Buffer, headers: HeaderList): void {
  writeHead(res, status, [...buildCommonHeaders(context), "content-length", String(body.length), ...headers]);
  if (req.method === "HEAD") res.end();
  else res.end(body);
}
