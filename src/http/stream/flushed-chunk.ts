import type { ServerResponse } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import type { HttpResponse } from "../request/request-context.js";
import type { NodeResponseState } from "../request/response.js";

/** Key of the number of chunks that the caller of a stream has taken. A property: a WeakMap would cost more. */
const FLUSHED_CHUNKS = Symbol("flushed chunks");

type CountedStream = ServerHttp2Stream & { [FLUSHED_CHUNKS]?: number };

/** Returns how many chunks the caller of an HTTP/2 stream has taken, of those that were written here. */
export function countFlushedChunks(stream: CountedStream): number {
  return stream[FLUSHED_CHUNKS] ?? 0;
}

/** Writes a chunk and calls `onFlushed` when the connection has taken it: over HTTP/2 when its caller allows more. */
export function writeFlushedChunk(res: HttpResponse, chunk: Uint8Array | string, onFlushed: () => void): void {
  if ("stream" in res) {
    const stream: CountedStream = res.stream;
    const onTaken = (): void => {
      stream[FLUSHED_CHUNKS] = countFlushedChunks(stream) + 1;
      onFlushed();
    };
    res.write(chunk, "utf8", onTaken);
    return;
  }
  if (typeof chunk !== "string" || !tryWriteInOnePiece(res, chunk, onFlushed)) res.write(chunk, "utf8", onFlushed);
}

/**
 * Writes a chunk of an HTTP/1.1 response as the bytes that `write` would send: that passes its length, its text and its end
 * on as four pieces and holds them back until the next turn, which takes twice as long.
 *
 * Returns false, and does nothing, where anything waits to be sent, or the response is not an ordinary one: it waits for an
 * earlier response, has no head yet, or this version of Node.js keeps its state in another way.
 */
function tryWriteInOnePiece(res: ServerResponse, chunk: string, onFlushed: () => void): boolean {
  const { socket } = res;
  // A chunk of no bytes would end the response.
  if (chunk === "" || !socket?.writable || socket.writableLength > 0) return false;
  const { _headerSent, chunkedEncoding } = res as unknown as NodeResponseState;
  if (_headerSent !== true || chunkedEncoding !== true || res.writableLength > 0 || res.writableEnded) return false;
  const bytes = Buffer.byteLength(chunk);
  const text = `${bytes.toString(16)}\r\n${chunk}\r\n`;
  // Text of ASCII alone is not encoded again.
  socket.write(text, bytes === chunk.length ? "latin1" : "utf8", onFlushed);
  return true;
}
