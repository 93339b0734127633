import type { Clocks } from "../../resilience/clock.js";

/** What the headers `Date` of HTTP responses tell about this machine's clock. */
export interface DateSamples {
  /**
   * Records the header of a response that has just arrived. Returns whether it is used: one in a while of each host is.
   * @param startedAtMs start of the request in milliseconds since 1970
   */
  record(host: string, date: string, startedAtMs: number): boolean;
  /** Returns the time of each host less this machine's, in milliseconds. */
  listOffsets(): readonly number[];
  clear(): void;
}

const MIN_INTERVAL_MS = 5_000;
const MAX_AGE_MS = 10 * 60_000;
/** With a slower response, it is not known what time its header tells. */
const MAX_LATENCY_MS = 2_000;
/** The header has whole seconds, rounded down. */
const MEAN_ROUNDING_MS = 500;

export function createDateSamples({ now, monotonicNow }: Clocks): DateSamples {
  /** By host; those of the configured endpoints only, so that callers cannot move the estimate. */
  const samples = new Map<string, { readonly offsetMs: number; readonly takenAt: number }>();
  return {
    record(host, date, startedAtMs) {
      const takenAt = monotonicNow();
      const previous = samples.get(host);
      if (previous !== undefined && takenAt - previous.takenAt < MIN_INTERVAL_MS) return false;
      const latencyMs = now() - startedAtMs;
      const hostMs = Date.parse(date);
      if (Number.isNaN(hostMs) || latencyMs < 0 || latencyMs > MAX_LATENCY_MS) return false;
      samples.set(host, { offsetMs: hostMs + MEAN_ROUNDING_MS - (startedAtMs + latencyMs / 2), takenAt });
      return true;
    },
    listOffsets() {
      const oldest = monotonicNow() - MAX_AGE_MS;
      return [...samples.values()].filter(({ takenAt }) => takenAt >= oldest).map(({ offsetMs }) => offsetMs);
    },
    clear: () => samples.clear(),
  };
}
