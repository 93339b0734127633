import { createServer as createHttp1Server, type IncomingMessage, type ServerResponse } from "node:http";
import {
  constants,
  createServer as createHttp2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { HttpRequest, HttpResponse } from "./call.js";
import type { HttpLimits } from "./limits.js";
import { removeFrom } from "./remove-from.js";
import { sniff } from "./sniff.js";

/** Between the notice that no more requests are taken and the end of what brings none: some are still on their way. */
const NOTICE_MS = 100;
const HIGHEST_STREAM_ID = 2 ** 31 - 1;

/** How long a refused connection may take to close its end. Closing ours at once would often lose the answer. */
const LINGER_MS = 1000;

/** How long a connection is silent before it is asked whether its other end is still there. */
const KEEP_ALIVE_PROBE_MS = 60_000;

/** How often the times of HTTP/1.1 connections are checked. */
const CHECK_MS = 1000;

/** What is wrong with a request that Node.js does not hand over. */
export interface Malformed {
  /** Code of Node's error, or CONNECT_METHOD. */
  readonly code: string;
  /** The bytes at which it was noticed. */
  readonly packet: Buffer;
}

/** Stands for the method CONNECT, which asks for a tunnel and is no request that could be answered as such. */
export const CONNECT_METHOD = "CONNECT";

export interface ListenerOptions {
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
  /** Bytes came that are no HTTP/1.1 request, or not in time. Gives the whole answer, which ends the connection. */
  onMalformed(fault: Malformed, socket: Socket): string;
}

export interface Listener {
  /** Starts to accept connections. Rejects where the address cannot be had. */
  listen(): Promise<AddressInfo>;
  /** Takes no more connections and requests, waits up to `graceMs` for those in progress, then cuts what is left. */
  close(graceMs: number): Promise<void>;
}

/** The answers to the requests of one HTTP/1.1 connection. */
interface Answers {
  /** Those that are not out yet, in the order of their requests. */
  readonly open: ServerResponse[];
  /** The answer to the last request, out or not. */
  last: ServerResponse | undefined;
}

/** HTTP/1.1 and cleartext HTTP/2 with prior knowledge on one port. */
export function createListener({ host, port, limits, onRequest, onStream, onMalformed }: ListenerOptions): Listener {
  const sockets = new Set<Socket>();
  const undecided = new Set<Socket>();
  const sessions = new Set<ServerHttp2Session>();
  const http2Sockets = new WeakSet<Socket>();
  let draining = false;
  let closed: Promise<void> | undefined;

  const http1 = createHttp1Server({
    maxHeaderSize: limits.headerBytes,
    headersTimeout: Math.min(limits.headersMs, limits.requestMs),
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: CHECK_MS,
    // A caller that vanished without a word is noticed, also where its connection is busy.
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS,
    // Node would answer without a body; our handler checks it.
    requireHostHeader: false,
  });
  http1.timeout = limits.stallMs;

  const http2 = createHttp2Server({
    settings: { maxConcurrentStreams: limits.concurrentStreams, maxHeaderListSize: limits.headerBytes },
  });

  // The server that listens is the HTTP/1.1 one: only then do its own time limits run. It gets each connection back
  // once it is known to be HTTP/1.1.
  const [serveHttp1] = http1.listeners("connection");
  if (serveHttp1 === undefined) throw new Error("this Node.js serves HTTP/1.1 in a way unknown here");
  http1.removeAllListeners("connection");
  http1.on("connection", (socket: Socket) => {
    sockets.add(socket);
    undecided.add(socket);
    socket.once("close", () => {
      sockets.delete(socket);
      undecided.delete(socket);
    });
    sniff(socket, limits.headersMs, (isHttp2) => {
      undecided.delete(socket);
      if (!isHttp2) {
        serveHttp1.call(http1, socket);
        return;
      }
      // Sockets of an HTTP/1.1 server may be open in one direction; here that would hide that the caller is gone.
      socket.allowHalfOpen = false;
      http2Sockets.add(socket);
      http2.emit("connection", socket);
    });
  });

  const answersOf = new WeakMap<Duplex, Answers>();
  function answersOn(socket: Duplex): Answers {
    const known = answersOf.get(socket);
    if (known !== undefined) return known;
    const answers: Answers = { open: [], last: undefined };
    answersOf.set(socket, answers);
    return answers;
  }
  function serve(req: IncomingMessage, res: ServerResponse): void {
    const { socket } = req;
    const answers = answersOn(socket);
    const { open } = answers;
    // Requests that wait in line on one connection take memory like those of one HTTP/2 connection.
    if (open.length >= limits.concurrentStreams) socket.destroy();
    if (socket.destroyed) return;
    open.push(res);
    answers.last = res;
    res.on("close", () => {
      removeFrom(open, res);
      // Where the answer began before the drain it did not say that it is the last.
      if (draining) socket.destroySoon();
    });
    if (draining) res.setHeader("Connection", "close");
    onRequest(req, res);
  }
  // Whoever waits for an answer is not stalling; only one who leaves it unread, or says nothing, is.
  http1.on("timeout", (socket) => {
    if (socket.writableLength > 0 || answersOn(socket).open.length === 0) socket.destroy();
  });
  http1.on("request", serve);
  // An expectation that we do not know is no reason to refuse.
  http1.on("checkExpectation", serve);

  const refused = new WeakSet<Duplex>();
  function refuse(socket: Duplex, answer: string | undefined): void {
    refused.add(socket);
    if (answer === undefined || !socket.writable) {
      socket.destroy();
      return;
    }
    socket.end(answer);
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  }
  /** Ends a connection on which nothing more can be read once the answers to what came before are out. */
  function closeAfter(socket: Duplex, answers: readonly ServerResponse[]): void {
    refused.add(socket);
    let left = answers.length;
    for (const answer of answers) {
      answer.once("close", () => {
        left -= 1;
        if (left === 0) socket.destroy();
      });
    }
  }
  http1.on("clientError", (error: NodeJS.ErrnoException & { rawPacket?: Buffer }, socket) => {
    if (refused.has(socket)) return;
    const code = error.code ?? "";
    const { open: answers, last } = answersOn(socket);
    const open = last !== undefined && answers.includes(last) ? last : undefined;
    const whole = answers.filter((answer) => answer.req.complete);
    const isAnswered = last !== undefined && open === undefined && !last.req.complete;
    if (isAnswered || (!code.startsWith("HPE_") && code !== "ERR_HTTP_REQUEST_TIMEOUT")) refuse(socket, undefined);
    else if (whole.length > 0) {
      // What does not parse came after whole requests, whose answers still go out: it must not be taken for one.
      closeAfter(socket, whole);
    } else if (open?.headersSent) refuse(socket, undefined);
    else refuse(socket, onMalformed({ code, packet: error.rawPacket ?? Buffer.alloc(0) }, socket as Socket));
  });
  http1.on("connect", (_req, socket) => {
    const before = [...answersOn(socket).open];
    if (before.length > 0) closeAfter(socket, before);
    else refuse(socket, onMalformed({ code: CONNECT_METHOD, packet: Buffer.alloc(0) }, socket as Socket));
  });

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
    sessions.add(session);
    let streams = 0;
    let idle = setTimeout(() => session.destroy(), limits.idleMs);
    session.on("stream", (stream) => {
      streams += 1;
      clearTimeout(idle);
      resetWhenUnread(stream, limits.stallMs);
      stream.once("close", () => {
        streams -= 1;
        if (streams === 0 && !session.destroyed) idle = setTimeout(() => session.destroy(), limits.idleMs);
      });
    });
    session.once("close", () => {
      clearTimeout(idle);
      sessions.delete(session);
    });
    if (draining) session.close();
  });

  async function drain(graceMs: number): Promise<void> {
    draining = true;
    // Node.js would cut idle connections at once: also those whose last answer is still on its way out, and those whose
    // next request is on its way in.
    http1.closeIdleConnections = () => {};
    const allGone = new Promise<void>((resolve) => http1.close(() => resolve()));
    for (const socket of sockets) {
      for (const res of answersOn(socket).open) if (!res.headersSent) res.setHeader("Connection", "close");
    }
    for (const session of sessions) {
      if (!session.destroyed) session.goaway(constants.NGHTTP2_NO_ERROR, HIGHEST_STREAM_ID);
    }
    const notice = setTimeout(
      () => {
        for (const socket of undecided) socket.destroy();
        for (const session of sessions) session.close();
        // What has begun to send a request and does not go on has nothing to finish; sessions without streams end by the
        // line above.
        for (const socket of sockets) {
          if (!http2Sockets.has(socket) && answersOn(socket).open.length === 0) socket.destroySoon();
        }
      },
      Math.min(NOTICE_MS, graceMs),
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
  };
}

/** Ends a stream whose caller leaves the answer unread; one that just has nothing to say goes on. */
function resetWhenUnread(stream: ServerHttp2Stream, stallMs: number): void {
  stream.setTimeout(stallMs, () => {
    if (stream.writableLength > 0) stream.close(constants.NGHTTP2_CANCEL);
  });
}
