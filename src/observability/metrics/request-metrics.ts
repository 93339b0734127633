import type { AccessLog } from "../../http/request/request-context.js";
import { metricCatalogue, REQUEST_DURATION_BUCKETS } from "./catalogue.js";
import { Histogram, type MetricSample } from "./instruments.js";

/** Counts requests by outcome and measures the duration of those that are no streams. */
export interface RequestMetrics {
  /** Records a request: a few map lookups. */
  readonly record: AccessLog;
  toCounterSamples(): MetricSample[];
  toDurationSamples(): MetricSample[];
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

export function createRequestMetrics(): RequestMetrics {
  /** Series by full operation name, then by protocol. Methods of the same name in two services share their series. */
  const byOperation = new Map<string, Map<string, RequestSeries>>();
  const byShortName = new Map<string, Map<string, RequestSeries>>();

  function getSeries(name: string, protocol: string): RequestSeries {
    let byProtocol = byOperation.get(name);
    if (byProtocol === undefined) {
      if (byOperation.size >= MAX_OPERATIONS && name !== "") return getSeries("", protocol);
      const operation = shortenOperation(name);
      byProtocol = byShortName.get(operation) ?? new Map<string, RequestSeries>();
      byOperation.set(name, byProtocol);
      byShortName.set(operation, byProtocol);
    }
    let series = byProtocol.get(protocol);
    if (series === undefined) {
      series = {
        operation: shortenOperation(name),
        protocol,
        duration: new Histogram(REQUEST_DURATION_BUCKETS),
        outcomes: new Map(),
      };
      byProtocol.set(protocol, series);
    }
    return series;
  }

  const listSeries = (): RequestSeries[] => [...byShortName.values()].flatMap((byProtocol) => [...byProtocol.values()]);

  return {
    record({ operation, protocol, code, durationMs, isStream }, reason) {
      const { duration, outcomes } = getSeries(operation, protocol);
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
    },
    toCounterSamples: () =>
      listSeries().flatMap(({ operation, protocol, outcomes }) =>
        [...outcomes].flatMap(([code, byReason]) =>
          [...byReason].map(([reason, { value }]) => ({ labels: { operation, protocol, code, reason }, value })),
        ),
      ),
    toDurationSamples: () =>
      listSeries().flatMap(({ operation, protocol, duration }) =>
        duration.toSamples(metricCatalogue.requestDuration.name, { operation, protocol }),
      ),
  };
}

/** Returns the method name of `service/method`, and the path of a document unchanged. */
function shortenOperation(operation: string): string {
  if (operation === "") return OTHER_OPERATION;
  return operation.startsWith("/") ? operation : operation.slice(operation.lastIndexOf("/") + 1);
}
