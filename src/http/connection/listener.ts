import { createServer as createHttp1Server } from "node:http";
import {
  createServer as createHttp2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import type { HttpRequest, HttpResponse } from "../request/request-context.js";
import { capToFileDescriptorLimit, createConnectionRegistry } from "./connection-registry.js";
import { createFairScheduler, createTurnQueue } from "./fair-scheduler.js";
import { type ShutdownTargets, shutDownGracefully } from "./graceful-shutdown.js";
import type { HttpLimits } from "./http-limits.js";
import { type Http1Options, serveHttp1 } from "./http1-server.js";
import { serveInTurn } from "./http2/deferred-stream.js";
import { grantContinue } from "./http2/expect-continue.js";
import { createHttp2SessionMonitor, SESSION_ERROR_CODES } from "./http2/http2-session-monitor.js";
import { deferSessionEnd } from "./http2/session-end.js";
import { closeSessionGracefully } from "./http2/session-shutdown.js";
import { createPipelineThrottle } from "./pipeline-throttle.js";
import { sniffProtocol } from "./protocol-sniffer.js";
import { createResponseMonitor, type ResponseCutCause } from "./response-monitor.js";

/** How long a connection is silent before TCP keep-alive probes its peer. */
const TCP_KEEP_ALIVE_DELAY_MS = 60_000;

/** Open streams of a session beyond which further ones wait for their turn. Plain gRPC calls always do. */
const MAX_IMMEDIATE_STREAMS = 8;

/** Interval of the timeout checks of HTTP/1.1 connections. */
const TIMEOUT_CHECK_INTERVAL_MS = 1000;

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
  onProtocolError: Http1Options["onProtocolError"];
  /** Returns the identity of the caller of a request, given the address of its peer. */
  identifyCaller(address: string | undefined, headers: IncomingHttpHeaders): string;
}

/** The memory that callers occupy. */
export interface ConnectionLoad {
  readonly connections: number;
  /** Open requests over HTTP/2, and unanswered requests over HTTP/1.1 beyond the first of each connection. */
  readonly openStreams: number;
  readonly pipelinedRequests: number;
  /** Response bytes that are not read yet. */
  readonly unsentBytes: number;
  /** How many connections and streams have been refused or closed at a limit so far, by cause. */
  readonly cuts: Readonly<Record<ResponseCutCause | "open_streams", number>>;
}

export interface HttpSocketListener {
  /** Starts to accept connections. Rejects if the address is not available. */
  listen(): Promise<AddressInfo>;
  /**
   * Accepts no more connections and requests, waits up to `graceMs` for those in progress, then closes what is left.
   */
  close(graceMs: number): Promise<void>;
  getLoad(): ConnectionLoad;
}

/** Listens for HTTP/1.1 and for cleartext HTTP/2 with prior knowledge on one port. */
export function createHttpSocketListener({
  host,
  port,
  limits,
  onRequest,
  onStream,
  onProtocolError,
  identifyCaller,
}: HttpSocketListenerOptions): HttpSocketListener {
  const unsniffed = new Set<Socket>();
  let accepted = 0;
  const schedule = createFairScheduler(() => accepted);
  // A session begins with up to 64 KiB of requests.
  const startInTurn = createTurnQueue();
  const throttle = createPipelineThrottle(limits, schedule);
  const monitor = createResponseMonitor(limits, {
    getCallers: () => sockets.callers,
    getStreams(socket) {
      const session = sessionBySocket.get(socket);
      return session && sessions.getStreams(session);
    },
    getPendingResponses: (socket) => http1Connections.getPendingResponses(socket),
    countHeldBytes: throttle.countHeldBytes,
  });
  const sessions = createHttp2SessionMonitor({ limits, monitor, identifyCaller });
  const sessionBySocket = new WeakMap<Socket, ServerHttp2Session>();
  let isDraining = false;
  let closed: Promise<void> | undefined;

  const http1 = createHttp1Server({
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

  const http2 = createHttp2Server({
    settings: {
      maxConcurrentStreams: limits.concurrentStreams,
      maxHeaderListSize: limits.headerBytes,
      initialWindowSize: limits.streamWindowBytes,
    },
    // Node.js resets streams above it; up to it the dispatcher responds with an error.
    maxHeaderListPairs: 4 * limits.headers,
  });

  // The HTTP/1.1 server listens: its timeouts run only then. It gets connections back that are known to be HTTP/1.1.
  const [acceptHttp1] = http1.listeners("connection");
  if (acceptHttp1 === undefined) throw new Error("this version of Node.js has no connection listener for HTTP/1.1");
  http1.removeAllListeners("connection");
  http1.on("connection", (socket: Socket) => {
    accepted += 1;
    if (!sockets.tryAdd(socket)) return;
    unsniffed.add(socket);
    socket.once("close", () => unsniffed.delete(socket));
    sniffProtocol(socket, limits.headersMs, (isHttp2, start) => {
      if (isHttp2) return startInTurn(() => !socket.destroyed && startSession(socket));
      unsniffed.delete(socket);
      acceptHttp1.call(http1, socket);
      http1Connections.adopt(socket, start);
    });
  });
  function startSession(socket: Socket): void {
    unsniffed.delete(socket);
    // Sockets of an HTTP/1.1 server may be half-open, which would hide from HTTP/2 that the caller is gone.
    socket.allowHalfOpen = false;
    const storeSession = (session: ServerHttp2Session): void => {
      sessionBySocket.set(socket, session);
      deferSessionEnd(session);
      if (!session.destroyed) sessions.add(session, socket);
      if (isDraining) closeSessionGracefully(session, socket);
      session.on("stream", (stream, headers, flags, ...extra: string[][]) =>
        onSessionStream(session, stream, headers, flags, extra[0] ?? []),
      );
    };
    http2.once("session", storeSession);
    http2.emit("connection", socket);
    http2.off("session", storeSession);
  }

  const http1Connections = serveHttp1(http1, {
    ...{ throttle, monitor, onRequest, onProtocolError },
    isDraining: () => isDraining,
  });
  http2.on("request", onRequest);
  // Node.js turns streams into requests by a listener. It gets the streams that no fast path serves.
  const emitRequest = http2.listeners("stream")[0];
  if (emitRequest === undefined) throw new Error("this version of Node.js has no stream listener for HTTP/2");
  http2.removeAllListeners("stream");
  function onSessionStream(
    session: ServerHttp2Session,
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    flags: number,
    rawHeaders: readonly string[],
  ): void {
    const serve = () => void emitRequest?.call(http2, stream, headers, flags, rawHeaders);
    const place = sessions.addStream(session, stream, headers);
    const work = place > 0 ? onStream(stream, headers, rawHeaders, serve) : undefined;
    // All streams that one read returns are served after it, when most of their bodies are complete.
    if (work !== undefined) schedule(work);
    else if (place > 0 && place <= MAX_IMMEDIATE_STREAMS) serve();
    else {
      // A stream that is not served at once has no other listener.
      stream.on("error", ignoreError);
      if (place > 0) serveInTurn(stream, schedule, serve);
    }
  }
  http2.on("connect", onRequest);
  http2.on("checkExpectation", onRequest);
  http2.on("checkContinue", (_req, res) => grantContinue(res)).on("checkContinue", onRequest);
  http2.on("sessionError", ({ code = "" }: NodeJS.ErrnoException, session) => {
    if (REPORTED_SESSION_ERRORS.has(code)) onProtocolError({ code, rawPacket: Buffer.alloc(0) }, session.socket);
  });

  const isIdle = (socket: Socket): boolean => {
    const session = sessionBySocket.get(socket);
    return session === undefined ? http1Connections.getPendingResponses(socket).length === 0 : sessions.isIdle(session);
  };
  const sockets = createConnectionRegistry(capToFileDescriptorLimit(limits.connections), isIdle);
  const targets: ShutdownTargets = {
    http1,
    sockets,
    sessions,
    unsniffed,
    getSession: (socket) => sessionBySocket.get(socket),
    getPendingResponses: http1Connections.getPendingResponses,
    countAccepted: () => accepted,
  };

  return {
    listen: () =>
      new Promise((resolve, reject) => {
        http1.once("error", reject);
        http1.listen(port, host, () => {
          http1.off("error", reject);
          // A connection that cannot be accepted, for example for lack of file descriptors, must not end the process.
          http1.on("error", () => {});
          resolve(http1.address() as AddressInfo);
        });
      }),
    close(graceMs) {
      if (closed === undefined) {
        isDraining = true;
        closed = shutDownGracefully(targets, graceMs);
      }
      return closed;
    },
    getLoad: () => ({
      connections: sockets.count(),
      openStreams: sessions.countStreams(),
      pipelinedRequests: throttle.countPipelined(),
      unsentBytes: monitor.countUnsentBytes(),
      cuts: { ...monitor.getCuts(), open_streams: sessions.countRefused() },
    }),
  };
}

function ignoreError(): void {}
