import { constants, type Http2ServerResponse, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { WorkOwner } from "../../resilience/caller-ring.js";
import type { FairScheduler } from "../../resilience/fair-scheduler.js";

// What Node's HTTP/2 sessions and streams must not do at any time, or cannot do by themselves.

/**
 * GOAWAY with NO_ERROR and 2^31-1 (RFC 9113 6.8): open no more streams, those on their way are served. Not sent by
 * `session.goaway`, after which nghttp2 drops new streams without a word, and reads nothing if none is open. Node.js
 * writes whole frames, so that this one is never inside another.
 */
const SHUTDOWN_NOTICE = Buffer.from([0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]);

/** How long a peer may take to read the notice. */
const NOTICE_TIMEOUT_MS = 5_000;

/** Time for streams that the peer had begun, but not sent, when it read the notice. */
const LAST_STREAMS_MS = 100;

/**
 * Makes a session end, and begin to close, in the next turn of the event loop: Node.js calls both while nghttp2 reads a
 * chunk, as after a GOAWAY, and what follows in the same input then ends the process. After the end, an invalid frame
 * fails an assertion of nghttp2 1.61 (Node.js 20), DATA fails one of Node.js (nodejs/node#64850), and Node.js 26 passes
 * another chunk to a session that is gone. After the close, a request is refused in the midst of its own frame, which
 * uses memory that is free (nodejs/node#64166); once the GOAWAY is sent, nghttp2 ignores it.
 */
export function deferSessionEnd(session: ServerHttp2Session): void {
  const { close } = session;
  session.close = (callback) => void setImmediate(() => close.call(session, callback));
  let isEnding = false;
  session.destroy = (error, code) => {
    if (isEnding) return;
    isEnding = true;
    setImmediate(() => endSessionNow(session, error, code));
  };
}

/** Ends a session at once. Must not be called by an event of a session, since nghttp2 may be reading. */
export function endSessionNow(session: ServerHttp2Session, ...reason: Parameters<ServerHttp2Session["destroy"]>): void {
  // The method of its class is left.
  Reflect.deleteProperty(session, "destroy");
  session.destroy(...reason);
}

/** The error of all refused streams: Node.js would create one for each, and read its stack, half of what a refusal takes. */
const STREAM_REFUSED = new Error("the stream was refused");

/** Refuses a stream that its caller may open again (RFC 9113 8.7): not while nghttp2 reads its headers, as above. */
export function refuseStream(stream: ServerHttp2Stream): void {
  const { destroy } = stream;
  stream.destroy = (error = STREAM_REFUSED) => destroy.call(stream, error);
  setImmediate(() => stream.close(constants.NGHTTP2_REFUSED_STREAM));
}

/**
 * Closes a session without refusing a stream: announces the end, and accepts no more streams once the peer has read
 * that. The answer to a PING shows that it has, and comes after all streams that it sent before.
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

/** Serves a stream in its turn, with the end of an empty body that comes before: its listeners would miss it. */
export function serveInTurn(
  stream: ServerHttp2Stream,
  owner: WorkOwner,
  eventLoop: FairScheduler,
  serve: () => void,
): void {
  let isWaiting = false;
  let hasServed = false;
  let hasEnded = false;
  eventLoop.begin(owner, () => {
    hasServed = true;
    if (isWaiting && stream.destroyed) return;
    serve();
    if (hasEnded) stream.emit("end");
  });
  if (hasServed) return;
  isWaiting = true;
  // A stream that is not served at once has no other listener.
  stream.on("error", () => {});
  stream.once("end", () => {
    hasEnded = true;
  });
}

/**
 * Sends 100 Continue, unless the caller has reset its stream: Node.js throws for such a stream, outside of any handler,
 * which ends the process. It does so by itself where nothing listens to "checkContinue".
 */
export function grantContinue(res: Http2ServerResponse): void {
  const { stream } = res;
  if (!stream.destroyed && !stream.closed) res.writeContinue();
}
