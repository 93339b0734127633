import type { Chain, Network } from "../../hop/networks.js";
import type { DeliveredReader, DeliveredRow } from "../index/store/pages/delivered-statement.js";
import type { SentTransfer } from "../transfer.js";

/** How long transfers took from the block of the send to the block of the delivery. */
export interface MeasuredDeliveryTime {
  /** The time within which half of the transfers arrived, in seconds; 0 without any. */
  readonly p50Seconds: number;
  /** The time within which nine of ten arrived, in seconds; 0 without any. */
  readonly p90Seconds: number;
  /** Number of measured transfers. */
  readonly samples: number;
}

/** The delivery times of all routes, measured now and then: asking for one costs a look-up. */
export interface DeliveryTimes {
  get(route: Pick<SentTransfer, "token" | "source" | "destination">): MeasuredDeliveryTime;
  /** Measures until the signal fires. */
  run(signal: AbortSignal): Promise<void>;
}

export interface DeliveryTimesOptions {
  readonly network: Network;
  /** @throws Error when the index cannot be read */
  readonly readDelivered: DeliveredReader;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Monotonic clock, in milliseconds. */
  readonly monotonicNow: () => number;
  /** Resolves when the time has passed or the signal fires; never rejects. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly onError: (error: unknown) => void;
}

export const NO_DELIVERIES: MeasuredDeliveryTime = { p50Seconds: 0, p90Seconds: 0, samples: 0 };

const WINDOW_SECONDS = 30 * 86_400;
/** Deliveries per read: some three milliseconds in which the event loop serves nobody else. */
const ROWS_PER_READ = 500;
/** Pause between reads, which leaves the event loop to requests. */
const PAUSE_MS = 100;
/** The newest deliveries of each chain that are measured: those of 30 days, of a chain with 1,700 a day. */
const MAX_ROWS_PER_CHAIN = 50_000;
/** A measurement is repeated after this share of its duration, within these limits. */
const INTERVAL_FACTOR = 20;
const MIN_INTERVAL_MS = 10_000;
const MAX_INTERVAL_MS = 600_000;

export function createDeliveryTimes(options: DeliveryTimesOptions): DeliveryTimes {
  const { network, readDelivered, now, monotonicNow, sleep, onError } = options;
  let times: ReadonlyMap<string, MeasuredDeliveryTime> = new Map();

  /** Collects the durations of the newest deliveries of a chain, by route. */
  async function measureChain(
    { chainId }: Chain,
    durations: Map<string, number[]>,
    signal: AbortSignal,
  ): Promise<void> {
    const oldest = Math.floor(now() / 1_000) - WINDOW_SECONDS;
    let before = { block: Number.MAX_SAFE_INTEGER, logIndex: Number.MAX_SAFE_INTEGER };
    for (let rowsRead = 0; rowsRead < MAX_ROWS_PER_CHAIN && !signal.aborted; rowsRead += ROWS_PER_READ) {
      const rows = await readDelivered(chainId, before, ROWS_PER_READ);
      for (const row of rows) addDuration(row, oldest, durations);
      const last = rows.at(-1);
      // A join may return a delivery more than once, but never fewer rows than deliveries.
      if (last === undefined || rows.length < ROWS_PER_READ) return;
      if (last.delivered_at !== null && last.delivered_at < oldest) return;
      before = { block: last.block_number, logIndex: last.log_index };
      await sleep(PAUSE_MS, signal);
    }
  }

  async function measure(signal: AbortSignal): Promise<void> {
    const durations = new Map<string, number[]>();
    for (const chain of network.chains.values()) await measureChain(chain, durations, signal);
    if (!signal.aborted) times = new Map(Array.from(durations, ([route, all]) => [route, summarize(all)]));
  }

  return {
    get: ({ token, source, destination }) =>
      times.get(getRouteKey(token, source.chainId, destination.chainId)) ?? NO_DELIVERIES,
    async run(signal) {
      while (!signal.aborted) {
        const startedAt = monotonicNow();
        // What was measured before stays until the next success.
        await measure(signal).catch((error: unknown) => {
          if (!signal.aborted) onError(error);
        });
        const durationMs = monotonicNow() - startedAt;
        await sleep(Math.min(MAX_INTERVAL_MS, Math.max(MIN_INTERVAL_MS, durationMs * INTERVAL_FACTOR)), signal);
      }
    },
  };
}

function addDuration(row: DeliveredRow, oldest: number, durations: Map<string, number[]>): void {
  const { chain_id, token, source_chain_id, sent_at, delivered_at } = row;
  if (source_chain_id === null || sent_at === null || delivered_at === null || delivered_at < oldest) return;
  const route = getRouteKey(token, source_chain_id, chain_id);
  const all = durations.get(route) ?? [];
  durations.set(route, all);
  // The clocks of two chains differ by seconds.
  all.push(Math.max(0, delivered_at - sent_at));
}

/** Computes quantiles by nearest rank. */
function summarize(durations: readonly number[]): MeasuredDeliveryTime {
  const sorted = Float64Array.from(durations).sort();
  const quantile = (share: number): number => sorted[Math.ceil(share * sorted.length) - 1] ?? 0;
  return { p50Seconds: quantile(0.5), p90Seconds: quantile(0.9), samples: sorted.length };
}

function getRouteKey(token: string, sourceChainId: number, destinationChainId: number): string {
  return `${token} ${sourceChainId} ${destinationChainId}`;
}
