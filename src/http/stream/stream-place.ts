import type { ServerHttp2Stream } from "node:http2";
import type { HttpResponse } from "../request/request-context.js";

/** A place among the open HTTP/2 streams. */
export interface StreamPlace {
  /** Gives the place to another stream; undefined: it is given away. */
  release: (() => void) | undefined;
}

/** Key of the place of a stream. A property: a WeakMap would cost a third of a plain gRPC call in garbage collection. */
const PLACE = Symbol("place");

export function notePlace(stream: ServerHttp2Stream, place: StreamPlace): void {
  (stream as { [PLACE]?: StreamPlace })[PLACE] = place;
}

/** Gives a place away, once. */
export function releasePlace(place: StreamPlace): void {
  const { release } = place;
  place.release = undefined;
  release?.();
}

/**
 * Gives up the place of a response among the open HTTP/2 streams: a streaming call has a place of its own kind, and would
 * keep requests that are answered at once from theirs.
 */
export function releasePlaceOf(res: HttpResponse): void {
  const place = "stream" in res ? (res.stream as { [PLACE]?: StreamPlace })[PLACE] : undefined;
  if (place !== undefined) releasePlace(place);
}
