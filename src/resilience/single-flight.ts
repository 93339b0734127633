import { type AbortScope, createAbortScope, raceAbort } from "./abort-scope.js";

/** Deduplicates concurrent calls for the same key. */
export interface SingleFlight<T> {
  /**
   * Returns the result of the call in flight for this key, or starts one. The call's signal aborts when the last waiter
   * has left. Rejects at once when the waiter's own signal aborts.
   */
  run(key: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  isInFlight(key: string): boolean;
}

interface InFlightCall<T> {
  readonly result: Promise<T>;
  readonly scope: AbortScope;
  waiters: number;
}

/** @param closing aborts all calls */
export function createSingleFlight<T>(closing: AbortSignal): SingleFlight<T> {
  const inFlight = new Map<string, InFlightCall<T>>();

  function start(key: string, work: (signal: AbortSignal) => Promise<T>): InFlightCall<T> {
    const scope = createAbortScope(closing);
    const call: InFlightCall<T> = { result: work(scope.signal), scope, waiters: 0 };
    inFlight.set(key, call);
    const remove = (): void => {
      scope.cancel();
      if (inFlight.get(key) === call) inFlight.delete(key);
    };
    call.result.then(remove, remove);
    return call;
  }

  return {
    isInFlight: (key) => inFlight.has(key),
    async run(key, signal, work) {
      signal.throwIfAborted();
      const call = inFlight.get(key) ?? start(key, work);
      call.waiters += 1;
      try {
        return await raceAbort(call.result, signal);
      } finally {
        call.waiters -= 1;
        if (call.waiters === 0) {
          // A caller that arrives now must not join a call that is being aborted.
          if (inFlight.get(key) === call) inFlight.delete(key);
          call.scope.cancel();
        }
      }
    },
  };
}
