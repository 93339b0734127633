import { findPlantedKeys } from "./planted-keys.js";

/** The result of one scrape. */
export interface MetricsScrape {
  readonly text: string;
  /** Names with labels, as in the text. */
  readonly series: readonly string[];
  /** Returns the value of one series; undefined: it does not exist. Empty labels may be omitted. */
  value(name: string, labels?: Readonly<Record<string, string>>): number | undefined;
  /** Returns the sum of all series with this name and at least these labels. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number;
}

/** Fetches and parses metrics; throws if they contain a planted key or a duplicate series. */
export async function scrapeMetrics(url: string): Promise<MetricsScrape> {
  const response = await fetch(url);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${url} returned ${response.status}: ${text}`);
  const keys = findPlantedKeys(text);
  if (keys.length > 0) throw new Error(`metrics contain ${keys.join(", ")}`);
  const samples = text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map(parseSample);
  const duplicates = samples.filter(
    ({ series }, index) => samples.findIndex((sample) => sample.series === series) !== index,
  );
  if (duplicates.length > 0) throw new Error(`the series ${duplicates[0]?.series} is duplicated`);
  const select = (name: string, labels: Readonly<Record<string, string>>) =>
    samples.filter(
      (sample) =>
        sample.name === name && Object.entries(labels).every(([key, value]) => (sample.labels[key] ?? "") === value),
    );
  return {
    text,
    series: samples.map(({ series }) => series),
    value(name, labels = {}) {
      const countNonEmpty = (values: Readonly<Record<string, string>>): number =>
        Object.values(values).filter(Boolean).length;
      return select(name, labels).find((sample) => countNonEmpty(sample.labels) === countNonEmpty(labels))?.value;
    },
    sum: (name, labels = {}) => select(name, labels).reduce((sum, { value }) => sum + value, 0),
  };
}

function parseSample(line: string) {
  const [, series = "", name = "", labels = "", value = ""] = /^(([a-z0-9_]+)(?:\{(.*)\})?) (\S+)$/.exec(line) ?? [];
  if (name === "") throw new Error(`no metric: ${line}`);
  const pairs = [...labels.matchAll(/([a-z0-9_]+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, text]) => [key, text] as const);
  return { series, name, value: Number(value), labels: Object.fromEntries(pairs) as Record<string, string> };
}
