import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { removeItem } from "../request/remove-item.js";
import type { PipelineThrottle } from "./pipeline-throttle.js";
import type { ResponseMonitor } from "./response-monitor.js";

/** How long the peer of a rejected connection may take to close. Closing at once would often lose the response. */
const LINGER_MS = 1000;

/**
 * How long an idle connection stays open beyond the time that Keep-Alive announces: a request that its caller sent in time
 * may be on its way, or wait to be read here.
 */
const KEEP_ALIVE_GRACE_MS = 1000;

/** Input that Node.js does not pass on as a request. */
export interface HttpProtocolError {
  /** Code of the error of Node.js, CONNECT_METHOD, or one of SESSION_ERROR_CODES. */
  readonly code: string;
  /** The bytes that caused the error. */
  readonly rawPacket: Buffer;
}

/** The method CONNECT, which requests a tunnel: Node.js reports it apart from requests. */
export const HTTP_CONNECT_METHOD = "CONNECT";

export interface Http1Options {
  readonly throttle: PipelineThrottle;
  readonly monitor: ResponseMonitor;
  isDraining(): boolean;
  onRequest(req: IncomingMessage, res: ServerResponse): void;
  /**
   * Called for input that is not valid HTTP/1.1 or that arrived too late. Returns the complete response, after which
   * the connection closes.
   */
  onProtocolError(protocolError: HttpProtocolError, socket: Socket): string;
}

/** The responses of one HTTP/1.1 connection. */
interface PendingResponses {
  /** Responses that are not complete, in the order of their requests. */
  readonly pending: ServerResponse[];
  /** The response to the latest request, complete or not. */
  latest: ServerResponse | undefined;
}

/** What a server knows of its HTTP/1.1 connections. */
export interface Http1Connections {
  /** Prepares a connection that the server has just accepted. `start` is what it has sent so far. */
  adopt(socket: Socket, start: Buffer): void;
  /** Returns the incomplete responses of a connection, in the order of their requests. */
  getPendingResponses(socket: Duplex): readonly ServerResponse[];
}

/** Key of the responses of a connection. A property: the monitor reads those of ten thousand connections each second. */
const RESPONSES = Symbol("responses");

/** Accepts the requests of an HTTP/1.1 server and rejects invalid input. */
export function serveHttp1(
  http1: Server,
  { throttle, monitor, isDraining, onRequest, onProtocolError }: Http1Options,
): Http1Connections {
  function getResponses(socket: Duplex & { [RESPONSES]?: PendingResponses }): PendingResponses {
    const existing = socket[RESPONSES];
    if (existing !== undefined) return existing;
    const responses: PendingResponses = { pending: [], latest: undefined };
    socket[RESPONSES] = responses;
    return responses;
  }
  function adopt(socket: Socket, start: Buffer): void {
    const { pending } = getResponses(socket);
    // Pipelined responses are not told of the end of their connection.
    socket.once("close", () => {
      for (const res of [...pending]) removeResponse(socket, pending, res);
    });
    throttle.adopt(socket, pending, start);
  }
  function removeResponse(socket: Socket, pending: ServerResponse[], res: ServerResponse): void {
    if (!removeItem(pending, res)) return;
    throttle.requestEnded(socket);
    monitor.requestEnded();
  }
  function serve(req: IncomingMessage, res: ServerResponse): void {
    const { socket } = req;
    const responses = getResponses(socket);
    const { pending } = responses;
    // After a response with `Connection: close` no further request is served.
    if (socket.destroyed || responses.latest?.shouldKeepAlive === false) return;
    pending.push(res);
    responses.latest = res;
    throttle.requestStarted(socket);
    monitor.requestStarted();
    res.on("close", () => {
      removeResponse(socket, pending, res);
      // A response that began before the drain did not announce the close.
      if (isDraining()) socket.destroySoon();
    });
    if (isDraining()) res.setHeader("Connection", "close");
    onRequest(req, res);
  }
  http1.on("request", serve);
  // RFC 9110 10.1.1: an unknown expectation may be ignored.
  http1.on("checkExpectation", serve);

  // No other timeout is set on these sockets, and the next request clears this one.
  http1.on("timeout", (socket: Socket) => {
    if (socket.timeout === KEEP_ALIVE_GRACE_MS) socket.destroy();
    else socket.setTimeout(KEEP_ALIVE_GRACE_MS);
  });

  const rejected = new WeakSet<Duplex>();
  function reject(socket: Duplex, response: string | undefined): void {
    rejected.add(socket);
    throttle.discard(socket);
    if (response === undefined || !socket.writable) {
      socket.destroy();
      return;
    }
    socket.end(response);
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  }
  /** Closes an unreadable connection once the responses to earlier requests are complete. */
  function closeAfter(socket: Duplex, responses: readonly ServerResponse[]): void {
    rejected.add(socket);
    throttle.discard(socket);
    let remaining = responses.length;
    for (const response of responses) {
      response.once("close", () => {
        remaining -= 1;
        if (remaining === 0) socket.destroy();
      });
    }
  }
  http1.on("clientError", (error: NodeJS.ErrnoException & { rawPacket?: Buffer }, socket) => {
    if (rejected.has(socket)) return;
    const code = error.code ?? "";
    const { pending: responses, latest } = getResponses(socket);
    const open = latest !== undefined && responses.includes(latest) ? latest : undefined;
    const complete = responses.filter((response) => response.req.complete);
    const isAnswered = latest !== undefined && open === undefined && !latest.req.complete;
    if (isAnswered || (!code.startsWith("HPE_") && code !== "ERR_HTTP_REQUEST_TIMEOUT")) reject(socket, undefined);
    else if (complete.length > 0) {
      // Malformed input after complete requests: their responses are still sent, and an error response must not be
      // taken for one of them.
      closeAfter(socket, complete);
    } else if (open?.headersSent) reject(socket, undefined);
    else reject(socket, onProtocolError({ code, rawPacket: error.rawPacket ?? Buffer.alloc(0) }, socket as Socket));
  });
  http1.on("connect", (_req, socket) => {
    const earlier = [...getResponses(socket).pending];
    if (earlier.length > 0) {
      closeAfter(socket, earlier);
      // Node.js has let go of the connection: nobody else tells a large response to go on, or reads until the end.
      socket.on("drain", () => {
        for (const response of earlier) response.emit("drain");
      });
      socket.resume();
    } else reject(socket, onProtocolError({ code: HTTP_CONNECT_METHOD, rawPacket: Buffer.alloc(0) }, socket as Socket));
  });

  return {
    adopt,
    getPendingResponses: (socket) => getResponses(socket).pending,
  };
}
