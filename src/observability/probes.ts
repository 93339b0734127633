import type { DependencyMonitor, DependencyStatus, SourceStatus } from "../app/dependency-status.js";
import type { ObservedHead } from "../chain/endpoints/head-tracker.js";
import type { DynamicDocument } from "../http/documents.js";

export interface ProbesOptions {
  readonly version: string;
  readonly dependencies: DependencyMonitor;
  /** Whether the service takes no more work and ends. */
  readonly isDraining: () => boolean;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds on a steady clock. */
  readonly monotonicNow: () => number;
}

/** ok: an endpoint answers. failing: none does. unknown: none has been asked, or not all of those that may answer. */
type ChainReachability = "ok" | "failing" | "unknown";
type ChainStatus = DependencyStatus["chains"][number];

interface Readiness {
  readonly status: "ready" | "degraded" | "unready";
  /** Why it is not ready. */
  readonly reason?: string;
}

/** Sources without which mainnet is served all the same. */
const optionalSources: ReadonlySet<string> = new Set(["settings_goerli"]);

/**
 * What tells machines whether the service lives, whether it is ready, and how what it depends on is, by path.
 *
 * Ready is what may get requests: also where some chain or source fails, for the others are served, and because every
 * instance would be taken out at once. What one caller can bring about, as by asking for a network that nobody serves
 * any more, is told and changes nothing.
 */
export function createProbes(options: ProbesOptions): Map<string, () => DynamicDocument> {
  const { version, dependencies, isDraining, now, monotonicNow } = options;

  function headOf(head: ObservedHead | undefined) {
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
    const { chains, sources, index } = dependencies.read();
    const readiness: Readiness = isDraining()
      ? { status: "unready", reason: "it ends: take no more requests here" }
      : assessReadiness(chains, sources);
    return createJsonReport(readiness.status === "unready" ? 503 : 200, {
      ...readiness,
      version,
      chains: chains.map((chain) => ({
        network: chain.network,
        chain: chain.chain,
        chainId: chain.chainId,
        state: classifyChain(chain),
        head: headOf(chain.head),
        endpoints: chain.endpoints.map(({ endpoint, state: word, head }) => {
          return { endpoint, state: word, head: headOf(head) };
        }),
      })),
      sources: sources.map(({ source, state: word, ageMs }) => {
        return { source, state: word, ageSeconds: ageMs === undefined ? undefined : roundToTenths(ageMs / 1000) };
      }),
      index,
    });
  }

  return new Map([
    [
      "/livez",
      () => (isDraining() ? createJsonReport(503, { status: "DRAINING" }) : createJsonReport(200, { status: "OK" })),
    ],
    // As the older server had it.
    ["/health", () => createJsonReport(200, { status: "OK" })],
    ["/readyz", readyz],
  ]);
}

function classifyChain({ endpoints }: ChainStatus): ChainReachability {
  if (endpoints.some(({ state }) => state === "ok" || state === "lagging")) return "ok";
  const isFailing = endpoints.length > 0 && endpoints.every(({ state }) => state === "failing" || state === "cooldown");
  return isFailing ? "failing" : "unknown";
}

function assessReadiness(chains: readonly ChainStatus[], sources: readonly SourceStatus[]): Readiness {
  const ofMainnet = chains.filter(({ network }) => network === "mainnet");
  const failing = ofMainnet.filter((chain) => classifyChain(chain) === "failing").map(({ chain }) => chain);
  if (failing.length === ofMainnet.length) return { status: "unready", reason: "no chain answers" };
  const lost = sources
    .filter(({ source, state }) => state === "failing" && !optionalSources.has(source))
    .map(({ source }) => source);
  if (failing.length + lost.length === 0) return { status: "ready" };
  return { status: "degraded", reason: `no answer from ${[...failing, ...lost].join(", ")}` };
}

/** What is undefined is left out. */
function createJsonReport(status: number, body: object): DynamicDocument {
  return { status, contentType: "application/json; charset=utf-8", body: JSON.stringify(body) };
}

/** To tenths. */
function roundToTenths(value: number): number {
  return Math.round(value * 10) / 10;
}
