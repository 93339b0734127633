/** Times in milliseconds. */
export interface LatencySamples {
  readonly count: number;
  add(ms: number): void;
  /** Returns a quantile, such as 0.99; NaN without samples. */
  quantile(share: number): number;
}

export function createLatencySamples(): LatencySamples {
  const all: number[] = [];
  return {
    get count() {
      return all.length;
    },
    add: (ms) => void all.push(ms),
    quantile(share) {
      const sorted = all.toSorted((a, b) => a - b);
      return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
    },
  };
}
