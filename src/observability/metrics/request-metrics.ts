import type { AccessLog } from "../../http/request/request-context.js";
import { metricCatalogue, REQUEST_DURATION_BUCKETS } from "./catalogue.js";
import { Histogram, type MetricSample } from "./instruments.js";

/** Counts requests by how they ended. */
export interface RequestMetrics {
  /** Once for each request: a few map look-ups, and nothing that has to be collected later. */
  readonly record: AccessLog;
  toCounterSamples(): MetricSample[];
  toDurationSamples(): MetricSample[];
}

/** Requests of one operation over one protocol. */
interface RequestSeries {
  readonly operation: string;
  readonly protocol: string;
  readonly duration: Histogram;
  /** By code, then by reason. */
  readonly outcomes: Map<string, Map<string, { value: number }>>;
}

/** Operations are those that are served; should something else ever come by, it is kept from becoming a flood. */
const MAX_OPERATIONS = 200;
const OTHER_OPERATION = "other";

export function createRequestMetrics(): RequestMetrics {
  /** By full name of the operation, then by protocol. Versions of a service whose methods have one name share their series. */
  const byOperation = new Map<string, Map<string, RequestSeries>>();
  const byShortName = new Map<string, Map<string, RequestSeries>>();

  function seriesOf(name: string, protocol: string): RequestSeries {
    let byProtocol = byOperation.get(name);
    if (byProtocol === undefined) {
      if (byOperation.size >= MAX_OPERATIONS && name !== "") return seriesOf("", protocol);
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

  const all = (): RequestSeries[] => [...byShortName.values()].flatMap((byProtocol) => [...byProtocol.values()]);

  return {
    record({ operation, protocol, code, durationMs }, reason) {
      const { duration, outcomes } = seriesOf(operation, protocol);
      duration.observe(durationMs / 1000);
      let byReason = outcomes.get(code);
      if (byReason === undefined) {
        byReason = new Map();
        outcomes.set(code, byReason);
      }
      const end = byReason.get(reason);
      if (end === undefined) byReason.set(reason, { value: 1 });
      else end.value += 1;
    },
    toCounterSamples: () =>
      all().flatMap(({ operation, protocol, outcomes }) =>
        [...outcomes].flatMap(([code, byReason]) =>
          [...byReason].map(([reason, { value }]) => ({ labels: { operation, protocol, code, reason }, value })),
        ),
      ),
    toDurationSamples: () =>
      all().flatMap(({ operation, protocol, duration }) =>
        duration.toSamples(metricCatalogue.requestDuration.name, { operation, protocol }),
      ),
  };
}

/** The method alone of what is named by service and method; a document keeps its path. */
function shortenOperation(operation: string): string {
  if (operation === "") return OTHER_OPERATION;
  return operation.startsWith("/") ? operation : operation.slice(operation.lastIndexOf("/") + 1);
}
