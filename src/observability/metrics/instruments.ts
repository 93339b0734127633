import type { AccessLog } from "../../http/request/request-context.js";
import { type MetricSample, metricCatalogue, REQUEST_DURATION_BUCKETS } from "./catalogue.js";

/** A histogram. An observation takes nanoseconds; with prom-client's it takes half a microsecond. */
export class Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;
  #count = 0;

  /** @param bounds upper bounds, ascending */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = bounds.map(() => 0);
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    this.#sum += value;
    this.#count += 1;
    let index = 0;
    while (index < bounds.length && value > (bounds[index] ?? 0)) index += 1;
    if (index < bounds.length) this.#counts[index] = (this.#counts[index] ?? 0) + 1;
  }

  /** Returns the samples of a Prometheus histogram with the given name. */
  toSamples(name: string, labels: MetricSample["labels"]): MetricSample[] {
    let cumulativeCount = 0;
    const buckets = this.#bounds.map((le, index): MetricSample => {
      cumulativeCount += this.#counts[index] ?? 0;
      return { labels: { ...labels, le }, value: cumulativeCount, metricName: `${name}_bucket` };
    });
    return [
      ...buckets,
      { labels: { ...labels, le: "+Inf" }, value: this.#count, metricName: `${name}_bucket` },
      { labels, value: this.#sum, metricName: `${name}_sum` },
      { labels, value: this.#count, metricName: `${name}_count` },
    ];
  }
}

/** A counter with labels. */
export class LabeledCounter {
  readonly #labelNames: readonly string[];
  readonly #counts = new Map<string, { readonly labels: MetricSample["labels"]; value: number }>();

  constructor(labelNames: readonly string[]) {
    this.#labelNames = labelNames;
  }

  /** @param values label values, in the order of the labels */
  increment(...values: readonly string[]): void {
    this.add(1, ...values);
  }

  /** Adds a number instead of 1. */
  add(amount: number, ...values: readonly string[]): void {
    const key = values.join("\n");
    const count = this.#counts.get(key);
    if (count !== undefined) count.value += amount;
    else {
      const labels = Object.fromEntries(this.#labelNames.map((label, index) => [label, values[index] ?? ""]));
      this.#counts.set(key, { labels, value: amount });
    }
  }

  toSamples(): MetricSample[] {
    return [...this.#counts.values()].map((count) => ({ ...count }));
  }
}

/** The requests of one operation over one protocol. */
interface RequestSeries {
  readonly operation: string;
  readonly protocol: string;
  readonly duration: Histogram;
  /** Counts by code, then by reason. */
  readonly outcomes: Map<string, Map<string, { value: number }>>;
}

/** Only served operations are expected. The limit keeps the number of series bounded if others ever appear. */
const MAX_OPERATIONS = 200;
const OTHER_OPERATION = "other";

/** Counts requests by outcome and measures the duration of those that are no streams. */
export class RequestMetrics {
  /** Series by full operation name, then by protocol. Methods of the same name in two services share their series. */
  readonly #byOperation = new Map<string, Map<string, RequestSeries>>();
  readonly #byShortName = new Map<string, Map<string, RequestSeries>>();

  /** Records a request: a few map lookups. */
  readonly record: AccessLog = ({ operation, protocol, code, durationMs, isStream }, reason) => {
    const { duration, outcomes } = this.#getSeries(operation, protocol);
    // A stream ends when its caller likes: its hours would hide how long answers take.
    if (isStream !== true) duration.observe(durationMs / 1000);
    let byReason = outcomes.get(code);
    if (byReason === undefined) {
      byReason = new Map();
      outcomes.set(code, byReason);
    }
    const count = byReason.get(reason);
    if (count === undefined) byReason.set(reason, { value: 1 });
    else count.value += 1;
  };

  toCounterSamples(): MetricSample[] {
    return this.#listSeries().flatMap(({ operation, protocol, outcomes }) =>
      [...outcomes].flatMap(([code, byReason]) =>
        [...byReason].map(([reason, { value }]) => ({ labels: { operation, protocol, code, reason }, value })),
      ),
    );
  }

  toDurationSamples(): MetricSample[] {
    return this.#listSeries().flatMap(({ operation, protocol, duration }) =>
      duration.toSamples(metricCatalogue.requestDuration.name, { operation, protocol }),
    );
  }

  #getSeries(name: string, protocol: string): RequestSeries {
    let byProtocol = this.#byOperation.get(name);
    if (byProtocol === undefined) {
      if (this.#byOperation.size >= MAX_OPERATIONS && name !== "") return this.#getSeries("", protocol);
      const operation = shortenOperation(name);
      byProtocol = this.#byShortName.get(operation) ?? new Map<string, RequestSeries>();
      this.#byOperation.set(name, byProtocol);
      this.#byShortName.set(operation, byProtocol);
    }
    let series = byProtocol.get(protocol);
    if (series === undefined) {
      const duration = new Histogram(REQUEST_DURATION_BUCKETS);
      series = { operation: shortenOperation(name), protocol, duration, outcomes: new Map() };
      byProtocol.set(protocol, series);
    }
    return series;
  }

  #listSeries(): RequestSeries[] {
    return [...this.#byShortName.values()].flatMap((byProtocol) => [...byProtocol.values()]);
  }
}

/** Returns the method name of `service/method`, and the path of a document unchanged. */
function shortenOperation(operation: string): string {
  if (operation === "") return OTHER_OPERATION;
  return operation.startsWith("/") ? operation : operation.slice(operation.lastIndexOf("/") + 1);
}
