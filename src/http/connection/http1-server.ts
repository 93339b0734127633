import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Connection as AcceptedConnection, OverloadManager } from "../admission/overload-manager.js";
import type { HttpLimits } from "./http-limits.js";
import { Http1Connection, isPipelined } from "./http1-connection.js";

/** How long the peer of a rejected connection may take to close. Closing at once would often lose the response. */
const LINGER_MS = 1000;

/**
 * How long an idle connection stays open beyond the time that Keep-Alive announces: a request that its caller sent in
 * time may be on its way, or wait to be read here.
 */
const KEEP_ALIVE_GRACE_MS = 1000;

/** Connections that may parse a burst at once before all connections are throttled, and for how long they are then. */
const MAX_UNTHROTTLED_BURSTS = 4;
const ALERT_MS = 60_000;

/** Input that Node.js does not pass on as a request. */
export interface HttpProtocolError {
  /** Code of the error of Node.js, CONNECT_METHOD, or one of SESSION_ERROR_CODES. */
  readonly code: string;
  /** The bytes that caused the error. */
  readonly rawPacket: Buffer;
}

/** The method CONNECT, which requests a tunnel: Node.js reports it apart from requests. */
export const HTTP_CONNECT_METHOD = "CONNECT";

/** Accepts the requests of Node's HTTP/1.1 server and rejects invalid input. */
export class Http1Server {
  readonly #options;
  readonly #connections = new Map<Duplex, Http1Connection>();
  #isDraining = false;
  #bursts = 0;
  /** When all connections are no longer throttled; 0: they are not. */
  #alertEndsAt = 0;

  constructor(
    http1: Server,
    options: {
      readonly limits: HttpLimits;
      readonly overload: OverloadManager;
      onRequest(req: IncomingMessage, res: ServerResponse): void;
      /**
       * Called for input that is not valid HTTP/1.1 or that arrived too late. Returns the complete response, after which
       * the connection closes.
       */
      onProtocolError(protocolError: HttpProtocolError, socket: Socket): string;
    },
  ) {
    this.#options = options;
    const serve = (req: IncomingMessage, res: ServerResponse): void => this.#serve(req, res);
    http1.on("request", serve);
    // RFC 9110 10.1.1: an unknown expectation may be ignored.
    http1.on("checkExpectation", serve);
    // No other timeout is set on these sockets, and the next request clears this one.
    http1.on("timeout", (socket: Socket) => {
      if (socket.timeout === KEEP_ALIVE_GRACE_MS) socket.destroy();
      else socket.setTimeout(KEEP_ALIVE_GRACE_MS);
    });
    http1.on("clientError", (error, socket) => this.#onClientError(error, socket));
    http1.on("connect", (_req, socket) => this.#onConnect(socket));
  }

  /**
   * Adopts a connection that Node's server has just accepted. `start` is what it has sent so far, and not parsed yet.
   */
  adopt({ socket, caller }: AcceptedConnection, start: Buffer): Http1Connection {
    const { limits, overload } = this.#options;
    const connection = new Http1Connection({ socket, caller }, limits, overload);
    this.#connections.set(socket, connection);
    socket.once("close", () => this.#connections.delete(socket));
    if (isPipelined(start) || performance.now() < this.#alertEndsAt) connection.throttle();
    return connection;
  }

  /** Announces to callers from now on that their connection closes after the response. */
  drain(): void {
    this.#isDraining = true;
  }

  #serve(req: IncomingMessage, res: ServerResponse): void {
    const { socket } = req;
    const connection = this.#connections.get(socket);
    // After a response with `Connection: close` no further request is served.
    if (connection === undefined || socket.destroyed || connection.latest?.shouldKeepAlive === false) return;
    if (connection.add(res)) this.#noteBurst(connection);
    res.on("close", () => {
      connection.remove(res);
      // A response that began before the drain did not announce the close.
      if (this.#isDraining) socket.destroySoon();
    });
    if (this.#isDraining) res.setHeader("Connection", "close");
    this.#options.onRequest(req, res);
  }

  /**
   * Throttles a connection that sends many requests at once, and all connections for a while if several do. Otherwise
   * each of thousands of connections could send one burst before it is throttled itself.
   */
  #noteBurst(connection: Http1Connection): void {
    // Not while Node.js parses the burst.
    process.nextTick(() => connection.throttle());
    const now = performance.now();
    if (now >= this.#alertEndsAt && this.#alertEndsAt > 0) {
      this.#bursts = 0;
      this.#alertEndsAt = 0;
    }
    this.#bursts += 1;
    if (this.#bursts <= MAX_UNTHROTTLED_BURSTS && this.#alertEndsAt === 0) return;
    // A connection in the middle of its own burst follows when Node.js has parsed it.
    for (const other of this.#connections.values()) if (!other.isBursting) other.throttle();
    this.#alertEndsAt = now + ALERT_MS;
  }

  #onClientError(error: NodeJS.ErrnoException & { readonly rawPacket?: Buffer }, socket: Duplex): void {
    const connection = this.#connections.get(socket);
    if (connection === undefined) {
      socket.destroy();
      return;
    }
    if (connection.isRejected) return;
    const { code = "", rawPacket = Buffer.alloc(0) } = error;
    const { pending, latest } = connection;
    const open = latest !== undefined && pending.includes(latest) ? latest : undefined;
    const complete = pending.filter((response) => response.req.complete);
    const isAnswered = latest !== undefined && open === undefined && !latest.req.complete;
    if (isAnswered || (!code.startsWith("HPE_") && code !== "ERR_HTTP_REQUEST_TIMEOUT")) reject(connection, socket);
    else if (complete.length > 0) {
      // Malformed input after complete requests: their responses are still sent, and an error response must not be
      // taken for one of them.
      closeAfter(connection, socket, complete);
    } else if (open?.headersSent) reject(connection, socket);
    else reject(connection, socket, this.#options.onProtocolError({ code, rawPacket }, socket as Socket));
  }

  #onConnect(socket: Duplex): void {
    const connection = this.#connections.get(socket);
    if (connection === undefined) return;
    const earlier = [...connection.pending];
    if (earlier.length === 0) {
      const protocolError = { code: HTTP_CONNECT_METHOD, rawPacket: Buffer.alloc(0) };
      reject(connection, socket, this.#options.onProtocolError(protocolError, socket as Socket));
      return;
    }
    closeAfter(connection, socket, earlier);
    // Node.js has detached the connection: it neither continues a large response nor reads until the end.
    socket.on("drain", () => {
      for (const response of earlier) response.emit("drain");
    });
    socket.resume();
  }
}

/** Closes a connection because of its input, after a response if there is one. */
function reject(connection: Http1Connection, socket: Duplex, response?: string): void {
  connection.isRejected = true;
  connection.discardInput();
  if (response === undefined || !socket.writable) {
    socket.destroy();
    return;
  }
  socket.end(response);
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

/** Closes an unreadable connection once the responses to earlier requests are complete. */
function closeAfter(connection: Http1Connection, socket: Duplex, responses: readonly ServerResponse[]): void {
  connection.isRejected = true;
  connection.discardInput();
  let remaining = responses.length;
  for (const response of responses) {
    response.once("close", () => {
      remaining -= 1;
      if (remaining === 0) socket.destroy();
    });
  }
}
