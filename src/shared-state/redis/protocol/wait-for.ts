import { setImmediate } from "node:timers";

/**
 * Resolves like a promise, or to undefined after a time. What has arrived while this process was busy is read before the
 * time is up.
 * @param promise undefined: only the time is waited for
 */
export function waitFor<T>(promise: Promise<T> | undefined, timeoutMs: number): Promise<T | undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => setImmediate(resolve, undefined), timeoutMs).unref();
    void promise?.then((value) => {
      clearTimeout(timer);
      resolve(value);
    });
  });
}
