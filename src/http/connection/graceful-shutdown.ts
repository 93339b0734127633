import type { Server, ServerResponse } from "node:http";
import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import type { ConnectionRegistry } from "./connection-registry.js";
import type { Http2SessionMonitor } from "./http2/http2-session-monitor.js";
import { endSessionNow } from "./http2/session-end.js";
import { closeSessionGracefully } from "./http2/session-shutdown.js";

/** How long idle connections of HTTP/1.1 stay open, since requests may still be on their way. */
const LAST_REQUESTS_MS = 100;

/** How long connections in the accept queue are still accepted. New ones may keep arriving for ever. */
const ACCEPT_DRAIN_MS = 1000;

/** The parts of a listener that a shutdown works on. */
export interface ShutdownTargets {
  readonly http1: Server;
  readonly sockets: ConnectionRegistry;
  readonly sessions: Http2SessionMonitor;
  /** Connections whose protocol is not known yet. */
  readonly unsniffed: ReadonlySet<Socket>;
  /** Returns the HTTP/2 session of a connection. */
  getSession(socket: Socket): ServerHttp2Session | undefined;
  /** Returns the incomplete responses of an HTTP/1.1 connection. */
  getPendingResponses(socket: Socket): readonly ServerResponse[];
  /** Returns the number of connections accepted so far. */
  countAccepted(): number;
}

/**
 * Stops listening, waits up to `graceMs` milliseconds for the requests in progress, then closes what is left. The caller
 * has marked the listener as draining: it closes sessions of HTTP/2 itself that begin from now on.
 */
export async function shutDownGracefully(targets: ShutdownTargets, graceMs: number): Promise<void> {
  const { http1, sockets, sessions, unsniffed, getSession, getPendingResponses } = targets;
  for (const socket of sockets) {
    const session = getSession(socket);
    if (session !== undefined) closeSessionGracefully(session, socket);
  }
  await drainAcceptQueue(targets.countAccepted);
  // Node.js would close idle connections at once, including those whose last response or next request is in transit.
  http1.closeIdleConnections = () => {};
  const allClosed = new Promise<void>((resolve) => http1.close(() => resolve()));
  for (const socket of sockets) {
    for (const res of getPendingResponses(socket)) if (!res.headersSent) res.setHeader("Connection", "close");
  }
  function closeIdle(): void {
    for (const socket of unsniffed) socket.destroy();
    // A connection with an incomplete request has nothing to finish.
    for (const socket of sockets) {
      if (getSession(socket) === undefined && getPendingResponses(socket).length === 0) socket.destroySoon();
    }
  }
  // One more turn of the event loop: a busy process may not have read what has arrived.
  const noticeTimer = setTimeout(() => setImmediate(closeIdle), Math.min(LAST_REQUESTS_MS, graceMs));
  const forceCloseTimer = setTimeout(() => {
    for (const session of sessions) endSessionNow(session);
    for (const socket of sockets) socket.destroy();
  }, graceMs);
  await allClosed;
  clearTimeout(noticeTimer);
  clearTimeout(forceCloseTimer);
}

/**
 * Waits until the accept queue of the system is empty: the end of listening resets the connections in it, together with
 * requests that they may carry. Node.js accepts one in each turn of its event loop; the first turn may be over already.
 */
async function drainAcceptQueue(countAccepted: () => number): Promise<void> {
  const end = performance.now() + ACCEPT_DRAIN_MS;
  for (let idleTurns = 0; idleTurns < 2 && performance.now() < end; ) {
    const before = countAccepted();
    await new Promise((resolve) => setImmediate(resolve));
    idleTurns = countAccepted() === before ? idleTurns + 1 : 0;
  }
}
