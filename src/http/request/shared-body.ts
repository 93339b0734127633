import type { ServerResponse } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import type { HttpResponse } from "./request-context.js";

/** Smaller bodies are not worth sharing. */
export const MIN_SHARED_BODY_BYTES = 8 * 1024;

const sharedBytes = new WeakMap<object, number>();

/** Notes that responses to all callers share one buffer as their body: it takes no memory of its own while it waits. */
export function noteSharedBody(response: HttpResponse | ServerHttp2Stream, byteLength: number): void {
  if (byteLength < MIN_SHARED_BODY_BYTES) return;
  sharedBytes.set("stream" in response ? response.stream : response, byteLength);
}

/** Returns the bytes of a response (HTTP/1.1) or stream (HTTP/2) that it shares with others. */
export function countSharedBytes(response: ServerResponse | ServerHttp2Stream): number {
  return sharedBytes.get(response) ?? 0;
}
