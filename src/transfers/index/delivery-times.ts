import type { Chain, Network } from "../../hop/networks.js";
import type { Clocks } from "../../resilience/clock.js";
import type { ScheduledJob, Scheduler } from "../../resilience/scheduler.js";
import type { SentTransfer } from "../status.js";
import type { IndexReader } from "./index-reader.js";
import type { DeliveredRow } from "./statements.js";

/** How long transfers took from the block of the send to the block of the delivery. */
interface MeasuredDeliveryTime {
  /** The time within which half of the transfers arrived, in seconds. */
  readonly p50Seconds: number;
  /** The time within which nine of ten arrived, in seconds. */
  readonly p90Seconds: number;
  /** Number of measured transfers. */
  readonly samples: number;
}

/** The clocks of a measurement; `sleep` resolves when the time has passed or the signal fires, and never rejects. */
type DeliveryTimesClock = Clocks & { readonly sleep: (ms: number, signal: AbortSignal) => Promise<void> };

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

/** The delivery times of all routes, measured now and then: asking for one costs a look-up. */
export class DeliveryTimes {
  readonly #network: Network;
  readonly #reader: Pick<IndexReader, "readDelivered">;
  readonly #clock: DeliveryTimesClock;
  #times: ReadonlyMap<string, MeasuredDeliveryTime> = new Map();
  #durationMs = 0;

  constructor(network: Network, reader: Pick<IndexReader, "readDelivered">, clock: DeliveryTimesClock) {
    this.#network = network;
    this.#reader = reader;
    this.#clock = clock;
  }

  /** Returns the delivery time of a route; undefined without a measured transfer. */
  get({
    token,
    source,
    destination,
  }: Pick<SentTransfer, "token" | "source" | "destination">): MeasuredDeliveryTime | undefined {
    return this.#times.get(getRouteKey(token, source.chainId, destination.chainId));
  }

  /** Measures again and again, at first at once. */
  schedule(scheduler: Scheduler): ScheduledJob {
    const getIntervalMs = (): number =>
      Math.min(MAX_INTERVAL_MS, Math.max(MIN_INTERVAL_MS, this.#durationMs * INTERVAL_FACTOR));
    return scheduler.every("measure delivery times", getIntervalMs, (signal) => this.measure(signal), {
      firstDelayMs: 0,
    });
  }

  /** Measures once. What was measured before stays until the next success. */
  async measure(signal: AbortSignal): Promise<void> {
    const startedAt = this.#clock.monotonicNow();
    const durations = new Map<string, number[]>();
    try {
      for (const chain of this.#network.chains.values()) await this.#measureChain(chain, durations, signal);
    } finally {
      this.#durationMs = this.#clock.monotonicNow() - startedAt;
    }
    if (!signal.aborted) this.#times = new Map(Array.from(durations, ([route, all]) => [route, summarize(all)]));
  }

  /** Collects the durations of the newest deliveries of a chain, by route. */
  async #measureChain({ chainId }: Chain, durations: Map<string, number[]>, signal: AbortSignal): Promise<void> {
    const oldest = Math.floor(this.#clock.now() / 1_000) - WINDOW_SECONDS;
    let before = { block: Number.MAX_SAFE_INTEGER, logIndex: Number.MAX_SAFE_INTEGER };
    for (let rowsRead = 0; rowsRead < MAX_ROWS_PER_CHAIN && !signal.aborted; rowsRead += ROWS_PER_READ) {
      const rows = await this.#reader.readDelivered(chainId, before, ROWS_PER_READ);
      for (const row of rows) addDuration(row, oldest, durations);
      const last = rows.at(-1);
      // A join may return a delivery more than once, but never fewer rows than deliveries.
      if (last === undefined || rows.length < ROWS_PER_READ) return;
      if (last.delivered_at !== null && last.delivered_at < oldest) return;
      before = { block: last.block_number, logIndex: last.log_index };
      await this.#clock.sleep(PAUSE_MS, signal);
    }
  }
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
