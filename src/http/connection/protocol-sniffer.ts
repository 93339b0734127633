import type { Socket } from "node:net";

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
  const timer = setTimeout(destroy, timeoutMs);

  function onReadable(): void {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    start = start.length === 0 ? chunk : Buffer.concat([start, chunk]);
    if (start.length < HTTP2_PREFACE_START.length) return;
    end();
    const received = start;
    // The listener for the end of the connection keeps this scope in memory.
    start = EMPTY;
    socket.unshift(received);
    onDetected(received.toString("latin1", 0, HTTP2_PREFACE_START.length) === HTTP2_PREFACE_START, received);
  }
  function end(): void {
    clearTimeout(timer);
    socket.off("readable", onReadable);
    socket.off("end", destroy);
  }
  function destroy(): void {
    socket.destroy();
  }

  socket.on("readable", onReadable);
  socket.on("end", destroy);
  socket.on("error", destroy);
  socket.once("close", end);
}
