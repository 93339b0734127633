import type { StreamQuota } from "../admission/stream-quota.js";
import type { HttpResponse, RequestContext } from "../request/request-context.js";
import { releasePlaceOf } from "./stream-place.js";

/**
 * Takes a place for a streaming call until its request ends, and returns a function that releases it earlier.
 * @throws ServiceError OVERLOADED or RATE_LIMITED, as the quota does
 */
export function admitStream(
  { res, context }: { readonly res?: HttpResponse; readonly context: RequestContext },
  quota: StreamQuota,
): () => void {
  const takesConnection = res !== undefined && !("stream" in res);
  let release: (() => void) | undefined = quota.acquire(context.caller, takesConnection);
  context.isStream = true;
  if (res !== undefined) releasePlaceOf(res);
  const releaseOnce = (): void => {
    release?.();
    release = undefined;
  };
  context.onEnd(releaseOnce);
  return releaseOnce;
}
