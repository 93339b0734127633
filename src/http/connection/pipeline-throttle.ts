import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { FairScheduler } from "./fair-scheduler.js";
import type { HttpLimits } from "./http-limits.js";

/** Backpressure for pipelined HTTP/1.1 requests: what a connection may not send yet stays unread, and nothing is lost. */
export interface PipelineThrottle {
  /**
   * Adopts a connection that Node's HTTP/1.1 server has just accepted.
   * @param pending unanswered requests of the connection, which its owner keeps up to date
   * @param start what the connection has sent so far; Node.js has not parsed it yet
   */
  adopt(socket: Socket, pending: readonly ServerResponse[], start: Buffer): void;
  /** Called after a request is added to `pending`. */
  requestStarted(socket: Socket): void;
  /** Called after a request is removed from `pending`. */
  requestEnded(socket: Socket): void;
  /** Ignores all further input of a connection, since no further request of it is served. */
  discard(socket: Duplex): void;
  /** Returns the number of bytes that a connection has sent and that are not parsed yet. */
  countHeldBytes(socket: Socket): number;
  /** Returns the number of unanswered requests beyond the first of each connection. */
  countPipelined(): number;
}

/** State of one connection. */
interface ThrottledConnection {
  readonly socket: Socket;
  readonly pending: readonly ServerResponse[];
  /** Listeners of Node's HTTP/1.1 server: they parse bytes, and the end of the input. */
  readonly parse: (bytes: Buffer) => void;
  readonly parseEnd: () => void;
  isThrottled: boolean;
  /** Received bytes that are not parsed yet. */
  held: Buffer | undefined;
  /** Requests since the connection last had neither an unanswered one nor held bytes. */
  burst: number;
  /** Whether the input has ended and Node.js does not know it yet. */
  hasEnded: boolean;
  isDiscarding: boolean;
  isScheduled: boolean;
}

/** The end of a request head. */
const HEAD_END = "\r\n\r\n";

/** Most slices of a connection that are parsed in its turn. A slice holds at most one complete request head. */
const MAX_SLICES_PER_TURN = 8;

/** Connections that may parse a burst at once before all connections are throttled, and for how long they are then. */
const MAX_UNTHROTTLED_BURSTS = 4;
const ALERT_MS = 60_000;

/**
 * Creates the throttle.
 *
 * Node.js parses everything that one read returns, up to 64 KiB or 2,000 requests, before anything else happens. That
 * is the fastest way for connections that wait for each response, so they are left alone. A connection that pipelines
 * is parsed request by request, in turns with the others, and only as long as it has few unanswered requests.
 */
export function createPipelineThrottle(limits: HttpLimits, schedule: FairScheduler): PipelineThrottle {
  const connections = new Map<Duplex, ThrottledConnection>();
  let pipelined = 0;
  /** Connections that may hold bytes. */
  let throttled = 0;
  let bursts = 0;
  let alertTimer: NodeJS.Timeout | undefined;

  function mayParse({ socket, pending }: ThrottledConnection): boolean {
    const isBelowLimits =
      pending.length === 0 ||
      // The remaining bytes may belong to the latest request.
      pending.at(-1)?.req.complete === false ||
      (pending.length < limits.pipelinedRequests && pipelined < limits.totalPipelinedRequests);
    // Node.js refuses input while it has paused the connection for the same reason.
    return isBelowLimits && !socket.writableNeedDrain && (socket as { _paused?: boolean })._paused !== true;
  }

  /** Parses at most `maxSlices` slices of the held bytes; the rest waits for the next turn or for a response to end. */
  function parseHeld(connection: ThrottledConnection, maxSlices: number): void {
    const { socket } = connection;
    for (let slices = 0; connection.held !== undefined; slices++) {
      if (slices === maxSlices || !mayParse(connection)) {
        socket.pause();
        continueLater(connection);
        return;
      }
      const { held } = connection;
      const index = held.indexOf(HEAD_END);
      const end = index === -1 ? held.length : index + HEAD_END.length;
      connection.held = end === held.length ? undefined : held.subarray(end);
      // Before the last slice is parsed: Node.js pauses the connection again if nobody reads a request body.
      if (connection.held === undefined) socket.resume();
      connection.parse(held.subarray(0, end));
      if (socket.destroyed) connection.held = undefined;
    }
    finish(connection);
  }

  /**
   * Passes on the end of the input, for which Node.js aborts the requests in progress: pipelined ones are all answered
   * first. The caller of a single one is gone, and its response may be a stream without an end.
   */
  function finish(connection: ThrottledConnection): void {
    const { socket, pending, burst, hasEnded, held, isDiscarding, parseEnd } = connection;
    if (!hasEnded || held !== undefined || isDiscarding || socket.destroyed) return;
    if (pending.length > 0 && burst > 1) return;
    connection.hasEnded = false;
    parseEnd();
  }

  function continueLater(connection: ThrottledConnection): void {
    if (connection.held === undefined || connection.isScheduled || !mayParse(connection)) return;
    connection.isScheduled = true;
    const { socket } = connection;
    schedule(() => {
      connection.isScheduled = false;
      // Never after the close: Node.js has given the parser to another connection by then.
      if (connection.held !== undefined && !socket.destroyed) parseHeld(connection, MAX_SLICES_PER_TURN);
    });
  }

  /** Puts itself between a connection and Node's parser, which then no longer reads from the connection itself. */
  function throttle(connection: ThrottledConnection): void {
    const { socket, parse, parseEnd } = connection;
    if (connection.isThrottled || socket.destroyed) return;
    connection.isThrottled = true;
    throttled += 1;
    socket.off("data", parse);
    socket.off("end", parseEnd);
    socket.on("data", (chunk: Buffer) => {
      if (connection.isDiscarding) return;
      if (connection.held !== undefined) {
        connection.held = Buffer.concat([connection.held, chunk]);
        return;
      }
      if (connection.pending.length === 0) connection.burst = 0;
      connection.held = chunk;
      // A single request needs no turn.
      parseHeld(connection, isPipelined(chunk) ? 0 : 1);
    });
    socket.on("end", () => {
      connection.hasEnded = true;
      finish(connection);
    });
    // Node.js resumes a connection whenever it has discarded a request body.
    socket.on("resume", () => {
      if (connection.held === undefined) return;
      socket.pause();
      continueLater(connection);
    });
    socket.on("drain", () => continueLater(connection));
  }

  /** Throttles all connections for a while, since too many parse bursts at once. */
  function raiseAlert(): void {
    bursts += 1;
    if (bursts <= MAX_UNTHROTTLED_BURSTS && alertTimer === undefined) return;
    for (const connection of connections.values()) {
      // A connection in the middle of its own burst follows when Node.js has parsed it.
      if (connection.pending.length <= limits.pipelinedRequests) throttle(connection);
    }
    clearTimeout(alertTimer);
    alertTimer = setTimeout(() => {
      alertTimer = undefined;
      bursts = 0;
    }, ALERT_MS).unref();
  }

  return {
    adopt(socket, pending, start) {
      const parse = socket.listeners("data").at(-1) as ThrottledConnection["parse"] | undefined;
      const parseEnd = socket.listeners("end").at(-1) as ThrottledConnection["parseEnd"] | undefined;
      if (parse === undefined || parseEnd === undefined) {
        throw new Error("this version of Node.js has no input listeners for HTTP/1.1");
      }
      const connection: ThrottledConnection = {
        ...{ socket, pending, parse, parseEnd, isThrottled: false, held: undefined },
        ...{ burst: 0, hasEnded: false, isDiscarding: false, isScheduled: false },
      };
      connections.set(socket, connection);
      socket.once("close", () => {
        connections.delete(socket);
        connection.held = undefined;
        if (connection.isThrottled) throttled -= 1;
      });
      if (isPipelined(start) || alertTimer !== undefined) throttle(connection);
    },
    requestStarted(socket) {
      const connection = connections.get(socket);
      if (connection === undefined) return;
      const isPipelining = connection.pending.length > 1;
      connection.burst = connection.isThrottled || isPipelining ? connection.burst + 1 : 1;
      if (!isPipelining) return;
      pipelined += 1;
      if (connection.isThrottled || connection.pending.length !== limits.pipelinedRequests + 1) return;
      // Not while Node.js parses the burst.
      process.nextTick(throttle, connection);
      raiseAlert();
    },
    requestEnded(socket) {
      const connection = connections.get(socket);
      if (connection === undefined) return;
      if (connection.pending.length > 0) pipelined -= 1;
      continueLater(connection);
      finish(connection);
    },
    discard(socket) {
      const connection = connections.get(socket);
      if (connection === undefined) return;
      connection.isDiscarding = true;
      if (connection.held === undefined) return;
      connection.held = undefined;
      socket.resume();
    },
    countHeldBytes: (socket) => (throttled === 0 ? 0 : (connections.get(socket)?.held?.length ?? 0)),
    countPipelined: () => pipelined,
  };
}

/** Returns whether bytes hold more than one request head. */
function isPipelined(bytes: Buffer): boolean {
  const end = bytes.indexOf(HEAD_END);
  return end !== -1 && bytes.includes(HEAD_END, end + 1);
}
