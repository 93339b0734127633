import { constants, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { Connection, ConnectionProtocol, OverloadManager } from "../admission/overload-manager.js";
import { removeItem } from "../request/in-flight-requests.js";
import { countSharedBytes } from "../request/response.js";
import { countFlushedChunks } from "../stream/flushed-chunk.js";
import { type Http2StreamPlace, notePlace, releasePlace } from "../stream/stream-places.js";
import type { HttpLimits } from "./http-limits.js";
import { closeSessionGracefully, endSessionNow, refuseStream } from "./http2-session.js";
import { SendDeadline } from "./send-deadline.js";

/**
 * Codes of the errors of sessions that end because of their peer: too many bytes beyond requests, too many refused
 * requests, no answer to a PING, and an error of the protocol, for which Node.js has the same code where it reports it.
 */
export const SESSION_ERROR_CODES = ["EXCESS_BYTES", "REFUSED_STREAMS", "KEEPALIVE_TIMEOUT", "ERR_HTTP2_ERROR"] as const;

/** How long a failed session may take to send its GOAWAY. Node.js waits for ever if the peer does not read. */
const FAILED_LINGER_MS = 1000;

/** How long a stream may take to end after it was closed. */
const CLOSED_LINGER_MS = 1000;

/**
 * Rapid reset (CVE-2023-44487): requests that a session may reset in a burst, and per second after it. Beyond that it
 * accepts no more requests. A client whose deadlines expire loses nothing: open requests continue, others go over a new
 * connection. Node.js has such a limit too, about twice as high, but then leaves the connection open and silent.
 */
const MAX_RESET_BURST = 500;
const RESET_REFILL_PER_SECOND = 33;

/**
 * Refused streams in a row that end a session without open streams: refusing one takes the time of an error with its
 * stack, so that a flood of them would occupy the process although none is served.
 */
const MAX_REFUSED_IN_ROW = 32;

/**
 * Bytes that a session may send beyond its requests: in total, and per second. More is a flood of frames that nghttp2
 * accepts and nobody asked for: PRIORITY, padding, unknown frames, PINGs below the limit of Node.js.
 */
const EXCESS_BYTES_BURST = 1024 * 1024;
const EXCESS_BYTES_PER_SECOND = 16 * 1024;

/** A stream that was admitted and is not closed. */
interface OpenStream extends Http2StreamPlace {
  readonly stream: ServerHttp2Stream;
  readonly caller: string;
  /** Undefined until something waits for its caller. */
  sendDeadline: SendDeadline | undefined;
  /** When a check first found it closed. */
  closedAt: number | undefined;
}

/**
 * An HTTP/2 connection: its open streams, and the abuse of it that Node.js accepts. Node.js itself rejects floods of
 * PING, SETTINGS, CONTINUATION and empty DATA frames, window overflows, oversized frames and header lists, and too many
 * streams. A session that ends here has an error with one of SESSION_ERROR_CODES.
 */
export class Http2Connection implements ConnectionProtocol {
  readonly #session: ServerHttp2Session;
  readonly #connection: Connection;
  /** The socket itself, which outlives the session and its proxy for it. */
  readonly #socket: Socket;
  readonly #limits: HttpLimits;
  readonly #overload: OverloadManager;
  readonly #sendDeadline: SendDeadline;
  /** The oldest first. */
  readonly #openStreams: OpenStream[] = [];
  /** The number of all requests so far, and at the latest check. */
  #totalStreams = 0;
  #checkedStreams = 0;
  /** Streams that were refused since one was admitted. */
  #refusedInRow = 0;
  /** Whether the session ends because of them. */
  #isFlood = false;
  /** Level of the token bucket of resets: requests that ended before their responses, minus the refill. */
  #recentResets = 0;
  readonly #openedAt = performance.now();
  #idleSince = this.#openedAt;
  /** Time of the latest PING, and whether its acknowledgement is missing. */
  #pingedAt = this.#openedAt;
  #isPingPending = false;
  /** Bytes received when the latest PING was acknowledged: the session has processed them. */
  #processedBytes = 0;
  /** When the session was first seen destroyed with its connection open. */
  #destroyedAt: number | undefined;
  #isClosed: boolean;

  constructor(session: ServerHttp2Session, connection: Connection, limits: HttpLimits, overload: OverloadManager) {
    this.#session = session;
    this.#isClosed = session.destroyed;
    this.#connection = connection;
    this.#socket = connection.socket;
    this.#limits = limits;
    this.#overload = overload;
    this.#sendDeadline = new SendDeadline(limits);
    session.once("close", () => {
      this.#isClosed = true;
      // Streams with unread data get no event at the end of their session.
      for (const open of [...this.#openStreams]) this.#remove(open);
    });
  }

  /** The address of the peer. */
  get address(): string | undefined {
    return this.#socket.remoteAddress;
  }

  /** Admits a new stream. Returns false if it refuses it, with a code that allows another attempt (RFC 9113 8.7). */
  admit(stream: ServerHttp2Stream, caller: string): boolean {
    this.#overload.reads.countRequest(this.#connection);
    if (this.#isFlood || this.#isClosed) return false;
    this.#totalStreams += 1;
    // Reset before Node.js announced it: it only has to be logged.
    if (stream.destroyed) {
      this.#countReset();
      return true;
    }
    const release = this.#overload.tryOpenStream(caller);
    if (release === undefined) {
      this.#refuse(stream);
      return false;
    }
    this.#refusedInRow = 0;
    const open: OpenStream = { stream, caller, release, sendDeadline: undefined, closedAt: undefined };
    notePlace(stream, open);
    this.#openStreams.push(open);
    stream.on("close", () => {
      this.#remove(open);
      if (stream.rstCode !== constants.NGHTTP2_NO_ERROR) this.#countReset();
    });
    return true;
  }

  isIdle(): boolean {
    return this.#openStreams.length === 0;
  }

  listCallers(): Iterable<string> {
    return this.#openStreams.map(({ caller }) => caller);
  }

  checkPeer(now: number): void {
    if (this.#session.destroyed) this.#checkDestroyed(now);
    else this.#checkSession(now);
  }

  isOverdue(now: number): boolean {
    for (const open of [...this.#openStreams]) this.#checkStream(open, now);
    const { written, queued = 0 } = countOutput(this.#socket);
    return this.#sendDeadline.isOver(now, queued, written - queued);
  }

  countBytes(): number {
    let { queued: bytes = 0 } = countOutput(this.#socket);
    for (const { stream } of this.#openStreams) {
      const waiting = stream.writableLength;
      bytes += stream.readableLength;
      if (waiting > 0) bytes += Math.max(0, waiting - countSharedBytes(stream));
    }
    return bytes;
  }

  closeGracefully(): void {
    closeSessionGracefully(this.#session, this.#socket);
  }

  /** Does nothing: a session that closes gracefully closes when it is idle. */
  closeIfIdle(): void {}

  destroy(): void {
    endSessionNow(this.#session);
    this.#socket.destroy();
  }

  #refuse(stream: ServerHttp2Stream): void {
    this.#refusedInRow += 1;
    this.#countReset();
    this.#isFlood = this.#refusedInRow > MAX_REFUSED_IN_ROW && this.#openStreams.length === 0;
    if (this.#isFlood) this.#endSession("REFUSED_STREAMS");
    else refuseStream(stream);
  }

  #remove(open: OpenStream): void {
    if (!removeItem(this.#openStreams, open)) return;
    if (this.#openStreams.length === 0) this.#idleSince = performance.now();
    releasePlace(open);
  }

  /** Counts a stream that ended before its response. */
  #countReset(): void {
    this.#recentResets += 1;
    if (this.#recentResets > MAX_RESET_BURST) this.#session.close();
  }

  #endSession(code: (typeof SESSION_ERROR_CODES)[number]): void {
    const goAwayCode =
      code === "ERR_HTTP2_ERROR" ? constants.NGHTTP2_PROTOCOL_ERROR : constants.NGHTTP2_ENHANCE_YOUR_CALM;
    this.#session.destroy(Object.assign(new Error(code), { code }), goAwayCode);
  }

  #checkSession(now: number): void {
    const limits = this.#limits;
    this.#recentResets = Math.max(0, this.#recentResets - RESET_REFILL_PER_SECOND);
    const allowed =
      EXCESS_BYTES_BURST +
      ((now - this.#openedAt) / 1000) * EXCESS_BYTES_PER_SECOND +
      this.#totalStreams * (2 * limits.headerBytes + 2 * limits.requestBytes);
    const { bytesRead } = this.#socket;
    const isQuiet = this.#totalStreams === this.#checkedStreams;
    this.#checkedStreams = this.#totalStreams;
    if (bytesRead > allowed) this.#endSession("EXCESS_BYTES");
    else if (this.isIdle() && now - this.#idleSince >= limits.idleMs) this.#session.destroy();
    else if (now - this.#pingedAt >= limits.pingIntervalMs) {
      // Unanswered if the peer sends half a frame, for example.
      if (this.#isPingPending) this.#endSession("KEEPALIVE_TIMEOUT");
      else this.#ping(now);
    } else if (isQuiet && bytesRead !== this.#processedBytes && !this.#isPingPending) {
      // Once after each burst of requests: one of its last frames may have been fatal.
      this.#ping(now);
    }
  }

  /**
   * Sends a PING, and ends a session that does not send it: for some errors, such as a frame that is too large, nghttp2
   * sends GOAWAY and neither reads nor writes again, which Node.js does not report. In a session that closes, Node.js
   * sends none: SETTINGS without a change must be answered just so (RFC 9113 6.5).
   */
  #ping(now: number): void {
    const session = this.#session;
    const { bytesWritten } = this.#socket;
    this.#pingedAt = now;
    this.#isPingPending = true;
    const noteAnswer = (): void => {
      this.#isPingPending = false;
      this.#processedBytes = this.#socket.bytesRead;
    };
    if (session.closed) session.settings({}, noteAnswer);
    else session.ping(noteAnswer);
    // Node.js sends in the next turn of the event loop, or after the write in progress.
    setImmediate(() =>
      setImmediate(() => {
        const hasFailed = this.#socket.bytesWritten === bytesWritten && countOutput(this.#socket).queued === 0;
        if (hasFailed && !session.destroyed) this.#endSession("ERR_HTTP2_ERROR");
      }),
    );
  }

  /** Closes the connection of a session that has ended: at once after a failure, after the last response otherwise. */
  #checkDestroyed(now: number): void {
    this.#destroyedAt ??= now;
    const lingerMs = this.#session.closed ? this.#limits.responseMs : FAILED_LINGER_MS;
    if (now - this.#destroyedAt >= lingerMs) this.#socket.destroy();
  }

  /**
   * Closes a stream whose caller does not read. The bytes that a stream has sent are not known: a complete response has
   * one deadline, an endless one must make progress. As many bytes as before may wait although its caller reads: the
   * next message takes the place of the last. No bytes wait of a complete response whose trailers need flow control, or
   * whose request has not ended.
   */
  #checkStream(open: OpenStream, now: number): void {
    const { stream } = open;
    if (stream.closed) {
      // Node.js keeps a stream for ever that its caller resets with NO_ERROR before its response is sent. Not at once:
      // one that has just been closed may still have to report the end of its response.
      open.closedAt ??= now;
      if (now - open.closedAt >= CLOSED_LINGER_MS) stream.destroy();
      return;
    }
    // Node.js ends responses to HEAD before they begin.
    const isComplete = stream.headersSent && stream.writableEnded;
    const waiting = Math.max(stream.writableLength, Number(isComplete));
    if (waiting === 0 && open.sendDeadline === undefined) return;
    open.sendDeadline ??= new SendDeadline(this.#limits);
    const flushed = countFlushedChunks(stream);
    const isSent = (waited: number, flushedBefore: number): boolean =>
      !stream.writableEnded && (waiting < waited || flushed > flushedBefore);
    if (!open.sendDeadline.isOver(now, waiting, flushed, isSent)) return;
    this.#overload.countOverdueStream();
    stream.close(stream.state.localClose === 1 ? constants.NGHTTP2_NO_ERROR : constants.NGHTTP2_CANCEL);
  }
}

/**
 * Returns the bytes written to a connection so far, and those of them that wait to be passed to the system. HTTP/2
 * writes to its handle, below the counters of the socket. Node.js uses both for its timeouts.
 */
function countOutput(socket: Socket): { readonly written: number; readonly queued: number | undefined } {
  const { _handle: handle } = socket as { _handle?: { bytesWritten?: number; writeQueueSize?: number } | null };
  return { written: handle?.bytesWritten ?? 0, queued: handle?.writeQueueSize };
}
