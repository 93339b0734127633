import { constants, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";

/**
 * Makes a session end, and begin to close, in the next turn of the event loop: Node.js calls both while nghttp2 reads a chunk,
 * as after a GOAWAY, and what follows in the same input then ends the process. After the end, an invalid frame fails an
 * assertion of nghttp2 1.61 (Node.js 20), DATA fails one of Node.js (nodejs/node#64850), and Node.js 26 passes another
 * chunk to a session that is gone. After the close, a request is refused in the midst of its own frame, which uses memory
 * that is free (nodejs/node#64166); once the GOAWAY is sent, nghttp2 ignores it.
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

/** Refuses a stream that its caller may open again (RFC 9113 8.7): not while nghttp2 reads its headers, as above. */
export function refuseStream(stream: ServerHttp2Stream): void {
  setImmediate(() => stream.close(constants.NGHTTP2_REFUSED_STREAM));
}
