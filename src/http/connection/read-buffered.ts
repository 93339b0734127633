import type { Readable } from "node:stream";

/** Returns all that a stream has buffered, or null if that is nothing. From Node.js 26 on, `read` returns one chunk. */
export function readBuffered(stream: Readable): Buffer | null {
  const first: Buffer | null = stream.read();
  if (first === null || stream.readableLength === 0) return first;
  const chunks = [first];
  for (let chunk = stream.read(); chunk !== null; chunk = stream.read()) chunks.push(chunk);
  return Buffer.concat(chunks);
}
