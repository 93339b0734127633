import { setTimeout as sleep } from "node:timers/promises";

/** The cooldown after a scrape is this many times its duration: scrapes use at most a tenth of the process. */
const COOLDOWN_FACTOR = 9;
/** Upper limit of the cooldown: a slow scrape may only have waited for another process. */
const MAX_COOLDOWN_MS = 1_000;

/**
 * Limits how often metrics are rendered: rendering takes milliseconds, and anyone who reaches the port may ask for it. Runs
 * one scrape at a time. Callers that arrive before a scrape starts share its result, so no result is older than its request.
 */
export function createThrottledScrape(render: () => Promise<string>): () => Promise<string> {
  let cooldown: Promise<unknown> = Promise.resolve();
  /** The scrape that has not started yet. */
  let next: Promise<string> | undefined;

  async function startScrape(): Promise<string> {
    await cooldown;
    next = undefined;
    const startedAt = performance.now();
    const text = render();
    const coolDown = () =>
      sleep(Math.min(MAX_COOLDOWN_MS, COOLDOWN_FACTOR * (performance.now() - startedAt)), undefined, { ref: false });
    cooldown = text.then(coolDown, coolDown);
    return text;
  }

  return () => {
    next ??= startScrape();
    return next;
  };
}
