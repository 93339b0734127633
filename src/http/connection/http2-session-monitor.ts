import { constants, type ServerHttp2Session } from "node:http2";
import type { HttpLimits } from "./http-limits.js";

/** The connections of HTTP/2 that are open. */
export interface Http2Sessions extends Iterable<ServerHttp2Session> {
  add(session: ServerHttp2Session): void;
  /** Whether a connection has no request open. */
  isIdle(session: ServerHttp2Session): boolean;
}

interface State {
  /** Requests that it has open, and that it ever had. */
  streams: number;
  asked: number;
  /** Requests that ended before their answers did, less those that are forgiven by now. */
  resets: number;
  idleSince: number;
  /** When it was asked for a sign of life, and whether that has not come yet. */
  probedAt: number;
  isProbed: boolean;
  readonly since: number;
}

/** Why a connection was ended: too many bytes that are no requests, no word from it. */
export const SESSION_FAULTS = ["FLOOD", "NO_SIGN_OF_LIFE"] as const;

/** How often all connections are looked at. */
const LOOK_MS = 1000;

/**
 * Requests that a connection may break off in a burst, and in every second after it; then it takes no more of them. That
 * costs a client whose deadlines run out nothing: what it has open goes on, the rest on another connection. Node.js
 * knows such a limit, too, about twice this one, but then leaves the connection open and silent.
 */
const MOST_RESETS = 500;
const FORGIVEN_RESETS = 33;

/** Bytes that a connection may bring beyond its requests: altogether, and in every second. */
const SPARE_BYTES = 1024 * 1024;
const SPARE_BYTES_PER_SECOND = 16 * 1024;

/**
 * Watches connections of HTTP/2 for what Node.js lets pass. It refuses by itself: floods of PING, SETTINGS, CONTINUATION
 * and empty DATA, windows that overflow, frames and header lists that are too large, more requests than allowed.
 * A connection that it cuts has an error whose code is one of SESSION_FAULTS.
 */
export function createHttp2Sessions(limits: HttpLimits): Http2Sessions {
  const states = new Map<ServerHttp2Session, State>();
  let look: NodeJS.Timeout | undefined;

  function refuse(session: ServerHttp2Session, code: (typeof SESSION_FAULTS)[number]): void {
    session.destroy(Object.assign(new Error(code), { code }), constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }

  function examine(session: ServerHttp2Session, state: State, now: number): void {
    state.resets = Math.max(0, state.resets - FORGIVEN_RESETS);
    const seconds = (now - state.since) / 1000;
    const allowed =
      SPARE_BYTES + seconds * SPARE_BYTES_PER_SECOND + state.asked * (2 * limits.headerBytes + 2 * limits.requestBytes);
    if (session.socket.bytesRead > allowed) refuse(session, "FLOOD");
    else if (state.streams === 0 && now - state.idleSince >= limits.idleMs) session.destroy();
    else if (now - state.probedAt >= limits.probeMs) {
      // Not answered by one who sends half a frame, nor where Node.js has given the connection up but not closed it.
      if (state.isProbed) refuse(session, "NO_SIGN_OF_LIFE");
      else {
        state.probedAt = now;
        state.isProbed = session.ping(() => {
          state.isProbed = false;
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
      const state: State = {
        streams: 0,
        asked: 0,
        resets: 0,
        idleSince: now,
        probedAt: now,
        isProbed: false,
        since: now,
      };
      states.set(session, state);
      look ??= setInterval(lookAtAll, LOOK_MS).unref();
      session.on("stream", (stream) => {
        state.streams += 1;
        state.asked += 1;
        stream.once("close", () => {
          state.streams -= 1;
          if (state.streams === 0) state.idleSince = performance.now();
          if (stream.rstCode === constants.NGHTTP2_NO_ERROR) return;
          state.resets += 1;
          if (state.resets > MOST_RESETS) session.close();
        });
      });
      session.once("close", () => {
        states.delete(session);
        if (states.size > 0) return;
        clearInterval(look);
        look = undefined;
      });
    },
    isIdle: (session) => states.get(session)?.streams === 0,
    [Symbol.iterator]: () => states.keys(),
  };
}
