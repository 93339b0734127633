import type { ObservedHead } from "../chain/heads/head-tracker.js";
import type { DynamicDocument } from "../http/documents.js";
import type { DependencyMonitor, DependencyStatus } from "./dependency-status.js";

/** ok: an endpoint responds. failing: every endpoint fails. unknown: no endpoint is known to respond and not all fail. */
type ChainReachability = "ok" | "failing" | "unknown";
type ChainStatus = DependencyStatus["chains"][number];

/** Sources that mainnet does not need. */
const OPTIONAL_SOURCES: ReadonlySet<string> = new Set(["settings_goerli"]);
/** Sources that mainnet does not need while the price document can be read. */
const SPARE_PRICE_SOURCES: ReadonlySet<string> = new Set(["chainlink_ethereum", "chainlink_arbitrum"]);

/**
 * Creates the documents for liveness and readiness probes, by path.
 *
 * The service stays ready while some chains or sources fail: the other routes can still be served, and all instances would
 * be taken out of service at the same time. Only mainnet counts: a caller who requests a network without working endpoints
 * must not change the readiness.
 */
export function createProbes(options: {
  readonly version: string;
  readonly dependencies: DependencyMonitor;
  /** Whether the service is shutting down and accepts no more requests. */
  readonly isDraining: () => boolean;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds on a monotonic clock. */
  readonly monotonicNow: () => number;
}): Map<string, () => DynamicDocument> {
  const { version, dependencies, isDraining, now, monotonicNow } = options;

  function formatHead(head: ObservedHead | undefined) {
    if (head === undefined) return undefined;
    const ageSeconds = roundToTenths(Math.max(0, now() / 1000 - head.timestamp));
    return {
      number: head.number,
      ageSeconds,
      seenSecondsAgo: roundToTenths((monotonicNow() - head.observedAt) / 1000),
    };
  }

  function readyz(): DynamicDocument {
    if (!isDraining()) dependencies.probe();
    const status = dependencies.read();
    const { chains, sources, index, clock, burnLimitsUsdc } = status;
    const readiness = isDraining() ? { status: "unready", reason: "shutting down" } : assessReadiness(status);
    return createJsonReport(readiness.status === "unready" ? 503 : 200, {
      ...readiness,
      version,
      chains: chains.map((chain) => ({
        network: chain.network,
        chain: chain.chain,
        chainId: chain.chainId,
        state: chain.isStalled ? "stalled" : classifyChain(chain),
        head: formatHead(chain.head),
        cctpBurnLimitUsdc: chain.network === "mainnet" ? burnLimitsUsdc.get(chain.chain) : undefined,
        endpoints: chain.endpoints.map(({ endpoint, state, head, failure }) => {
          return { endpoint, state, head: formatHead(head), failure };
        }),
      })),
      sources: sources.map(({ source, state, ageMs, failure }) => {
        return { source, state, ageSeconds: ageMs === undefined ? undefined : roundToTenths(ageMs / 1000), failure };
      }),
      index,
      clock: describeClock(clock),
    });
  }

  return new Map([
    ["/livez", () => createLivenessReport(isDraining())],
    // The health path of the older server.
    ["/health", () => createJsonReport(200, { status: "OK" })],
    ["/readyz", readyz],
  ]);
}

/** Whether the process is alive: it is if it can answer. During a shutdown it asks not to be used any more. */
export function createLivenessReport(isDraining: boolean): DynamicDocument {
  return isDraining ? createJsonReport(503, { status: "DRAINING" }) : createJsonReport(200, { status: "OK" });
}

function classifyChain({ endpoints }: ChainStatus): ChainReachability {
  if (endpoints.some(({ state }) => state === "ok" || state === "lagging")) return "ok";
  const isFailing = endpoints.length > 0 && endpoints.every(({ state }) => state === "failing" || state === "cooldown");
  return isFailing ? "failing" : "unknown";
}

/** Returns in one line which chains of mainnet respond, and how the others fail. */
export function describeReachability({ chains }: Pick<DependencyStatus, "chains">): string {
  const mainnetChains = chains.filter(({ network }) => network === "mainnet");
  const silent = mainnetChains.filter((chain) => classifyChain(chain) !== "ok");
  const problems = silent.map(({ chain, endpoints }) => {
    const failures = new Set(endpoints.map(({ failure = "no answer" }) => failure));
    return `; ${chain}: ${[...failures].join(", ")}`;
  });
  const count = `${mainnetChains.length - silent.length} of ${mainnetChains.length} chains reachable`;
  return count + problems.join("");
}

/** Returns by how much the clock of this machine is wrong; undefined: it is right as far as is known. */
function describeClock(clock: DependencyStatus["clock"]) {
  if (clock?.evidence === undefined) return undefined;
  return { evidence: clock.evidence, offsetSeconds: roundToTenths(clock.offsetMs / 1000) };
}

/** Returns whether to send requests here, and why not. */
function assessReadiness({ chains, sources, clock }: DependencyStatus) {
  const mainnetChains = chains.filter(({ network }) => network === "mainnet");
  // Otherwise a rolling update would take a replica that works for one whose endpoints are all dead.
  if (!mainnetChains.every(({ isChecked }) => isChecked))
    return { status: "unready", reason: "the first check of the chains has not ended" };
  const failingChains = mainnetChains.filter((chain) => classifyChain(chain) === "failing").map(({ chain }) => chain);
  if (failingChains.length === mainnetChains.length) return { status: "unready", reason: "no chain responds" };
  const hasPriceDocument = sources.some(({ source, state }) => source === "prices" && state === "ok");
  const failingSources = sources
    .filter(({ source, state }) => state === "failing" && !OPTIONAL_SOURCES.has(source))
    .filter(({ source }) => !hasPriceDocument || !SPARE_PRICE_SOURCES.has(source))
    .map(({ source }) => source);
  const silent = [...failingChains, ...failingSources];
  const stalled = mainnetChains.filter((chain) => chain.isStalled).map(({ chain }) => chain);
  const wrongClock = describeClock(clock);
  const reasons = [
    ...(silent.length > 0 ? [`no response from ${silent.join(", ")}`] : []),
    ...(stalled.length > 0 ? [`no new blocks on ${stalled.join(", ")}`] : []),
    ...(wrongClock ? [`the clock of this machine is wrong by ${Math.abs(wrongClock.offsetSeconds)} s`] : []),
  ];
  return reasons.length === 0 ? { status: "ready" } : { status: "degraded", reason: reasons.join("; ") };
}

/** Omits undefined properties, as JSON does. */
export function createJsonReport(status: number, body: object): DynamicDocument {
  return { status, contentType: "application/json; charset=utf-8", body: JSON.stringify(body) };
}

function roundToTenths(value: number): number {
  return Math.round(value * 10) / 10;
}
