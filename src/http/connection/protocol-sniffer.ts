import type { Socket } from "node:net";
import { readBuffered } from "./read-buffered.js";

/** The first bytes of every HTTP/2 connection (RFC 9113 3.4); no HTTP/1.1 request begins with them. */
const HTTP2_PREFACE_START = "PRI";

const EMPTY: Buffer = Buffer.alloc(0);

/**
 * Detects the protocol of a new connection and puts the bytes it has read back. Closes a connection that ends earlier
 * or sends too little within `timeoutMs`.
 * @param onDetected called once, unless the connection closes first; `start` is what the connection has sent so far
 */
export function sniffProtocol(
  socket: Socket,
  timeoutMs: number,
  onDetected: (isHttp2: boolean, start: Buffer) => void,
): void {
  let start = EMPTY;
  const timer = setTimeout(() => socket.destroy(), timeoutMs);

  function onReadable(): void {
    const chunk = readBuffered(socket);
    if (chunk === null) return;
    start = start.length === 0 ? chunk : Buffer.concat([start, chunk]);
    if (start.length < HTTP2_PREFACE_START.length) return;
    end();
    socket.unshift(start);
    onDetected(start.toString("latin1", 0, HTTP2_PREFACE_START.length) === HTTP2_PREFACE_START, start);
  }
  /** Leaves no listener that would keep this scope in memory for as long as the connection is open. */
  function end(): void {
    clearTimeout(timer);
    socket.off("readable", onReadable);
    socket.off("end", destroy);
    socket.off("close", end);
  }

  socket.on("readable", onReadable);
  socket.on("end", destroy);
  socket.on("error", destroy);
  socket.on("close", end);
}

function destroy(this: Socket): void {
  this.destroy();
}
