import type { ServerHttp2Stream } from "node:http2";
import type { HttpResponse } from "../request/request-context.js";

const releases = new WeakMap<ServerHttp2Stream, () => void>();

/** Notes how a stream gives up its place among the open HTTP/2 streams. Returns a function that does so once. */
export function noteStreamPlace(stream: ServerHttp2Stream, release: () => void): () => void {
  let isHeld = true;
  const releaseOnce = (): void => {
    if (isHeld) release();
    isHeld = false;
  };
  releases.set(stream, releaseOnce);
  return releaseOnce;
}

/**
 * Gives up the place of a response among the open HTTP/2 streams: a streaming call has a place of its own kind, and would
 * keep requests that are answered at once from theirs.
 */
export function releaseStreamPlace(res: HttpResponse): void {
  if ("stream" in res) releases.get(res.stream)?.();
}
