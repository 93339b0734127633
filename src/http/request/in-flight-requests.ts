import type { EventEmitter } from "node:events";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { constants, type Http2ServerRequest, type Http2ServerResponse, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { OverloadManager } from "../admission/overload-manager.js";
import { type HttpRequest, type HttpResponse, RequestContext, type RequestContextOptions } from "./request-context.js";

/** How long a caller that has its response may continue to send the request. */
const LINGER_MS = 1000;

/** Counts the requests in progress. */
type RequestCounter = Pick<OverloadManager, "requestStarted" | "requestEnded">;

/** The requests whose responses are not complete. */
export class InFlightRequests {
  readonly #options: RequestContextOptions;
  readonly #overload: RequestCounter;
  readonly #openByConnection = new WeakMap<EventEmitter, RequestContext[]>();

  constructor(options: RequestContextOptions, overload: RequestCounter) {
    this.#overload = overload;
    this.#options = {
      ...options,
      log(entry, reason) {
        overload.requestEnded();
        options.log(entry, reason);
      },
    };
  }

  /**
   * Opens the context of a request, or takes over the one that its stream has. The context ends, and is logged, when
   * the response is sent or the caller is gone.
   */
  register(req: HttpRequest, res: HttpResponse, existing?: RequestContext): RequestContext {
    // The end of the response reports a broken connection; without a listener the error would end the process.
    res.on("error", ignoreError);
    if ("stream" in req) return this.#registerHttp2(req, res as Http2ServerResponse, existing);
    return this.#registerHttp1(req, res as ServerResponse);
  }

  /**
   * Opens the context of an HTTP/2 stream that no request exists for. If it falls back, `register` gets the same
   * context.
   */
  registerStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): RequestContext {
    const { session } = stream;
    const context = this.#openContext(headers, session?.socket);
    const open = this.#getOpenContexts(session ?? stream);
    open.push(context);
    stream.on("error", ignoreError);
    stream.on("close", () => {
      if (removeItem(open, context)) context.end(context.hasResponded && stream.rstCode === constants.NGHTTP2_NO_ERROR);
    });
    return context;
  }

  /** Returns the context of the latest request on an HTTP/1.1 connection whose response is not complete. */
  findPending(socket: Socket): RequestContext | undefined {
    return this.#openByConnection.get(socket)?.at(-1);
  }

  #registerHttp1(req: IncomingMessage, res: ServerResponse): RequestContext {
    // A request without a listener for errors keeps them to itself.
    const { socket } = req;
    const context = this.#openContext(req.headers, socket);
    context.res = res;
    const open = this.#getOpenContexts(socket);
    open.push(context);
    // "finish" is emitted for a destroyed connection with unsent bytes too.
    res.on("finish", () => {
      if (removeItem(open, context)) context.end(!socket.destroyed);
    });
    return context;
  }

  #registerHttp2(
    req: Http2ServerRequest,
    res: Http2ServerResponse,
    existing: RequestContext | undefined,
  ): RequestContext {
    req.on("error", ignoreError);
    const { stream } = req;
    const context = existing ?? this.#openContext(req.headers, req.socket);
    context.res = res;
    const open = this.#getOpenContexts(stream.session ?? stream);
    if (existing === undefined) open.push(context);
    function end(isFinished: boolean): void {
      if (removeItem(open, context)) context.end(isFinished);
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
  }

  #openContext(headers: IncomingHttpHeaders, socket: Socket | undefined): RequestContext {
    this.#overload.requestStarted();
    return new RequestContext(headers, socket, this.#options);
  }

  /**
   * Returns the open contexts of a connection. Its end ends them, whatever events their requests get: pipelined
   * HTTP/1.1 responses get none, nor do HTTP/2 streams with unread data.
   */
  #getOpenContexts(connection: EventEmitter): RequestContext[] {
    const existing = this.#openByConnection.get(connection);
    if (existing !== undefined) return existing;
    const open: RequestContext[] = [];
    this.#openByConnection.set(connection, open);
    connection.once("close", () => {
      for (const context of open.splice(0)) context.end(false);
    });
    return open;
  }
}

/**
 * Removes an item from a short list. Returns false if the list does not hold it.
 *
 * For items that come and go with every request on a long-lived connection: a Set would leave a chain of outgrown
 * tables that keep their former items alive until a full garbage collection.
 */
export function removeItem<T>(list: T[], item: T): boolean {
  const index = list.indexOf(item);
  if (index === -1) return false;
  // Not by copyWithin, which takes ten to forty times as long.
  for (let i = index + 1; i < list.length; i++) list[i - 1] = list[i] as T;
  list.pop();
  return true;
}

function ignoreError(): void {}
