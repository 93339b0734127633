import type { EventEmitter } from "node:events";
import type { IncomingHttpHeaders } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { ErrorReason } from "../../errors.js";
import { toCodeName } from "./error-mapping.js";
import { removeItem } from "./remove-item.js";
import {
  type HttpRequest,
  HttpRequestContext,
  type HttpResponse,
  type RequestContext,
  type RequestContextOptions,
  type StreamRequestContext,
} from "./request-context.js";

/** The calls that are in progress. */
export interface InFlightRegistry {
  /** Starts the record of a request. It ends, with its log line, when the answer is out or the caller gone. */
  register(req: HttpRequest, res: HttpResponse, known?: StreamRequestContext): RequestContext;
  /** The same for a stream of HTTP/2. Where a request is made of it later, that is opened with the record known. */
  registerStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): StreamRequestContext;
  /** The last request opened on an HTTP/1.1 connection whose answer is not out yet. */
  findPending(socket: Socket): RequestContext | undefined;
  /** Logs a request that never became one, because its bytes are no HTTP; `errorCode` says what is wrong with them. */
  logRejected(requestId: string, reason: ErrorReason, errorCode: string): void;
  /** How many are in progress. */
  count(): number;
}

/** How long a caller who has the answer may go on with the request. */
const LINGER_MS = 1000;

export function createInFlightRegistry(options: RequestContextOptions): InFlightRegistry {
  let count = 0;
  const counted: RequestContextOptions = {
    ...options,
    log(line, reason) {
      count -= 1;
      options.log(line, reason);
    },
  };
  function begin(headers: IncomingHttpHeaders, socket: Socket | undefined): HttpRequestContext {
    count += 1;
    return new HttpRequestContext(headers, socket, counted);
  }
  const openByConnection = new WeakMap<EventEmitter, HttpRequestContext[]>();

  // The end of a connection must end its calls whatever their own events say: HTTP/1.1 answers that wait in line are
  // told nothing then, nor are HTTP/2 streams with unread data.
  function openOn(connection: EventEmitter): HttpRequestContext[] {
    const known = openByConnection.get(connection);
    if (known !== undefined) return known;
    const open: HttpRequestContext[] = [];
    openByConnection.set(connection, open);
    connection.once("close", () => {
      for (const call of open.splice(0)) call.end(false);
    });
    return open;
  }

  return {
    register(req, res, known) {
      req.on("error", ignoreError);
      res.on("error", ignoreError);
      if (!("stream" in req)) {
        const { socket } = req;
        const call = begin(req.headers, socket);
        call.res = res;
        const open = openOn(socket);
        open.push(call);
        // What a connection that is cut leaves unsent finishes too.
        res.on("finish", () => {
          if (removeItem(open, call)) call.end(!socket.destroyed);
        });
        return call;
      }
      const { stream } = req;
      const call = known ?? begin(req.headers, req.socket);
      call.res = res;
      const open = openOn(stream.session ?? stream);
      if (known === undefined) open.push(call);
      function end(finished: boolean): void {
        if (removeItem(open, call)) call.end(finished);
      }
      // The answer to HEAD ends without a "finish".
      const isHead = req.method === "HEAD";
      stream.once("close", () => end(isHead && res.writableEnded && stream.rstCode === constants.NGHTTP2_NO_ERROR));
      stream.once("finish", () => {
        // A stream that its caller resets is finished too.
        if (res.writableEnded && stream.rstCode === constants.NGHTTP2_NO_ERROR) end(true);
        if (stream.endAfterHeaders || stream.readableEnded) return;
        // What the caller still sends is of no use to anyone, but to stop it at once would stop our trailers too.
        stream.resume();
        const linger = setTimeout(() => stream.close(), LINGER_MS).unref();
        stream.once("close", () => clearTimeout(linger));
      });
      return call;
    },
    registerStream(stream, headers) {
      const { session } = stream;
      const call = begin(headers, session?.socket);
      const open = openOn(session ?? stream);
      open.push(call);
      stream.on("error", ignoreError);
      stream.on("close", () => {
        if (removeItem(open, call)) call.end(call.hasResponded && stream.rstCode === constants.NGHTTP2_NO_ERROR);
      });
      return call;
    },
    findPending(socket) {
      return openByConnection.get(socket)?.at(-1);
    },
    logRejected(requestId, reason, errorCode) {
      options.log(
        { requestId, protocol: "rest", operation: "", code: toCodeName(reason), durationMs: 0, errorCode },
        reason,
      );
    },
    count: () => count,
  };
}

// A connection that breaks shows in the answer's own end; without a listener it would end the process.
function ignoreError(): void {}
