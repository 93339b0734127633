/** A value of a metric, as prom-client takes it. */
export interface MetricSample {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  /** Where it is another than the metric's. */
  readonly metricName?: string;
}

/** How often values fell between bounds. To note one takes nanoseconds, where prom-client takes half a microsecond. */
export class Histogram {
  private readonly counts: number[];
  private sum = 0;
  private count = 0;

  /** @param bounds upper ones, ascending */
  constructor(private readonly bounds: readonly number[]) {
    this.counts = bounds.map(() => 0);
  }

  observe(value: number): void {
    const { bounds, counts } = this;
    this.sum += value;
    this.count += 1;
    let place = 0;
    while (place < bounds.length && value > (bounds[place] ?? 0)) place += 1;
    if (place < bounds.length) counts[place] = (counts[place] ?? 0) + 1;
  }

  /** As a histogram of that name. */
  toSamples(name: string, labels: MetricSample["labels"]): MetricSample[] {
    let below = 0;
    const buckets = this.bounds.map((le, place): MetricSample => {
      below += this.counts[place] ?? 0;
      return { labels: { ...labels, le }, value: below, metricName: `${name}_bucket` };
    });
    return [
      ...buckets,
      { labels: { ...labels, le: "+Inf" }, value: this.count, metricName: `${name}_bucket` },
      { labels, value: this.sum, metricName: `${name}_sum` },
      { labels, value: this.count, metricName: `${name}_count` },
    ];
  }
}

/** Counts by the values of labels. */
export interface LabeledCounter {
  /** @param values of the labels, in their order */
  increment(...values: readonly string[]): void;
  toSamples(): MetricSample[];
}

export function createLabeledCounter(labels: readonly string[]): LabeledCounter {
  const counts = new Map<string, { readonly labels: MetricSample["labels"]; value: number }>();
  return {
    increment(...values) {
      const key = values.join("\n");
      const known = counts.get(key);
      if (known !== undefined) known.value += 1;
      else {
        const labelled = Object.fromEntries(labels.map((label, place) => [label, values[place] ?? ""]));
        counts.set(key, { labels: labelled, value: 1 });
      }
    },
    toSamples: () => [...counts.values()].map((each) => ({ ...each })),
  };
}
