import { type AbortScope, createAbortScope, raceAbort } from "./abort-scope.js";

/** Deduplicates concurrent calls for the same key. */
export interface SingleFlight<T> {
  /**
   * Returns the result of the call in flight for this key, or starts one. The call's signal aborts when the last waiter
   * has left, unless the work has called `detach`. Rejects at once when the waiter's own signal aborts.
   */
  run(key: string, signal: AbortSignal, work: (signal: AbortSignal, detach: () => void) => Promise<T>): Promise<T>;
  isInFlight(key: string): boolean;
}

interface InFlightCall<T> {
  readonly result: Promise<T>;
  readonly scope: AbortScope;
  waiters: number;
  /** Returns whether the call is finished even if all waiters have left. */
  isDetached(): boolean;
}

/** @param closing aborts all calls */
export function createSingleFlight<T>(closing: AbortSignal): SingleFlight<T> {
  const inFlight = new Map<string, InFlightCall<T>>();

  function start(key: string, work: (signal: AbortSignal, detach: () => void) => Promise<T>): InFlightCall<T> {
    const scope = createAbortScope(closing);
    let isDetached = false;
    const detach = (): void => {
      isDetached = true;
    };
    const call: InFlightCall<T> = {
      result: work(scope.signal, detach),
      scope,
      waiters: 0,
      isDetached: () => isDetached,
    };
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
        if (call.waiters === 0 && !call.isDetached()) {
          // A caller that arrives now must not join a call that is being aborted.
          if (inFlight.get(key) === call) inFlight.delete(key);
          call.scope.cancel();
        }
      }
    },
  };
}
