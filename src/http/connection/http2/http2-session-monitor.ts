import { constants, type IncomingHttpHeaders, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { createFairQuota } from "../../../resilience/fair-quota.js";
import { removeItem } from "../../request/remove-item.js";
import { notePlace, releasePlace, type StreamPlace } from "../../stream/stream-place.js";
import type { HttpLimits } from "../http-limits.js";
import type { ResponseMonitor } from "../response-monitor.js";
import { countQueuedBytes } from "../socket-handle.js";
import { refuseStream } from "./session-end.js";

/** The open HTTP/2 sessions. */
export interface Http2SessionMonitor extends Iterable<ServerHttp2Session> {
  /** @param socket the connection itself, which outlives the session and its proxy for it */
  add(session: ServerHttp2Session, socket: Socket): void;
  /**
   * Admits a new stream and returns its place among the open streams of the session, from 1. Returns 0 if it refuses the
   * stream, which tells the caller that it may try again (RFC 9113 8.7).
   */
  addStream(session: ServerHttp2Session, stream: ServerHttp2Stream, headers: IncomingHttpHeaders): number;
  /** Returns the open streams of a session, the oldest first. */
  getStreams(session: ServerHttp2Session): readonly OpenStream[];
  /** Returns whether a session has no open request. */
  isIdle(session: ServerHttp2Session): boolean;
  /** Returns the number of open streams of all sessions that have a place. */
  countStreams(): number;
  /** Returns the number of streams that were refused so far because too many were open. */
  countRefused(): number;
}

export interface OpenStream extends StreamPlace {
  readonly stream: ServerHttp2Stream;
}

export interface Http2SessionMonitorOptions {
  readonly limits: HttpLimits;
  readonly monitor: ResponseMonitor;
  /** Returns the identity of the caller of a request, given the address of its peer. */
  identifyCaller(address: string | undefined, headers: IncomingHttpHeaders): string;
}

interface SessionState {
  readonly socket: Socket;
  /** Requests that are open, and the number of all requests so far. */
  readonly openStreams: OpenStream[];
  totalStreams: number;
  /** Streams that were refused since one was admitted. */
  refusedInRow: number;
  /** Whether the session ends because of them. */
  isFlood: boolean;
  /** Level of the token bucket of resets: requests that ended before their responses, minus the refill. */
  recentResets: number;
  idleSince: number;
  /** Time of the latest PING, and whether its acknowledgement is missing. */
  pingedAt: number;
  isPingPending: boolean;
  /** Bytes received when the latest PING was acknowledged: the session has processed them. */
  processedBytes: number;
  /** Value of `totalStreams` at the latest check. */
  checkedStreams: number;
  /** When the session was first seen destroyed with its connection open. */
  destroyedAt: number | undefined;
  readonly openedAt: number;
}

/**
 * Codes of the errors of sessions that the monitor ends: too many bytes beyond requests, too many refused requests, no
 * answer to a PING, and an error of the protocol, for which Node.js has the same code where it reports it.
 */
export const SESSION_ERROR_CODES = ["EXCESS_BYTES", "REFUSED_STREAMS", "KEEPALIVE_TIMEOUT", "ERR_HTTP2_ERROR"] as const;

const CHECK_INTERVAL_MS = 1000;

/** How long a failed session may take to send its GOAWAY. Node.js waits for ever if the peer does not read. */
const FAILED_LINGER_MS = 1000;

/**
 * Rapid reset (CVE-2023-44487): requests that a session may reset in a burst, and per second after it. Beyond that it
 * accepts no more requests. A client whose deadlines expire loses nothing: open requests continue, others go over a new
 * connection. Node.js has such a limit too, about twice as high, but then leaves the connection open and silent.
 */
const MAX_RESET_BURST = 500;
const RESET_REFILL_PER_SECOND = 33;

/** Refused streams in a row that end a session without open streams: refusing one costs as much as ending it. */
const MAX_REFUSED_IN_ROW = 32;

/** Bytes that a session may send beyond its requests: in total, and per second. */
const EXCESS_BYTES_BURST = 1024 * 1024;
const EXCESS_BYTES_PER_SECOND = 16 * 1024;

/**
 * Watches HTTP/2 sessions for abuse that Node.js accepts. Node.js itself rejects floods of PING, SETTINGS, CONTINUATION
 * and empty DATA frames, window overflows, oversized frames and header lists, and too many streams. A session that the
 * monitor ends has an error with one of SESSION_ERROR_CODES.
 */
export function createHttp2SessionMonitor({
  limits,
  monitor,
  identifyCaller,
}: Http2SessionMonitorOptions): Http2SessionMonitor {
  const states = new Map<ServerHttp2Session, SessionState>();
  const streamQuota = createFairQuota(() => limits.totalStreams);
  let refusedStreams = 0;
  let checkTimer: NodeJS.Timeout | undefined;

  function endSession(session: ServerHttp2Session, code: (typeof SESSION_ERROR_CODES)[number]): void {
    const goAwayCode =
      code === "ERR_HTTP2_ERROR" ? constants.NGHTTP2_PROTOCOL_ERROR : constants.NGHTTP2_ENHANCE_YOUR_CALM;
    session.destroy(Object.assign(new Error(code), { code }), goAwayCode);
  }

  /**
   * Sends a PING, and ends a session that does not send it: for some errors, such as a frame that is too large, nghttp2
   * sends GOAWAY and neither reads nor writes again, which Node.js does not report. In a session that closes, Node.js sends
   * none: SETTINGS without a change must be answered just so (RFC 9113 6.5).
   */
  function ping(session: ServerHttp2Session, state: SessionState, now: number): void {
    const { socket } = state;
    const { bytesWritten } = socket;
    state.pingedAt = now;
    state.isPingPending = true;
    const noteAnswer = (): void => {
      state.isPingPending = false;
      state.processedBytes = socket.bytesRead;
    };
    if (session.closed) session.settings({}, noteAnswer);
    else session.ping(noteAnswer);
    // Node.js sends in the next turn of the event loop, or after the write in progress.
    setImmediate(() =>
      setImmediate(() => {
        const hasFailed = socket.bytesWritten === bytesWritten && countQueuedBytes(socket) === 0;
        if (hasFailed && !session.destroyed) endSession(session, "ERR_HTTP2_ERROR");
      }),
    );
  }

  /** Closes the connection of a session that has ended: at once after a failure, after the last response otherwise. */
  function checkDestroyed(session: ServerHttp2Session, state: SessionState, now: number): void {
    state.destroyedAt ??= now;
    const lingerMs = session.closed ? limits.responseMs : FAILED_LINGER_MS;
    if (now - state.destroyedAt >= lingerMs) state.socket.destroy();
  }

  function checkSession(session: ServerHttp2Session, state: SessionState, now: number): void {
    state.recentResets = Math.max(0, state.recentResets - RESET_REFILL_PER_SECOND);
    const seconds = (now - state.openedAt) / 1000;
    const allowed =
      EXCESS_BYTES_BURST +
      seconds * EXCESS_BYTES_PER_SECOND +
      state.totalStreams * (2 * limits.headerBytes + 2 * limits.requestBytes);
    const { bytesRead } = state.socket;
    const isQuiet = state.totalStreams === state.checkedStreams;
    state.checkedStreams = state.totalStreams;
    if (bytesRead > allowed) endSession(session, "EXCESS_BYTES");
    else if (state.openStreams.length === 0 && now - state.idleSince >= limits.idleMs) session.destroy();
    else if (now - state.pingedAt >= limits.pingIntervalMs) {
      // Unanswered if the peer sends half a frame, for example.
      if (state.isPingPending) endSession(session, "KEEPALIVE_TIMEOUT");
      else ping(session, state, now);
    } else if (isQuiet && bytesRead !== state.processedBytes && !state.isPingPending) {
      // Once after each burst of requests: one of its last frames may have been fatal.
      ping(session, state, now);
    }
  }

  function checkSessions(): void {
    const now = performance.now();
    for (const [session, state] of states) {
      if (session.destroyed) checkDestroyed(session, state, now);
      else checkSession(session, state, now);
    }
  }

  function removeStream(state: SessionState, open: OpenStream): void {
    if (!removeItem(state.openStreams, open)) return;
    if (state.openStreams.length === 0) state.idleSince = performance.now();
    releasePlace(open);
    monitor.requestEnded();
  }

  /** Counts a stream that ended before its response. */
  function countReset(session: ServerHttp2Session, state: SessionState): void {
    state.recentResets += 1;
    if (state.recentResets > MAX_RESET_BURST) session.close();
  }

  return {
    add(session, socket) {
      const now = performance.now();
      const state: SessionState = {
        ...{ socket, openStreams: [], totalStreams: 0, refusedInRow: 0, isFlood: false, recentResets: 0 },
        idleSince: now,
        pingedAt: now,
        isPingPending: false,
        processedBytes: 0,
        checkedStreams: 0,
        destroyedAt: undefined,
        openedAt: now,
      };
      states.set(session, state);
      checkTimer ??= setInterval(checkSessions, CHECK_INTERVAL_MS).unref();
      session.once("close", () => {
        // Streams with unread data are not told of the end of their session.
        for (const open of [...state.openStreams]) removeStream(state, open);
        states.delete(session);
        if (states.size > 0) return;
        clearInterval(checkTimer);
        checkTimer = undefined;
      });
    },
    addStream(session, stream, headers) {
      const state = states.get(session);
      if (state === undefined || state.isFlood) return 0;
      state.totalStreams += 1;
      // Reset before Node.js announced it: it only has to be logged.
      if (stream.destroyed) {
        countReset(session, state);
        return 1;
      }
      const release = streamQuota.tryAcquire(identifyCaller(state.socket.remoteAddress, headers));
      if (release === undefined) {
        refusedStreams += 1;
        state.refusedInRow += 1;
        countReset(session, state);
        state.isFlood = state.refusedInRow > MAX_REFUSED_IN_ROW && state.openStreams.length === 0;
        if (state.isFlood) endSession(session, "REFUSED_STREAMS");
        else refuseStream(stream);
        return 0;
      }
      state.refusedInRow = 0;
      const open: OpenStream = { stream, release };
      notePlace(stream, open);
      state.openStreams.push(open);
      monitor.requestStarted();
      stream.on("close", () => {
        removeStream(state, open);
        if (stream.rstCode !== constants.NGHTTP2_NO_ERROR) countReset(session, state);
      });
      return state.openStreams.length;
    },
    getStreams: (session) => states.get(session)?.openStreams ?? [],
    countStreams: streamQuota.heldCount,
    countRefused: () => refusedStreams,
    isIdle: (session) => states.get(session)?.openStreams.length === 0,
    [Symbol.iterator]: () => states.keys(),
  };
}
