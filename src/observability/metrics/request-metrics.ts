import type { AccessLog } from "../../http/request/request-context.js";
import { catalogue, durationBuckets } from "./catalogue.js";
import { Distribution, type Sample } from "./instruments.js";

/** Counts requests by how they ended. */
export interface RequestCounts {
  /** Once for each request: a few map look-ups, and nothing that has to be collected later. */
  readonly note: AccessLog;
  counts(): Sample[];
  durations(): Sample[];
}

/** Requests of one operation over one protocol. */
interface Series {
  readonly operation: string;
  readonly protocol: string;
  readonly duration: Distribution;
  /** By code, then by reason. */
  readonly ends: Map<string, Map<string, { value: number }>>;
}

/** Operations are those that are served; should something else ever come by, it is kept from becoming a flood. */
const mostOperations = 200;
const other = "other";

export function createRequestCounts(): RequestCounts {
  /** By full name of the operation, then by protocol. Versions of a service whose methods have one name share their series. */
  const byOperation = new Map<string, Map<string, Series>>();
  const byShortName = new Map<string, Map<string, Series>>();

  function seriesOf(name: string, protocol: string): Series {
    let byProtocol = byOperation.get(name);
    if (byProtocol === undefined) {
      if (byOperation.size >= mostOperations && name !== "") return seriesOf("", protocol);
      const operation = shortName(name);
      byProtocol = byShortName.get(operation) ?? new Map<string, Series>();
      byOperation.set(name, byProtocol);
      byShortName.set(operation, byProtocol);
    }
    let series = byProtocol.get(protocol);
    if (series === undefined) {
      series = { operation: shortName(name), protocol, duration: new Distribution(durationBuckets), ends: new Map() };
      byProtocol.set(protocol, series);
    }
    return series;
  }

  const all = (): Series[] => [...byShortName.values()].flatMap((byProtocol) => [...byProtocol.values()]);

  return {
    note({ operation, protocol, code, ms }, reason) {
      const { duration, ends } = seriesOf(operation, protocol);
      duration.observe(ms / 1000);
      let byReason = ends.get(code);
      if (byReason === undefined) {
        byReason = new Map();
        ends.set(code, byReason);
      }
      const end = byReason.get(reason);
      if (end === undefined) byReason.set(reason, { value: 1 });
      else end.value += 1;
    },
    counts: () =>
      all().flatMap(({ operation, protocol, ends }) =>
        [...ends].flatMap(([code, byReason]) =>
          [...byReason].map(([reason, { value }]) => ({ labels: { operation, protocol, code, reason }, value })),
        ),
      ),
    durations: () =>
      all().flatMap(({ operation, protocol, duration }) =>
        duration.samples(catalogue.requestDuration.name, { operation, protocol }),
      ),
  };
}

/** The method alone of what is named by service and method; a document keeps its path. */
function shortName(operation: string): string {
  if (operation === "") return other;
  return operation.startsWith("/") ? operation : operation.slice(operation.lastIndexOf("/") + 1);
}
