import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { ServiceError } from "../errors.js";
import { NO_STORE } from "./request/cache-headers.js";
import {
  answerError,
  answerOptions,
  commonHeaders,
  type Exchange,
  type HeaderList,
  hasCurrent,
  type PathHandler,
  writeHead,
} from "./request/response.js";

/** The same bytes for whoever asks, such as a page or what belongs to it. */
export interface FixedDocument {
  /** Media type, with its charset where it is text. */
  readonly type: string;
  /** Gives the bytes. Called when they are first asked for, and again only where it failed. */
  read(): Promise<Buffer>;
  /** Names and values in turn, such as a Content-Security-Policy. */
  readonly headers?: HeaderList;
}

/** What a path says of this moment, such as whether the service is ready. Nobody may keep it. */
export interface Report {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

/** What stands at paths beside the operations. A report that fails is answered as INTERNAL. */
export type Documents = ReadonlyMap<string, FixedDocument | (() => Report | Promise<Report>)>;

const METHODS = "GET, HEAD, OPTIONS";
/** Not in one go: a large one would hold up everybody. */
const compress = promisify<Buffer, Buffer>(gzip);
/** Smaller ones do not shrink by what it takes to say that they are compressed. */
const COMPRESS_MIN_BYTES = 1024;
/** May be kept, and is asked for again each time: what comes with the next version is seen at once. */
const REVALIDATE: HeaderList = ["cache-control", "no-cache"];

/** Handlers, by path, for documents. They are no operations: their callers are not counted. */
export function createDocumentHandlers(documents: Documents): Map<string, PathHandler> {
  const handlers = new Map<string, PathHandler>();
  for (const [path, document] of documents) {
    const answer = typeof document === "function" ? createReporter(document) : createGiver(document);
    handlers.set(path, (exchange) => {
      const { req, call } = exchange;
      call.operation = path;
      if (req.method === "GET" || req.method === "HEAD") answer(exchange);
      else if (req.method === "OPTIONS") answerOptions(exchange, METHODS);
      else {
        const error = new ServiceError("METHOD_NOT_ALLOWED", `the method must be one of ${METHODS}`);
        answerError(exchange, error, { headers: ["allow", METHODS] });
      }
    });
  }
  return handlers;
}

function createGiver({ type, read, headers = [] }: FixedDocument): (exchange: Exchange) => void {
  const load = once(async () => createGiven(await read(), type));
  async function give(exchange: Exchange): Promise<void> {
    const { req, res, call } = exchange;
    const { body, etag, gzipped } = await load();
    const isGzipped = gzipped !== undefined && takesGzip(req.headers["accept-encoding"]);
    // Weak: compressed or not, it is the same.
    const common = [...headers, ...REVALIDATE, "etag", `W/${etag}`, ...(gzipped ? ["vary", "Accept-Encoding"] : [])];
    call.code = "ok";
    if (hasCurrent(req.headers["if-none-match"], etag)) {
      writeHead(res, 304, [...commonHeaders(call), ...common]);
      res.end();
    } else if (isGzipped) {
      write(exchange, 200, await gzipped(), ["content-type", type, "content-encoding", "gzip", ...common]);
    } else write(exchange, 200, body, ["content-type", type, ...common]);
  }
  return (exchange) => {
    give(exchange).catch((error: unknown) => answerError(exchange, exchange.call.fail(error)));
  };
}

/** A document that has been read. */
interface Given {
  readonly body: Buffer;
  readonly etag: string;
  /** Undefined: it would not be smaller. */
  readonly gzipped: (() => Promise<Buffer>) | undefined;
}

function createGiven(body: Buffer, type: string): Given {
  const isCompressible = body.length >= COMPRESS_MIN_BYTES && /^text\/|[/+](json|javascript|xml)\b/.test(type);
  return {
    body,
    etag: `"${createHash("sha256").update(body).digest("base64url")}"`,
    gzipped: isCompressible ? once(() => compress(body)) : undefined,
  };
}

/** Does it at the first call and gives that to all others, unless it fails. */
function once<T>(act: () => Promise<T>): () => Promise<T> {
  let done: Promise<T> | undefined;
  return () => {
    done ??= act().catch((error: unknown) => {
      done = undefined;
      throw error;
    });
    return done;
  };
}

function createReporter(report: () => Report | Promise<Report>): (exchange: Exchange) => void {
  return (exchange) => {
    Promise.resolve()
      .then(report)
      .then(
        ({ status, type, text }) => {
          exchange.call.code = status < 400 ? "ok" : "unavailable";
          write(exchange, status, Buffer.from(text), ["content-type", type, ...NO_STORE]);
        },
        (error: unknown) => answerError(exchange, exchange.call.fail(error)),
      );
  };
}

function write({ req, res, call }: Exchange, status: number, body: Buffer, headers: HeaderList): void {
  writeHead(res, status, [...commonHeaders(call), "content-length", String(body.length), ...headers]);
  if (req.method === "HEAD") res.end();
  else res.end(body);
}

/** Whether Accept-Encoding names gzip, or anything, and not with a weight of nothing. */
function takesGzip(accepted: string | string[] | undefined): boolean {
  const weights = new Map<string, boolean>();
  for (const each of String(accepted ?? "").split(",")) {
    const [coding = "", ...parameters] = each.split(";").map((part) => part.trim().toLowerCase());
    weights.set(coding, !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter)));
  }
  return weights.get("gzip") ?? weights.get("*") ?? false;
}
