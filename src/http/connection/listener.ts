import { createServer as createHttp1Server } from "node:http";
import {
  constants,
  createServer as createHttp2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import type { HttpRequest, HttpResponse } from "../request/request-context.js";
import { capToFileDescriptorLimit, createConnectionRegistry } from "./connection-registry.js";
import type { HttpLimits } from "./http-limits.js";
import { type Http1Options, serveHttp1 } from "./http1-server.js";
import { createHttp2SessionMonitor, SESSION_ERROR_CODES } from "./http2-session-monitor.js";
import { sniffProtocol } from "./protocol-sniffer.js";

/** Between the notice that no more requests are taken and the end of what brings none: some are still on their way. */
const GOAWAY_NOTICE_MS = 100;
const MAX_STREAM_ID = 2 ** 31 - 1;

/** Connections that wait to be accepted are still taken, but not for ever: more may come all the time. */
const ACCEPT_DRAIN_MS = 1000;

/** How long a connection is silent before it is asked whether its other end is still there. */
const TCP_KEEP_ALIVE_DELAY_MS = 60_000;

/** How often the times of HTTP/1.1 connections are checked. */
const TIMEOUT_CHECK_INTERVAL_MS = 1000;

/** Errors of an HTTP/2 connection for what came on it: not those for its end. */
const REPORTED_SESSION_ERRORS: ReadonlySet<string | undefined> = new Set([
  "ERR_HTTP2_ERROR",
  "ERR_HTTP2_TOO_MANY_INVALID_FRAMES",
  ...SESSION_ERROR_CODES,
]);

export interface HttpListenerOptions {
  readonly host: string;
  readonly port: number;
  readonly limits: HttpLimits;
  onRequest(req: HttpRequest, res: HttpResponse): void;
  /**
   * Serves a stream of HTTP/2 below Node's requests and responses, or says false: then, and when `handOver` is called
   * later, the stream comes to `onRequest`.
   */
  onStream(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    rawHeaders: readonly string[],
    handOver: () => void,
  ): boolean;
  /** What came is no HTTP, or not in time: told once of a connection, which ends. Over HTTP/1.1 with the answer given. */
  onProtocolError: Http1Options["onProtocolError"];
}

export interface HttpListener {
  /** Starts to accept connections. Rejects where the address cannot be had. */
  listen(): Promise<AddressInfo>;
  /** Takes no more connections and requests, waits up to `graceMs` for those in progress, then cuts what is left. */
  close(graceMs: number): Promise<void>;
  /** Connections that are open. */
  countConnections(): number;
}

/** HTTP/1.1 and cleartext HTTP/2 with prior knowledge on one port. */
export function createHttpListener({
  host,
  port,
  limits,
  onRequest,
  onStream,
  onProtocolError,
}: HttpListenerOptions): HttpListener {
  const undecided = new Set<Socket>();
  const sessions = createHttp2SessionMonitor(limits);
  const sessionOf = new WeakMap<Socket, ServerHttp2Session>();
  let accepted = 0;
  let draining = false;
  let closed: Promise<void> | undefined;

  const http1 = createHttp1Server({
    maxHeaderSize: limits.headerBytes,
    headersTimeout: Math.min(limits.headersMs, limits.requestMs),
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
    // A caller that vanished without a word is noticed, also where its connection is busy.
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEP_ALIVE_DELAY_MS,
    // Node would answer without a body; our handler checks it.
    requireHostHeader: false,
  });
  http1.timeout = limits.stallMs;

  const http2 = createHttp2Server({
    settings: { maxConcurrentStreams: limits.concurrentStreams, maxHeaderListSize: limits.headerBytes },
    // Beyond it Node.js resets the stream; up to it our handler says what is wrong.
    maxHeaderListPairs: 4 * limits.headers,
  });

  // The server that listens is the HTTP/1.1 one: only then do its own time limits run. It gets each connection back
  // once it is known to be HTTP/1.1.
  const [takeHttp1] = http1.listeners("connection");
  if (takeHttp1 === undefined) throw new Error("this Node.js serves HTTP/1.1 in a way unknown here");
  http1.removeAllListeners("connection");
  http1.on("connection", (socket: Socket) => {
    accepted += 1;
    if (!sockets.tryAdd(socket)) return;
    undecided.add(socket);
    socket.once("close", () => undecided.delete(socket));
    sniffProtocol(socket, limits.headersMs, (isHttp2) => {
      undecided.delete(socket);
      if (!isHttp2) {
        takeHttp1.call(http1, socket);
        return;
      }
      // Sockets of an HTTP/1.1 server may be open in one direction; here that would hide that the caller is gone.
      socket.allowHalfOpen = false;
      const note = (session: ServerHttp2Session) => sessionOf.set(socket, session);
      http2.once("session", note);
      http2.emit("connection", socket);
      http2.off("session", note);
    });
  });

  const openOn = serveHttp1(http1, { limits, isDraining: () => draining, onRequest, onProtocolError });
  http2.on("request", onRequest);
  // What makes requests of streams is a listener too; it gets those that are not served below it.
  const [makeRequest] = http2.listeners("stream");
  if (makeRequest === undefined) throw new Error("this Node.js serves HTTP/2 in a way unknown here");
  http2.removeAllListeners("stream");
  http2.on("stream", (stream, headers, flags, ...more: string[][]) => {
    const [rawHeaders = []] = more;
    const handOver = () => void makeRequest.call(http2, stream, headers, flags, rawHeaders);
    if (!onStream(stream, headers, rawHeaders, handOver)) handOver();
  });
  http2.on("connect", onRequest);
  http2.on("checkExpectation", onRequest);
  http2.on("session", (session) => {
    if (!session.destroyed) sessions.add(session);
    session.on("stream", (stream) => resetStalledStream(stream, limits.stallMs));
    if (draining) session.close();
  });
  http2.on("sessionError", ({ code = "" }: NodeJS.ErrnoException, session) => {
    if (REPORTED_SESSION_ERRORS.has(code)) onProtocolError({ code, rawPacket: Buffer.alloc(0) }, session.socket);
  });

  const isIdle = (socket: Socket): boolean => {
    const session = sessionOf.get(socket);
    return session === undefined ? openOn(socket).length === 0 : sessions.isIdle(session);
  };
  const sockets = createConnectionRegistry(capToFileDescriptorLimit(limits.connections), isIdle);

  /**
   * Waits until no made connection is left that was not accepted: the end of listening would reset it, with the request
   * that it has brought already. Node.js accepts one in each turn of its event loop; the first turn may be over already.
   */
  async function acceptWaiting(): Promise<void> {
    const until = performance.now() + ACCEPT_DRAIN_MS;
    for (let turnsWithout = 0; turnsWithout < 2 && performance.now() < until; ) {
      const before = accepted;
      await new Promise((resolve) => setImmediate(resolve));
      turnsWithout = accepted === before ? turnsWithout + 1 : 0;
    }
  }

  async function drain(graceMs: number): Promise<void> {
    draining = true;
    await acceptWaiting();
    // Node.js would cut idle connections at once: also those whose last answer is still on its way out, and those whose
    // next request is on its way in.
    http1.closeIdleConnections = () => {};
    const allGone = new Promise<void>((resolve) => http1.close(() => resolve()));
    for (const socket of sockets) {
      for (const res of openOn(socket)) if (!res.headersSent) res.setHeader("Connection", "close");
    }
    for (const session of sessions) {
      if (!session.destroyed) session.goaway(constants.NGHTTP2_NO_ERROR, MAX_STREAM_ID);
    }
    const notice = setTimeout(
      // After another look at what has come: a busy process may not have read it yet.
      () =>
        setImmediate(() => {
          for (const socket of undecided) socket.destroy();
          for (const session of sessions) session.close();
          // What has begun to send a request and does not go on has nothing to finish; sessions without streams end by the
          // line above.
          for (const socket of sockets) {
            if (!sessionOf.has(socket) && openOn(socket).length === 0) socket.destroySoon();
          }
        }),
      Math.min(GOAWAY_NOTICE_MS, graceMs),
    );
    const cut = setTimeout(() => {
      for (const session of sessions) session.destroy();
      for (const socket of sockets) socket.destroy();
    }, graceMs);
    await allGone;
    clearTimeout(notice);
    clearTimeout(cut);
  }

  return {
    listen: () =>
      new Promise((resolve, reject) => {
        http1.once("error", reject);
        http1.listen(port, host, () => {
          http1.off("error", reject);
          // A connection that cannot be accepted, as when no file descriptors are left, must not end the process.
          http1.on("error", () => {});
          resolve(http1.address() as AddressInfo);
        });
      }),
    close(graceMs) {
      closed ??= drain(graceMs);
      return closed;
    },
    countConnections: sockets.count,
  };
}

/** Ends a stream whose caller leaves the answer unread; one that just has nothing to say goes on. */
function resetStalledStream(stream: ServerHttp2Stream, stallMs: number): void {
  stream.setTimeout(stallMs, () => {
    if (stream.writableLength > 0) stream.close(constants.NGHTTP2_CANCEL);
  });
}
