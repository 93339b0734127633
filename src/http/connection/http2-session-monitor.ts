import { constants, type ServerHttp2Session } from "node:http2";
import type { HttpLimits } from "./http-limits.js";

/** The connections of HTTP/2 that are open. */
export interface Http2SessionMonitor extends Iterable<ServerHttp2Session> {
  add(session: ServerHttp2Session): void;
  /** Whether a connection has no request open. */
  isIdle(session: ServerHttp2Session): boolean;
}

interface SessionState {
  /** Requests that it has open, and that it ever had. */
  openStreams: number;
  totalStreams: number;
  /** Requests that ended before their answers did, less those that are forgiven by now. */
  recentResets: number;
  idleSince: number;
  /** When it was asked for a sign of life, and whether that has not come yet. */
  pingedAt: number;
  isPingPending: boolean;
  readonly openedAt: number;
}

/** Why a connection was ended: too many bytes that are no requests, no word from it. */
export const SESSION_ERROR_CODES = ["EXCESS_BYTES", "KEEPALIVE_TIMEOUT"] as const;

/** How often all connections are looked at. */
const CHECK_INTERVAL_MS = 1000;

/**
 * Requests that a connection may break off in a burst, and in every second after it; then it takes no more of them. That
 * costs a client whose deadlines run out nothing: what it has open goes on, the rest on another connection. Node.js
 * knows such a limit, too, about twice this one, but then leaves the connection open and silent.
 */
const MAX_RESET_BURST = 500;
const RESET_REFILL_PER_SECOND = 33;

/** Bytes that a connection may bring beyond its requests: altogether, and in every second. */
const EXCESS_BYTES_BURST = 1024 * 1024;
const EXCESS_BYTES_PER_SECOND = 16 * 1024;

/**
 * Watches connections of HTTP/2 for what Node.js lets pass. It refuses by itself: floods of PING, SETTINGS, CONTINUATION
 * and empty DATA, windows that overflow, frames and header lists that are too large, more requests than allowed.
 * A connection that it cuts has an error whose code is one of SESSION_FAULTS.
 */
export function createHttp2SessionMonitor(limits: HttpLimits): Http2SessionMonitor {
  const states = new Map<ServerHttp2Session, SessionState>();
  let look: NodeJS.Timeout | undefined;

  function refuse(session: ServerHttp2Session, code: (typeof SESSION_ERROR_CODES)[number]): void {
    session.destroy(Object.assign(new Error(code), { code }), constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }

  function examine(session: ServerHttp2Session, state: SessionState, now: number): void {
    state.recentResets = Math.max(0, state.recentResets - RESET_REFILL_PER_SECOND);
    const seconds = (now - state.openedAt) / 1000;
    const allowed =
      EXCESS_BYTES_BURST +
      seconds * EXCESS_BYTES_PER_SECOND +
      state.totalStreams * (2 * limits.headerBytes + 2 * limits.requestBytes);
    if (session.socket.bytesRead > allowed) refuse(session, "EXCESS_BYTES");
    else if (state.openStreams === 0 && now - state.idleSince >= limits.idleMs) session.destroy();
    else if (now - state.pingedAt >= limits.pingIntervalMs) {
      // Not answered by one who sends half a frame, nor where Node.js has given the connection up but not closed it.
      if (state.isPingPending) refuse(session, "KEEPALIVE_TIMEOUT");
      else {
        state.pingedAt = now;
        state.isPingPending = session.ping(() => {
          state.isPingPending = false;
        });
      }
    }
  }

  function lookAtAll(): void {
    const now = performance.now();
    for (const [session, state] of states) if (!session.destroyed) examine(session, state, now);
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
      look ??= setInterval(lookAtAll, CHECK_INTERVAL_MS).unref();
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
        clearInterval(look);
        look = undefined;
      });
    },
    isIdle: (session) => states.get(session)?.openStreams === 0,
    [Symbol.iterator]: () => states.keys(),
  };
}
