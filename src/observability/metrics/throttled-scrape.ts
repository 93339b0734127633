import { setTimeout as sleep } from "node:timers/promises";

/** Rests for so many times as long as the work took: whoever asks how often has a tenth of the process at most. */
const COOLDOWN_FACTOR = 9;
/** Longest rest: what took long may have waited for another process. */
const MAX_COOLDOWN_MS = 1_000;

/**
 * Makes one text at a time, for all who asked before it was begun: metrics are milliseconds of work, and anybody may ask
 * for them where their port is open. None is older than the request for it.
 */
export function createThrottledScrape(make: () => Promise<string>): () => Promise<string> {
  let rested: Promise<unknown> = Promise.resolve();
  /** Not begun yet. */
  let next: Promise<string> | undefined;

  async function begin(): Promise<string> {
    await rested;
    next = undefined;
    const beganAt = performance.now();
    const text = make();
    const rest = () =>
      sleep(Math.min(MAX_COOLDOWN_MS, COOLDOWN_FACTOR * (performance.now() - beganAt)), undefined, { ref: false });
    rested = text.then(rest, rest);
    return text;
  }

  return () => {
    next ??= begin();
    return next;
  };
}
