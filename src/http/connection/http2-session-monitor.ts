import { constants, type ServerHttp2Session } from "node:http2";
import type { HttpLimits } from "./http-limits.js";

/** The open HTTP/2 sessions. */
export interface Http2SessionMonitor extends Iterable<ServerHttp2Session> {
  add(session: ServerHttp2Session): void;
  /** Returns whether a session has no open request. */
  isIdle(session: ServerHttp2Session): boolean;
}

interface SessionState {
  /** Requests that are open, and all requests so far. */
  openStreams: number;
  totalStreams: number;
  /** Level of the token bucket of resets: requests that ended before their responses, minus the refill. */
  recentResets: number;
  idleSince: number;
  /** Time of the latest PING, and whether its acknowledgement is missing. */
  pingedAt: number;
  isPingPending: boolean;
  readonly openedAt: number;
}

/** Codes of the errors of sessions that the monitor ends: too many bytes beyond requests, no answer to a PING. */
export const SESSION_ERROR_CODES = ["EXCESS_BYTES", "KEEPALIVE_TIMEOUT"] as const;

/** Interval of the checks of all sessions. */
const CHECK_INTERVAL_MS = 1000;

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
    session.destroy(Object.assign(new Error(code), { code }), constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }

  function checkSession(session: ServerHttp2Session, state: SessionState, now: number): void {
    state.recentResets = Math.max(0, state.recentResets - RESET_REFILL_PER_SECOND);
    const seconds = (now - state.openedAt) / 1000;
    const allowed =
      EXCESS_BYTES_BURST +
      seconds * EXCESS_BYTES_PER_SECOND +
      state.totalStreams * (2 * limits.headerBytes + 2 * limits.requestBytes);
    if (session.socket.bytesRead > allowed) endSession(session, "EXCESS_BYTES");
    else if (state.openStreams === 0 && now - state.idleSince >= limits.idleMs) session.destroy();
    else if (now - state.pingedAt >= limits.pingIntervalMs) {
      // Unanswered if the peer sends half a frame, or if Node.js has given up the session without closing it.
      if (state.isPingPending) endSession(session, "KEEPALIVE_TIMEOUT");
      else {
        state.pingedAt = now;
        state.isPingPending = session.ping(() => {
          state.isPingPending = false;
        });
      }
    }
  }

  function checkSessions(): void {
    const now = performance.now();
    for (const [session, state] of states) if (!session.destroyed) checkSession(session, state, now);
  }

  return {
    add(session) {
      const now = performance.now();
      const state: SessionState = {
        openStreams: 0,
        totalStreams: 0,
        recentResets: 0,
        idleSince: now,
        pingedAt: now,
        isPingPending: false,
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
