import { findPlantedKeys } from "./planted-keys.js";

/** Metrics as a scrape found them. */
export interface MetricsScrape {
  readonly text: string;
  /** Names with labels, as they stand in the text. */
  readonly series: readonly string[];
  /** Of one series; undefined: it is not there. Labels that are empty need not be given. */
  value(name: string, labels?: Readonly<Record<string, string>>): number | undefined;
  /** Of all series of a name with at least these labels. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number;
}

/** Fetches and reads metrics in their text form; fails where they hold a planted key, or a series twice. */
export async function scrapeMetrics(url: string): Promise<MetricsScrape> {
  const answer = await fetch(url);
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${url} answers ${answer.status}: ${text}`);
  const keys = findPlantedKeys(text);
  if (keys.length > 0) throw new Error(`metrics hold ${keys.join(", ")}`);
  const all = text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map(parseSample);
  const twice = all.filter(({ series }, place) => all.findIndex((each) => each.series === series) !== place);
  if (twice.length > 0) throw new Error(`the series ${twice[0]?.series} is there twice`);
  const having = (name: string, labels: Readonly<Record<string, string>>) =>
    all.filter(
      (each) =>
        each.name === name && Object.entries(labels).every(([key, value]) => (each.labels[key] ?? "") === value),
    );
  return {
    text,
    series: all.map(({ series }) => series),
    value(name, labels = {}) {
      const count = (of: Readonly<Record<string, string>>): number => Object.values(of).filter((each) => each).length;
      return having(name, labels).find((each) => count(each.labels) === count(labels))?.value;
    },
    sum: (name, labels = {}) => having(name, labels).reduce((sum, { value }) => sum + value, 0),
  };
}

function parseSample(line: string) {
  const [, series = "", name = "", labels = "", value = ""] = /^(([a-z0-9_]+)(?:\{(.*)\})?) (\S+)$/.exec(line) ?? [];
  if (name === "") throw new Error(`no metric: ${line}`);
  const pairs = [...labels.matchAll(/([a-z0-9_]+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, text]) => [key, text] as const);
  return { series, name, value: Number(value), labels: Object.fromEntries(pairs) as Record<string, string> };
}
