import { createLimit, type Limit } from "./fetch-json.js";
import { untilAborted } from "./race-abort.js";

/** Work that several want at the same time and that is done once. */
export interface Sharing<T> {
  /**
   * What the work under this key comes to; begins it where it is not under way. Its signal fires when nobody waits any
   * more. Rejects at once when the waiter's own signal fires.
   */
  run(key: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Whether work under this key is under way. */
  has(key: string): boolean;
}

interface Running<T> {
  readonly result: Promise<T>;
  readonly limit: Limit;
  waiting: number;
}

/** @param closing ends all work */
export function createSharing<T>(closing: AbortSignal): Sharing<T> {
  const underWay = new Map<string, Running<T>>();

  function begin(key: string, work: (signal: AbortSignal) => Promise<T>): Running<T> {
    const limit = createLimit(closing);
    const running: Running<T> = { result: work(limit.signal), limit, waiting: 0 };
    underWay.set(key, running);
    const forget = (): void => {
      limit.end();
      if (underWay.get(key) === running) underWay.delete(key);
    };
    running.result.then(forget, forget);
    return running;
  }

  return {
    has: (key) => underWay.has(key),
    async run(key, signal, work) {
      signal.throwIfAborted();
      const running = underWay.get(key) ?? begin(key, work);
      running.waiting += 1;
      try {
        return await untilAborted(running.result, signal);
      } finally {
        running.waiting -= 1;
        if (running.waiting === 0) {
          // Who comes now must not get what is being broken off.
          if (underWay.get(key) === running) underWay.delete(key);
          running.limit.end();
        }
      }
    },
  };
}
