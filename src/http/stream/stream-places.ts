import type { ServerHttp2Stream } from "node:http2";
import { ServiceError } from "../../errors.js";
import { FairQuota } from "../../resilience/fair-quota.js";
import type { HttpResponse, RequestContext } from "../request/request-context.js";

/** When a refused caller may try again. Streams are long: a short time would only repeat the refusal. */
const RETRY_AFTER_SECONDS = 5;

/** Counts open streams, such as watches: each takes memory for as long as its caller wants. */
export class StreamPlaces {
  readonly #limits: { readonly total: number; readonly connections: number };
  readonly #streams: FairQuota;
  readonly #connections: FairQuota;

  /**
   * @param total streams of all callers together
   * @param connections the same for those that take a connection each. Default: as many as in total
   */
  constructor({ total, connections = total }: { readonly total: number; readonly connections?: number }) {
    this.#limits = { total, connections };
    this.#streams = new FairQuota(() => total);
    this.#connections = new FairQuota(() => connections);
  }

  /**
   * Takes a place for a streaming call until its request ends, and returns a function that releases it earlier.
   * @throws ServiceError OVERLOADED when all places are taken; RATE_LIMITED when this caller has its share
   */
  admit({ res, context }: { readonly res?: HttpResponse; readonly context: RequestContext }): () => void {
    const takesConnection = res !== undefined && !("stream" in res);
    let release: (() => void) | undefined = this.acquire(context.caller, takesConnection);
    context.isStream = true;
    if (res !== undefined) releasePlaceOf(res);
    const releaseOnce = (): void => {
      release?.();
      release = undefined;
    };
    context.onEnd(releaseOnce);
    return releaseOnce;
  }

  /**
   * Takes a place for a stream and returns the function that releases it, to be called once when the stream has ended.
   * @param takesConnection whether no other request can use its connection meanwhile. Default: false
   * @throws ServiceError as `admit` does
   */
  acquire(caller: string, takesConnection = false): () => void {
    const { total, connections } = this.#limits;
    const release = this.#streams.tryAcquire(caller);
    if (release === undefined) throw createRefusal(this.#streams.heldCount() >= total);
    if (!takesConnection) return release;
    const releaseConnection = this.#connections.tryAcquire(caller);
    if (releaseConnection === undefined) {
      release();
      throw createRefusal(this.#connections.heldCount() >= connections);
    }
    return () => {
      release();
      releaseConnection();
    };
  }

  /** The number of open streams. */
  get openCount(): number {
    return this.#streams.heldCount();
  }
}

function createRefusal(isFull: boolean): ServiceError {
  const options = { retryAfterSeconds: RETRY_AFTER_SECONDS };
  return isFull
    ? new ServiceError("OVERLOADED", "too many streams are open here", options)
    : new ServiceError("RATE_LIMITED", "too many streams are open from this address", options);
}

/** A place among the open HTTP/2 streams, whatever they are for. */
export interface Http2StreamPlace {
  /** Gives the place to another stream; undefined: it is given away. */
  release: (() => void) | undefined;
}

/** Key of the place of a stream. A property: a WeakMap would cost a third of a plain gRPC call in garbage collection. */
const PLACE = Symbol("place");

export function notePlace(stream: ServerHttp2Stream, place: Http2StreamPlace): void {
  (stream as { [PLACE]?: Http2StreamPlace })[PLACE] = place;
}

/** Gives a place away, once. */
export function releasePlace(place: Http2StreamPlace): void {
  const { release } = place;
  place.release = undefined;
  release?.();
}

/**
 * Gives up the place of a response among the open HTTP/2 streams: a streaming call has a place of its own kind, and would
 * keep requests that are answered at once from theirs.
 */
function releasePlaceOf(res: HttpResponse): void {
  const place = "stream" in res ? (res.stream as { [PLACE]?: Http2StreamPlace })[PLACE] : undefined;
  if (place !== undefined) releasePlace(place);
}
