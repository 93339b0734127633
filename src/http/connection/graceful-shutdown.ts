import type { Server } from "node:http";
import type { OverloadManager } from "../admission/overload-manager.js";

/** How long idle connections of HTTP/1.1 stay open, since requests may still be on their way. */
const LAST_REQUESTS_MS = 100;

/** The longest accept queue: the default of Node.js. New connections may keep arriving for ever. */
const MAX_ACCEPT_QUEUE = 511;

/**
 * Stops listening, waits up to `graceMs` milliseconds for the requests in progress, then closes what is left. The
 * caller has marked the listener as draining: it closes connections itself that begin from now on.
 * @param countAccepted returns the number of connections accepted so far
 */
export async function shutDownGracefully(
  http1: Server,
  overload: OverloadManager,
  countAccepted: () => number,
  graceMs: number,
): Promise<void> {
  for (const { protocol } of overload.connections()) protocol?.closeGracefully();
  await drainAcceptQueue(countAccepted);
  // Node.js would close idle connections at once, including those whose last response or next request is in transit.
  http1.closeIdleConnections = () => {};
  const allClosed = new Promise<void>((resolve) => http1.close(() => resolve()));
  // One more turn of the event loop: a busy process may not have read what has arrived.
  const noticeTimer = setTimeout(() => setImmediate(closeIdle), Math.min(LAST_REQUESTS_MS, graceMs));
  const forceCloseTimer = setTimeout(destroyAll, graceMs);
  await allClosed;
  clearTimeout(noticeTimer);
  clearTimeout(forceCloseTimer);

  function closeIdle(): void {
    for (const { socket, protocol } of overload.connections()) {
      if (protocol === undefined) socket.destroy();
      else protocol.closeIfIdle();
    }
  }
  function destroyAll(): void {
    for (const { socket, protocol } of overload.connections()) {
      protocol?.destroy();
      socket.destroy();
    }
  }
}

/**
 * Waits until the accept queue of the system is empty: the end of listening resets the connections in it, together with
 * requests that they may carry. Node.js accepts one in each turn of its event loop; the first turn may be over already.
 */
async function drainAcceptQueue(countAccepted: () => number): Promise<void> {
  const last = countAccepted() + MAX_ACCEPT_QUEUE;
  for (let idleTurns = 0; idleTurns < 2 && countAccepted() < last; ) {
    const before = countAccepted();
    await new Promise((resolve) => setImmediate(resolve));
    idleTurns = countAccepted() === before ? idleTurns + 1 : 0;
  }
}
