import type { QuoteRequest } from "../state/quote-request.js";

/** Picks one of the requests that it observes, each with the same probability. */
export interface RequestSampler {
  /** Called for every quote: allocates nothing, and draws a random number only for a request that it picks. */
  observe(request: QuoteRequest): void;
  /** Adds the sample of another process. @param count number of requests from which it was picked */
  merge(request: QuoteRequest, count: number): void;
  /** Returns the sample and begins anew; undefined: no request was observed. */
  take(): SampledRequest | undefined;
}

export interface SampledRequest {
  readonly request: QuoteRequest;
  /** The number of requests from which it was picked. */
  readonly count: number;
}

/**
 * Creates a reservoir of one. Of n requests the last one has to replace the sample with probability 1/n; the place of the
 * next one that does is drawn ahead, so that all others cost one comparison (Li 1994, Algorithm L).
 * @param random returns a random number, 0 <= r < 1
 */
export function createRequestSampler(random: () => number): RequestSampler {
  let sample: QuoteRequest | undefined;
  let count = 0;
  let nextPick = 1;

  function drawNextPick(): void {
    nextPick = Math.floor(count / (1 - random())) + 1;
  }

  return {
    observe(request) {
      count += 1;
      if (count < nextPick) return;
      sample = request;
      drawNextPick();
    },
    merge(request, otherCount) {
      count += otherCount;
      if (random() * count < otherCount) sample = request;
      drawNextPick();
    },
    take() {
      const taken = sample && { request: sample, count };
      sample = undefined;
      count = 0;
      nextPick = 1;
      return taken;
    },
  };
}
