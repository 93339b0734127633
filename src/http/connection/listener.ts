import type { EventEmitter } from "node:events";
import { createServer as createHttp1Server, type Server } from "node:http";
import {
  createServer as createHttp2Server,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { Connection, type OverloadManager } from "../admission/overload-manager.js";
import { readBuffered } from "../request/body.js";
import { identifyCaller } from "../request/caller.js";
import type { HttpRequest, HttpResponse } from "../request/request-context.js";
import { shutDownGracefully } from "./graceful-shutdown.js";
import type { HttpLimits } from "./http-limits.js";
import { Http1Server, type HttpProtocolError } from "./http1-server.js";
import { Http2Connection, SESSION_ERROR_CODES } from "./http2-connection.js";
import { deferSessionEnd, grantContinue, serveInTurn } from "./http2-session.js";

/** How long a connection is silent before TCP keep-alive probes its peer. */
const TCP_KEEP_ALIVE_DELAY_MS = 60_000;

/** Interval of the timeout checks of HTTP/1.1 connections. */
const TIMEOUT_CHECK_INTERVAL_MS = 1000;

/** The first bytes of every HTTP/2 connection (RFC 9113 3.4); no HTTP/1.1 request begins with them. */
const HTTP2_PREFACE_START = "PRI";

/** Errors of HTTP/2 sessions that are caused by their input, not by their end. */
const REPORTED_SESSION_ERRORS: ReadonlySet<string | undefined> = new Set([
  "ERR_HTTP2_ERROR",
  "ERR_HTTP2_TOO_MANY_INVALID_FRAMES",
  ...SESSION_ERROR_CODES,
]);

export interface HttpSocketListenerOptions {
  readonly host: string;
  readonly port: number;
  readonly limits: HttpLimits;
  readonly overload: OverloadManager;
  onRequest(req: HttpRequest, res: HttpResponse): void;
  /**
   * Begins an HTTP/2 stream below Node's requests and responses and returns the work of its turn, or returns undefined.
   * If it returns undefined, or calls `fallBack` later, the stream reaches `onRequest`.
   */
  onStream(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    rawHeaders: readonly string[],
    fallBack: () => void,
  ): (() => void) | undefined;
  /**
   * Called once for a connection whose input is invalid or late, and which ends. Over HTTP/1.1 it returns the response.
   */
  onProtocolError(protocolError: HttpProtocolError, socket: Socket): string;
  /** Returns the identity of the caller of a request, given the address of its peer. */
  identifyCaller(address: string | undefined, headers: IncomingHttpHeaders): string;
}

/** The arguments of Node's "stream" event. */
type StreamEvent = [ServerHttp2Stream, IncomingHttpHeaders, flags: number, rawHeaders: readonly string[]];

/** Listens for HTTP/1.1 and for cleartext HTTP/2 with prior knowledge on one port. */
export class HttpSocketListener {
  readonly #options: HttpSocketListenerOptions;
  readonly #http1: Server;
  readonly #http2: Http2Server;
  readonly #http1Server: Http1Server;
  /** Listeners of Node.js: one serves HTTP/1.1 on a connection, the other turns an HTTP/2 stream into a request. */
  readonly #acceptHttp1: (socket: Socket) => void;
  readonly #emitRequest: (...event: StreamEvent) => void;
  #accepted = 0;
  #closed: Promise<void> | undefined;

  constructor(options: HttpSocketListenerOptions) {
    this.#options = options;
    this.#http1 = createHttp1(options.limits);
    this.#http2 = createHttp2(options.limits);
    // The HTTP/1.1 server listens: its timeouts run only then. It gets connections back that are known to be HTTP/1.1.
    this.#acceptHttp1 = takeListener(this.#http1, "connection").bind(this.#http1);
    this.#http1.on("connection", (socket: Socket) => this.#accept(socket));
    this.#http1Server = new Http1Server(this.#http1, options);
    const { onRequest, onProtocolError } = options;
    this.#http2.on("request", onRequest);
    // Node.js has it once there is a listener for requests. It gets the streams that no fast path serves.
    this.#emitRequest = takeListener(this.#http2, "stream").bind(this.#http2);
    this.#http2.on("connect", onRequest);
    this.#http2.on("checkExpectation", onRequest);
    this.#http2.on("checkContinue", (_req, res) => grantContinue(res)).on("checkContinue", onRequest);
    this.#http2.on("sessionError", ({ code = "" }: NodeJS.ErrnoException, session) => {
      if (REPORTED_SESSION_ERRORS.has(code)) onProtocolError({ code, rawPacket: Buffer.alloc(0) }, session.socket);
    });
  }

  /** Starts to accept connections. Rejects if the address is not available. */
  listen(): Promise<AddressInfo> {
    const http1 = this.#http1;
    const { host, port, limits } = this.#options;
    return new Promise((resolve, reject) => {
      http1.once("error", reject);
      http1.listen({ host, port, backlog: limits.acceptQueue }, () => {
        http1.off("error", reject);
        // A connection that cannot be accepted, for example for lack of file descriptors, must not end the process.
        http1.on("error", () => {});
        resolve(http1.address() as AddressInfo);
      });
    });
  }

  /**
   * Accepts no more connections and requests, waits up to `graceMs` for those in progress, then closes what is left.
   */
  close(graceMs: number): Promise<void> {
    if (this.#closed === undefined) {
      this.#http1Server.drain();
      this.#closed = shutDownGracefully(this.#http1, this.#options.overload, () => this.#accepted, graceMs);
    }
    return this.#closed;
  }

  #accept(socket: Socket): void {
    this.#accepted += 1;
    this.#options.overload.eventLoop.noteAccepted();
    const connection = new Connection(socket, identifyCaller(socket.remoteAddress, undefined));
    const { overload } = this.#options;
    if (!overload.tryAddConnection(connection)) return;
    sniffProtocol(socket, this.#options.limits.headersMs, (isHttp2, start) => {
      if (isHttp2) {
        overload.reads.beginSession(connection, start.length, () => this.#startSession(connection));
        return;
      }
      overload.reads.remove(connection);
      this.#acceptHttp1(socket);
      connection.protocol = this.#http1Server.adopt(connection, start);
    });
  }

  #startSession(connection: Connection): void {
    const { socket } = connection;
    const { limits, overload } = this.#options;
    // Sockets of an HTTP/1.1 server may be half-open, which would hide from HTTP/2 that the caller is gone.
    socket.allowHalfOpen = false;
    const adopt = (session: ServerHttp2Session): void => {
      deferSessionEnd(session);
      const protocol = new Http2Connection(session, connection, limits, overload);
      connection.protocol = protocol;
      if (this.#closed !== undefined) protocol.closeGracefully();
      // The headers in their flat form are not in Node's types.
      session.on("stream", (stream, headers, flags, ...more: string[][]) =>
        this.#onStream(protocol, [stream, headers, flags, more[0] ?? []]),
      );
    };
    this.#http2.once("session", adopt);
    this.#http2.emit("connection", socket);
    this.#http2.off("session", adopt);
  }

  #onStream(connection: Http2Connection, event: StreamEvent): void {
    const [stream, headers, , rawHeaders] = event;
    const { identifyCaller, onStream, overload } = this.#options;
    const caller = identifyCaller(connection.address, headers);
    if (!connection.admit(stream, caller)) {
      // A stream that is not served has no other listener.
      stream.on("error", ignoreError);
      return;
    }
    const serve = (): void => this.#emitRequest(...event);
    const work = onStream(stream, headers, rawHeaders, serve);
    // All streams that one read returns are served after it, when most of their bodies are complete.
    if (work !== undefined) overload.eventLoop.schedule({ caller }, work);
    else serveInTurn(stream, { caller }, overload.eventLoop, serve);
  }
}

function createHttp1(limits: HttpLimits): Server {
  return createHttp1Server({
    maxHeaderSize: limits.headerBytes,
    headersTimeout: Math.min(limits.headersMs, limits.requestMs),
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
    // Detects peers that vanish silently, on busy connections too.
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEP_ALIVE_DELAY_MS,
    // Node.js would respond without a body; the dispatcher checks the header.
    requireHostHeader: false,
  });
}

function createHttp2(limits: HttpLimits): Http2Server {
  return createHttp2Server({
    settings: {
      maxConcurrentStreams: limits.concurrentStreams,
      maxHeaderListSize: limits.headerBytes,
      initialWindowSize: limits.streamWindowBytes,
    },
    // Node.js resets streams above it; up to it the dispatcher responds with an error.
    maxHeaderListPairs: 4 * limits.headers,
  });
}

/** Removes the listener by which Node.js itself serves an event, and returns it. */
function takeListener(server: EventEmitter, event: string): ReturnType<EventEmitter["listeners"]>[number] {
  const [listener] = server.listeners(event);
  if (listener === undefined) throw new Error(`this version of Node.js has no listener for "${event}"`);
  server.removeAllListeners(event);
  return listener;
}

/**
 * Detects the protocol of a new connection and puts the bytes it has read back. Closes a connection that ends earlier
 * or sends too little within `timeoutMs`.
 * @param onDetected called once, unless the connection closes first; `start` is what the connection has sent so far
 */
function sniffProtocol(socket: Socket, timeoutMs: number, onDetected: (isHttp2: boolean, start: Buffer) => void): void {
  let start: Buffer = Buffer.alloc(0);
  const timer = setTimeout(() => socket.destroy(), timeoutMs);

  function onReadable(): void {
    const chunk = readBuffered(socket);
    if (chunk === null) return;
    start = start.length === 0 ? chunk : Buffer.concat([start, chunk]);
    if (start.length < HTTP2_PREFACE_START.length) return;
    end();
    socket.unshift(start);
    onDetected(start.toString("latin1", 0, HTTP2_PREFACE_START.length) === HTTP2_PREFACE_START, start);
  }
  /** Leaves no listener that would keep this scope in memory for as long as the connection is open. */
  function end(): void {
    clearTimeout(timer);
    socket.off("readable", onReadable);
    socket.off("end", destroy);
    socket.off("close", end);
  }

  socket.on("readable", onReadable);
  socket.on("end", destroy);
  socket.on("error", destroy);
  socket.on("close", end);
}

function destroy(this: Socket): void {
  this.destroy();
}

function ignoreError(): void {}
