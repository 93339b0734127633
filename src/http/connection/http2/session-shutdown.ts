import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";

/**
 * GOAWAY with NO_ERROR and 2^31-1 (RFC 9113 6.8): open no more streams, those on their way are served. Not sent by
 * `session.goaway`, after which nghttp2 drops new streams without a word, and reads nothing if none is open. Node.js writes
 * whole frames, so that this one is never inside another.
 */
const SHUTDOWN_NOTICE = Buffer.from([0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]);

/** How long a peer may take to read the notice. */
const NOTICE_TIMEOUT_MS = 5_000;

/** Time for streams that the peer had begun, but not sent, when it read the notice. */
const LAST_STREAMS_MS = 100;

/**
 * Closes a session without refusing a stream: tells the peer, and accepts no more streams once it has read that. The answer
 * to a PING shows that it has, and comes after all streams that it sent before.
 */
export function closeSessionGracefully(session: ServerHttp2Session, socket: Socket): void {
  // SETTINGS must come first (RFC 9113 3.4).
  if (session.pendingSettingsAck) session.once("localSettings", notify);
  else notify();

  function notify(): void {
    if (session.closed || session.destroyed) return;
    socket.write(SHUTDOWN_NOTICE);
    session.ping(() => closeAfter(LAST_STREAMS_MS));
  }
  function closeAfter(ms: number): void {
    // One more turn of the event loop: a busy process may not have read what has arrived.
    setTimeout(() => setImmediate(() => !session.destroyed && session.close()), ms).unref();
  }
  closeAfter(NOTICE_TIMEOUT_MS);
}
