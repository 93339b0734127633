import { type AbortScope, createAbortScope } from "./fetch-json.js";
import { raceAbort } from "./race-abort.js";

/** Work that several want at the same time and that is done once. */
export interface SingleFlight<T> {
  /**
   * What the work under this key comes to; begins it where it is not under way. Its signal fires when nobody waits any
   * more. Rejects at once when the waiter's own signal fires.
   */
  run(key: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Whether work under this key is under way. */
  isInFlight(key: string): boolean;
}

interface InFlightCall<T> {
  readonly result: Promise<T>;
  readonly scope: AbortScope;
  waiters: number;
}

/** @param closing ends all work */
export function createSingleFlight<T>(closing: AbortSignal): SingleFlight<T> {
  const underWay = new Map<string, InFlightCall<T>>();

  function begin(key: string, work: (signal: AbortSignal) => Promise<T>): InFlightCall<T> {
    const scope = createAbortScope(closing);
    const running: InFlightCall<T> = { result: work(scope.signal), scope, waiters: 0 };
    underWay.set(key, running);
    const forget = (): void => {
      scope.cancel();
      if (underWay.get(key) === running) underWay.delete(key);
    };
    running.result.then(forget, forget);
    return running;
  }

  return {
    isInFlight: (key) => underWay.has(key),
    async run(key, signal, work) {
      signal.throwIfAborted();
      const running = underWay.get(key) ?? begin(key, work);
      running.waiters += 1;
      try {
        return await raceAbort(running.result, signal);
      } finally {
        running.waiters -= 1;
        if (running.waiters === 0) {
          // Who comes now must not get what is being broken off.
          if (underWay.get(key) === running) underWay.delete(key);
          running.scope.cancel();
        }
      }
    },
  };
}
