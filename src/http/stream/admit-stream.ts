import type { StreamQuota } from "../admission/stream-quota.js";
import type { IncomingCall } from "../request/body.js";

/**
 * Takes a place for a streaming call until its request ends, and returns a function that releases it earlier.
 * @throws ServiceError OVERLOADED or RATE_LIMITED, as the quota does
 */
export function admitStream({ context }: Pick<IncomingCall, "context">, quota: StreamQuota): () => void {
  let release: (() => void) | undefined = quota.acquire(context.caller);
  const releaseOnce = (): void => {
    release?.();
    release = undefined;
  };
  context.onEnd(releaseOnce);
  return releaseOnce;
}
