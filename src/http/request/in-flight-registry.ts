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
} from "./request-context.js";

/** The requests whose responses are not complete. */
export interface InFlightRegistry {
  /**
   * Opens the context of a request, or takes over the one that its stream has. The context ends, and is logged, when
   * the response is sent or the caller is gone.
   */
  register(req: HttpRequest, res: HttpResponse, existing?: HttpRequestContext): RequestContext;
  /**
   * Opens the context of an HTTP/2 stream that no request exists for. If it falls back, `register` gets the same
   * context.
   */
  registerStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): HttpRequestContext;
  /** Returns the context of the latest request on an HTTP/1.1 connection whose response is not complete. */
  findPending(socket: Socket): RequestContext | undefined;
  /** Logs input that is not valid HTTP, so that no request exists; `errorCode` is the code of the protocol error. */
  logRejected(requestId: string, reason: ErrorReason, errorCode: string): void;
  /** Returns the number of requests in flight. */
  count(): number;
}

/** How long a caller that has its response may continue to send the request. */
const LINGER_MS = 1000;

export function createInFlightRegistry(options: RequestContextOptions): InFlightRegistry {
  let count = 0;
  const countedOptions: RequestContextOptions = {
    ...options,
    log(line, reason) {
      count -= 1;
      options.log(line, reason);
    },
  };
  function openContext(headers: IncomingHttpHeaders, socket: Socket | undefined): HttpRequestContext {
    count += 1;
    return new HttpRequestContext(headers, socket, countedOptions);
  }
  const openByConnection = new WeakMap<EventEmitter, HttpRequestContext[]>();

  // The end of a connection must end its requests, whatever events they get: pipelined HTTP/1.1 responses get none, nor
  // do HTTP/2 streams with unread data.
  function getOpenContexts(connection: EventEmitter): HttpRequestContext[] {
    const existing = openByConnection.get(connection);
    if (existing !== undefined) return existing;
    const open: HttpRequestContext[] = [];
    openByConnection.set(connection, open);
    connection.once("close", () => {
      for (const context of open.splice(0)) context.end(false);
    });
    return open;
  }

  return {
    register(req, res, existing) {
      res.on("error", ignoreError);
      // Over HTTP/1.1 a request without this listener keeps its errors to itself.
      if ("stream" in req) req.on("error", ignoreError);
      else {
        const { socket } = req;
        const context = openContext(req.headers, socket);
        context.res = res;
        const open = getOpenContexts(socket);
        open.push(context);
        // "finish" is emitted for a destroyed connection with unsent bytes too.
        res.on("finish", () => {
          if (removeItem(open, context)) context.end(!socket.destroyed);
        });
        return context;
      }
      const { stream } = req;
      const context = existing ?? openContext(req.headers, req.socket);
      context.res = res;
      const open = getOpenContexts(stream.session ?? stream);
      if (existing === undefined) open.push(context);
      function end(finished: boolean): void {
        if (removeItem(open, context)) context.end(finished);
      }
      // A response to HEAD emits no "finish".
      const isHead = req.method === "HEAD";
      stream.once("close", () => end(isHead && res.writableEnded && stream.rstCode === constants.NGHTTP2_NO_ERROR));
      stream.once("finish", () => {
        // A stream that the caller resets emits "finish" too.
        if (res.writableEnded && stream.rstCode === constants.NGHTTP2_NO_ERROR) end(true);
        if (stream.endAfterHeaders || stream.readableEnded) return;
        // The remainder of the request is discarded. Closing the stream at once would drop the trailers.
        stream.resume();
        const linger = setTimeout(() => stream.close(), LINGER_MS).unref();
        stream.once("close", () => clearTimeout(linger));
      });
      return context;
    },
    registerStream(stream, headers) {
      const { session } = stream;
      const context = openContext(headers, session?.socket);
      const open = getOpenContexts(session ?? stream);
      open.push(context);
      stream.on("error", ignoreError);
      stream.on("close", () => {
        if (removeItem(open, context))
          context.end(context.hasResponded && stream.rstCode === constants.NGHTTP2_NO_ERROR);
      });
      return context;
    },
    findPending(socket) {
      return openByConnection.get(socket)?.at(-1);
    },
    logRejected(requestId, reason, errorCode) {
      options.log(
        { requestId, protocol: "rest", operation: "", code: toCodeName(reason), durationMs: 0, fields: { errorCode } },
        reason,
      );
    },
    count: () => count,
  };
}

// The end of the response reports a broken connection; without a listener the error would end the process.
function ignoreError(): void {}
