import type { Socket } from "node:net";

/** The first bytes of every HTTP/2 connection, and of no HTTP/1.1 request. */
const HTTP2_PREFACE_START = "PRI";

/**
 * Finds out which HTTP a new connection speaks and hands it on, its first bytes given back. One that ends before, or says
 * too little within `waitMs`, is cut.
 * @param decide called once, unless the connection is gone by then
 */
export function sniffProtocol(socket: Socket, waitMs: number, decide: (isHttp2: boolean) => void): void {
  let start: Buffer = Buffer.alloc(0);
  const silent = setTimeout(cut, waitMs);

  function onReadable(): void {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    start = start.length === 0 ? chunk : Buffer.concat([start, chunk]);
    if (start.length < HTTP2_PREFACE_START.length) return;
    end();
    socket.unshift(start);
    decide(start.toString("latin1", 0, HTTP2_PREFACE_START.length) === HTTP2_PREFACE_START);
  }
  function end(): void {
    clearTimeout(silent);
    socket.off("readable", onReadable);
    socket.off("end", cut);
  }
  function cut(): void {
    socket.destroy();
  }

  socket.on("readable", onReadable);
  socket.on("end", cut);
  socket.on("error", cut);
  socket.once("close", end);
}
