import { setMaxListeners } from "node:events";

/** A derived signal: aborts with an outer signal or after a timeout. */
export interface AbortScope {
  readonly signal: AbortSignal;
  /** Replaces the timeout by one that begins now, in milliseconds. */
  setTimeout(timeoutMs: number): void;
  /** Aborts the signal, clears the timer and removes the listener on the outer signal. Call it in every case. */
  cancel(): void;
}

/** Reason of all work that nobody waits for any more. A new one each time would record a stack, which takes 10 us. */
export const ABANDONED = new DOMException("nobody waits for the result any more", "AbortError");

const TIMEOUT_REASON = new DOMException("the timeout has elapsed", "TimeoutError");

/**
 * Derives a signal from an outer one, with an optional timeout in milliseconds. Replaces AbortSignal.any and
 * AbortSignal.timeout, which fail on Node 20: a long-lived outer signal retains every signal that `any` derives from
 * it, and a timeout signal that is only referenced by `any` can be collected before it fires.
 */
export function createAbortScope(outer: AbortSignal, timeoutMs?: number): AbortScope {
  const controller = new AbortController();
  const abort = (): void => controller.abort(outer.reason);
  const startTimer = (ms: number): NodeJS.Timeout => setTimeout(() => controller.abort(TIMEOUT_REASON), ms);
  let timer = timeoutMs === undefined ? undefined : startTimer(timeoutMs);
  if (outer.aborted) abort();
  addAbortListener(outer, abort);
  return {
    signal: controller.signal,
    setTimeout(ms) {
      clearTimeout(timer);
      if (!controller.signal.aborted) timer = startTimer(ms);
    },
    cancel() {
      clearTimeout(timer);
      outer.removeEventListener("abort", abort);
      controller.abort(ABANDONED);
    },
  };
}

/** Adds a listener to a signal. Any number of requests may share one: that is no leak, but Node would warn about it. */
export function addAbortListener(signal: AbortSignal, listener: () => void): void {
  setMaxListeners(0, signal);
  signal.addEventListener("abort", listener);
}

/** Returns whether a signal of an abort scope aborted because its timeout elapsed. */
export function isTimedOut(signal: AbortSignal): boolean {
  return signal.reason === TIMEOUT_REASON;
}

/** Settles like a promise, or rejects with the signal's reason if that aborts first. Does not stop the work itself. */
export async function raceAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let abort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    addAbortListener(signal, abort);
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    if (abort !== undefined) signal.removeEventListener("abort", abort);
  }
}

/** Settles like a promise, or with what `onTimeout` returns or throws when the time in milliseconds has elapsed. */
export async function withTimeout<T>(promise: Promise<T>, milliseconds: number, onTimeout: () => T): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const elapsed = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  try {
    return await Promise.race([promise, elapsed.then(onTimeout)]);
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves like a promise, or with the fallback when the promise rejects or the time in milliseconds has elapsed. */
export function withTimeoutOrFallback<T>(promise: Promise<T>, milliseconds: number, fallback: T): Promise<T> {
  return withTimeout(
    promise.catch(() => fallback),
    milliseconds,
    () => fallback,
  );
}
