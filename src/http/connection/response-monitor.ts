import type { ServerResponse } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { type Holding, takeLargestFirst } from "../admission/largest-first.js";
import { countSharedBytes } from "../request/shared-body.js";
import { countFlushedChunks } from "../stream/flushed-chunk.js";
import type { HttpLimits } from "./http-limits.js";
import { countQueuedBytes, countWrittenBytes } from "./socket-handle.js";

/** The connections that a monitor watches. */
export interface MonitoredConnections {
  /** Returns all connections, each with the identity of its caller. */
  getCallers(): Iterable<readonly [Socket, string]>;
  /** Returns the open streams of an HTTP/2 connection; undefined for other connections. */
  getStreams(socket: Socket): readonly { readonly stream: ServerHttp2Stream }[] | undefined;
  /** Returns the incomplete responses of an HTTP/1.1 connection. */
  getPendingResponses(socket: Socket): readonly ServerResponse[];
  /** Returns the bytes of an HTTP/1.1 connection that are received and not parsed yet. */
  countHeldBytes(socket: Socket): number;
}

/** Limits the memory and the time that responses take which their callers do not read. */
export interface ResponseMonitor {
  /** Called when a request begins and when it ends. */
  requestStarted(): void;
  requestEnded(): void;
  /** Returns the bytes that wait at the latest check: for callers to read them, or for this process to read them. */
  countUnsentBytes(): number;
  /** Returns how many connections and streams were closed so far, by cause. */
  getCuts(): Readonly<Record<ResponseCutCause, number>>;
}

export type ResponseCutCause = "unsent_bytes" | "response_deadline";

/** Bytes that were waiting for the peer at one time. */
interface Backlog {
  readonly bytes: number;
  /** What had been sent before: bytes of a connection, chunks of a stream. */
  readonly sentBefore: number;
  /** When the backlog has to be sent. */
  readonly deadline: number;
}

/** Interval of the checks of all connections. */
const CHECK_INTERVAL_MS = 1000;

/** New open requests that cause a check before the interval ends. */
const REQUESTS_PER_CHECK = 256;

/** Share of the budget that remains in use after connections are closed: otherwise the next response closes another. */
const TARGET_SHARE = 0.75;

/**
 * Creates a monitor. It checks all connections once per second, and whenever many requests were added: requests that
 * are answered and read at once cost it nothing.
 *
 * Socket timeouts do not serve this purpose: single bytes, PINGs and window updates of the peer count as progress.
 * Here only sent bytes do.
 */
export function createResponseMonitor(limits: HttpLimits, connections: MonitoredConnections): ResponseMonitor {
  const backlogs = new WeakMap<Socket | ServerHttp2Stream, Backlog>();
  /** When a check first found a stream closed and not destroyed. */
  const closedAt = new WeakMap<ServerHttp2Stream, number>();
  const cuts: Record<ResponseCutCause, number> = { unsent_bytes: 0, response_deadline: 0 };
  let openRequests = 0;
  let checkAt = REQUESTS_PER_CHECK;
  let unsentBytes = 0;
  /** Whether the last check found anything waiting, and this one: otherwise thousands of connections need no look-up. */
  let hadBacklogs = false;
  let hasBacklogs = false;
  let timer: NodeJS.Timeout | undefined;

  /** Returns whether bytes have been waiting for too long. Bytes that wait behind them get a deadline of their own. */
  function isOverdue(
    owner: Socket | ServerHttp2Stream,
    waiting: number,
    sent: number,
    isSent: (backlog: Backlog) => boolean,
    now: number,
  ): boolean {
    if (waiting === 0) {
      if (hadBacklogs) backlogs.delete(owner);
      return false;
    }
    hasBacklogs = true;
    const backlog = backlogs.get(owner);
    if (backlog !== undefined && !isSent(backlog)) return now >= backlog.deadline;
    const allowedMs = Math.max(limits.responseMs, (waiting / limits.minBytesPerSecond) * 1000);
    backlogs.set(owner, { bytes: waiting, sentBefore: sent, deadline: now + allowedMs });
    return false;
  }

  /** @param sent bytes that the connection has sent so far, of all responses */
  function isConnectionOverdue(socket: Socket, waiting: number, sent: number, now: number): boolean {
    return isOverdue(socket, waiting, sent, ({ bytes, sentBefore }) => sent >= sentBefore + bytes, now);
  }

  /**
   * A stream does not tell how many bytes it has sent: a complete response has one deadline, an endless one must make
   * progress. As many bytes as before may wait although its caller reads: the next message takes the place of the last.
   * No bytes wait of a complete response whose trailers need flow control, or whose request has not ended.
   */
  function isStreamOverdue(stream: ServerHttp2Stream, now: number): boolean {
    const waiting = Math.max(stream.writableLength, Number(isComplete(stream)));
    const flushed = countFlushedChunks(stream);
    const hasProgressed = ({ bytes, sentBefore }: Backlog) => waiting < bytes || flushed > sentBefore;
    return isOverdue(stream, waiting, flushed, (backlog) => !stream.writableEnded && hasProgressed(backlog), now);
  }

  function checkStreams(
    socket: Socket,
    streams: readonly { readonly stream: ServerHttp2Stream }[],
    now: number,
  ): number {
    let bytes = countQueuedBytes(socket) ?? 0;
    if (isConnectionOverdue(socket, bytes, countWrittenBytes(socket) - bytes, now)) {
      cut(socket, "response_deadline");
      return 0;
    }
    // A copy: streams that are closed leave the list.
    for (const { stream } of [...streams]) {
      if (stream.closed) destroyClosed(stream, now);
      const waiting = stream.writableLength;
      bytes += stream.readableLength;
      if (waiting === 0 && !isComplete(stream) && !backlogs.has(stream)) continue;
      if (isStreamOverdue(stream, now)) {
        cuts.response_deadline += 1;
        const isSent = stream.state.localClose === 1;
        stream.close(isSent ? constants.NGHTTP2_NO_ERROR : constants.NGHTTP2_CANCEL);
      } else bytes += Math.max(0, waiting - countSharedBytes(stream));
    }
    return bytes;
  }

  /** Node.js keeps a stream for ever that its caller resets with NO_ERROR before its response is sent. */
  function destroyClosed(stream: ServerHttp2Stream, now: number): void {
    const since = closedAt.get(stream);
    if (since === undefined) closedAt.set(stream, now);
    // Not at once: one that has just been closed may still have to report the end of its response.
    else if (now - since >= CHECK_INTERVAL_MS) stream.destroy();
  }

  function checkHttp1(socket: Socket, now: number): number {
    const responses = connections.getPendingResponses(socket);
    const waiting = socket.writableLength;
    // Node.js adds up the bytes written of all that waits: not for connections at which nothing does.
    const sent = waiting === 0 ? 0 : socket.bytesWritten - waiting;
    if (isConnectionOverdue(socket, waiting, sent, now)) {
      cut(socket, "response_deadline");
      return 0;
    }
    let bytes = connections.countHeldBytes(socket) + (responses.at(-1)?.req.readableLength ?? 0);
    for (const response of responses) {
      const { writableLength } = response;
      if (writableLength > 0) bytes += Math.max(0, writableLength - countSharedBytes(response));
    }
    return bytes;
  }

  function cut(socket: Socket, cause: ResponseCutCause): void {
    cuts[cause] += 1;
    socket.destroy();
  }

  function reduce(holdings: readonly Holding<Socket>[]): void {
    for (const { item: socket, bytes } of takeLargestFirst(holdings)) {
      if (unsentBytes <= limits.unsentBytes * TARGET_SHARE) break;
      unsentBytes -= bytes;
      cut(socket, "unsent_bytes");
    }
  }

  function check(): void {
    const now = performance.now();
    const holdings: Holding<Socket>[] = [];
    unsentBytes = 0;
    hadBacklogs = hasBacklogs;
    hasBacklogs = false;
    let isEmpty = true;
    for (const [socket, caller] of connections.getCallers()) {
      isEmpty = false;
      const streams = connections.getStreams(socket);
      const bytes = streams === undefined ? checkHttp1(socket, now) : checkStreams(socket, streams, now);
      if (bytes === 0) continue;
      holdings.push({ caller, item: socket, bytes });
      unsentBytes += bytes;
    }
    if (unsentBytes > limits.unsentBytes) reduce(holdings);
    checkAt = openRequests + REQUESTS_PER_CHECK;
    if (!isEmpty) return;
    clearInterval(timer);
    timer = undefined;
  }

  return {
    requestStarted() {
      openRequests += 1;
      timer ??= setInterval(check, CHECK_INTERVAL_MS).unref();
      if (openRequests >= checkAt) check();
    },
    requestEnded() {
      openRequests -= 1;
    },
    countUnsentBytes: () => unsentBytes,
    getCuts: () => cuts,
  };
}

/** Returns whether nothing will be added to a response. Node.js ends those to HEAD before they begin. */
function isComplete(stream: ServerHttp2Stream): boolean {
  return stream.headersSent && stream.writableEnded;
}
