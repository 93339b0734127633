import { constants, type ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import type { HttpLimits } from "./http-limits.js";

/** The open HTTP/2 sessions. */
export interface Http2SessionMonitor extends Iterable<ServerHttp2Session> {
  /** @param socket the connection itself, which outlives the session and its proxy for it */
  add(session: ServerHttp2Session, socket: Socket): void;
  /** Returns whether a session has no open request. */
  isIdle(session: ServerHttp2Session): boolean;
}

interface SessionState {
  readonly socket: Socket;
  /** Requests that are open, and all requests so far. */
  openStreams: number;
  totalStreams: number;
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
 * Codes of the errors of sessions that the monitor ends: too many bytes beyond requests, no answer to a PING, and an
 * error of the protocol, for which Node.js has the same code where it reports it.
 */
export const SESSION_ERROR_CODES = ["EXCESS_BYTES", "KEEPALIVE_TIMEOUT", "ERR_HTTP2_ERROR"] as const;

/** Interval of the checks of all sessions. */
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

/** Bytes that a session may send beyond its requests: in total, and per second. */
const EXCESS_BYTES_BURST = 1024 * 1024;
const EXCESS_BYTES_PER_SECOND = 16 * 1024;

/**
 * Watches HTTP/2 sessions for abuse that Node.js accepts. Node.js itself rejects floods of PING, SETTINGS, CONTINUATION
 * and empty DATA frames, window overflows, oversized frames and header lists, and too many streams. A session that the
 * monitor ends has an error with one of SESSION_ERROR_CODES.
 */
export function createHttp2SessionMonitor(limits: HttpLimits): Http2SessionMonitor {
  const states = new Map<ServerHttp2Session, SessionState>();
  let checkTimer: NodeJS.Timeout | undefined;

  function endSession(session: ServerHttp2Session, code: (typeof SESSION_ERROR_CODES)[number]): void {
    const goAwayCode =
      code === "ERR_HTTP2_ERROR" ? constants.NGHTTP2_PROTOCOL_ERROR : constants.NGHTTP2_ENHANCE_YOUR_CALM;
    session.destroy(Object.assign(new Error(code), { code }), goAwayCode);
  }

  /**
   * Sends a PING, and ends a session that does not send it: for some errors, such as a frame that is too large, nghttp2
   * sends GOAWAY and neither reads nor writes again, which Node.js does not report.
   */
  function ping(session: ServerHttp2Session, state: SessionState, now: number): void {
    const { socket } = state;
    const { bytesWritten } = socket;
    state.pingedAt = now;
    state.isPingPending = session.ping(() => {
      state.isPingPending = false;
      state.processedBytes = socket.bytesRead;
    });
    // Node.js sends in the next turn of the event loop, or after the write in progress.
    setImmediate(() =>
      setImmediate(() => {
        const hasFailed = socket.bytesWritten === bytesWritten && isFlushed(socket);
        if (hasFailed && !session.destroyed && !session.closed) endSession(session, "ERR_HTTP2_ERROR");
      }),
    );
  }

  /** Closes the connection of a session that has ended: at once after a failure, after the last response otherwise. */
  function checkDestroyed(session: ServerHttp2Session, state: SessionState, now: number): void {
    state.destroyedAt ??= now;
    const lingerMs = session.closed ? limits.stallMs : FAILED_LINGER_MS;
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
    else if (state.openStreams === 0 && now - state.idleSince >= limits.idleMs) session.destroy();
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

  return {
    add(session, socket) {
      const now = performance.now();
      const state: SessionState = {
        socket,
        openStreams: 0,
        totalStreams: 0,
        recentResets: 0,
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
      session.on("stream", (stream) => {
        state.openStreams += 1;
        state.totalStreams += 1;
        stream.once("close", () => {
          state.openStreams -= 1;
          if (state.openStreams === 0) state.idleSince = performance.now();
          if (stream.rstCode === constants.NGHTTP2_NO_ERROR) return;
          state.recentResets += 1;
          if (state.recentResets > MAX_RESET_BURST) session.close();
        });
      });
      session.once("close", () => {
        states.delete(session);
        if (states.size > 0) return;
        clearInterval(checkTimer);
        checkTimer = undefined;
      });
    },
    isIdle: (session) => states.get(session)?.openStreams === 0,
    [Symbol.iterator]: () => states.keys(),
  };
}

/** Returns whether all bytes were passed to the system. False if this version of Node.js does not tell. */
function isFlushed(socket: Socket): boolean {
  const { _handle: handle } = socket as { _handle?: { readonly writeQueueSize?: number } | null };
  return handle?.writeQueueSize === 0;
}
