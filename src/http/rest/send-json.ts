import {
  buildSuccessHeaders,
  type HttpExchange,
  JSON_CONTENT_TYPE,
  matchesIfNoneMatch,
  noteSharedBody,
  writeHead,
} from "../request/response.js";
import { buildSharedHeaders, type HeaderList } from "../request/response-headers.js";
import { formatHeaderLines, trySendInOneWrite } from "../request/single-write.js";

/** A JSON text with what its headers need. */
export interface JsonBody {
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
export function sendJson(exchange: HttpExchange, body: JsonBody, fastPath: boolean): void {
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
    ...["content-length", String(body.byteLength)],
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
