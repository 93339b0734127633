import type { ServiceState, SourceState, StateReader } from "../app/dependency-status.js";
import type { SeenHead } from "../chain/endpoints/head-tracker.js";
import type { Report } from "../http/documents.js";

export interface ProbesOptions {
  readonly version: string;
  readonly state: StateReader;
  /** Whether the service takes no more work and ends. */
  readonly isDraining: () => boolean;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds on a steady clock. */
  readonly steady: () => number;
}

/** ok: an endpoint answers. failing: none does. unknown: none has been asked, or not all of those that may answer. */
type ChainWord = "ok" | "failing" | "unknown";
type ChainState = ServiceState["chains"][number];

interface Readiness {
  readonly status: "ready" | "degraded" | "unready";
  /** Why it is not ready. */
  readonly reason?: string;
}

/** Sources without which mainnet is served all the same. */
const needlessSources: ReadonlySet<string> = new Set(["settings_goerli"]);

/**
 * What tells machines whether the service lives, whether it is ready, and how what it depends on is, by path.
 *
 * Ready is what may get requests: also where some chain or source fails, for the others are served, and because every
 * instance would be taken out at once. What one caller can bring about, as by asking for a network that nobody serves
 * any more, is told and changes nothing.
 */
export function createProbes(options: ProbesOptions): Map<string, () => Report> {
  const { version, state, isDraining, now, steady } = options;

  function headOf(head: SeenHead | undefined) {
    if (head === undefined) return undefined;
    const ageSeconds = rounded(Math.max(0, now() / 1000 - head.time));
    return { number: head.number, ageSeconds, seenSecondsAgo: rounded((steady() - head.seenAt) / 1000) };
  }

  function readyz(): Report {
    if (!isDraining()) state.look();
    const { chains, sources, index } = state.read();
    const readiness: Readiness = isDraining()
      ? { status: "unready", reason: "it ends: take no more requests here" }
      : judge(chains, sources);
    return json(readiness.status === "unready" ? 503 : 200, {
      ...readiness,
      version,
      chains: chains.map((chain) => ({
        network: chain.network,
        chain: chain.chain,
        chainId: chain.chainId,
        state: wordFor(chain),
        head: headOf(chain.head),
        endpoints: chain.endpoints.map(({ endpoint, state: word, head }) => {
          return { endpoint, state: word, head: headOf(head) };
        }),
      })),
      sources: sources.map(({ source, state: word, ageMs }) => {
        return { source, state: word, ageSeconds: ageMs === undefined ? undefined : rounded(ageMs / 1000) };
      }),
      index,
    });
  }

  return new Map([
    ["/livez", () => (isDraining() ? json(503, { status: "DRAINING" }) : json(200, { status: "OK" }))],
    // As the older server had it.
    ["/health", () => json(200, { status: "OK" })],
    ["/readyz", readyz],
  ]);
}

function wordFor({ endpoints }: ChainState): ChainWord {
  if (endpoints.some(({ state }) => state === "ok" || state === "lagging")) return "ok";
  const isFailing = endpoints.length > 0 && endpoints.every(({ state }) => state === "failing" || state === "resting");
  return isFailing ? "failing" : "unknown";
}

function judge(chains: readonly ChainState[], sources: readonly SourceState[]): Readiness {
  const ofMainnet = chains.filter(({ network }) => network === "mainnet");
  const failing = ofMainnet.filter((chain) => wordFor(chain) === "failing").map(({ chain }) => chain);
  if (failing.length === ofMainnet.length) return { status: "unready", reason: "no chain answers" };
  const lost = sources
    .filter(({ source, state }) => state === "failing" && !needlessSources.has(source))
    .map(({ source }) => source);
  if (failing.length + lost.length === 0) return { status: "ready" };
  return { status: "degraded", reason: `no answer from ${[...failing, ...lost].join(", ")}` };
}

/** What is undefined is left out. */
function json(status: number, body: object): Report {
  return { status, type: "application/json; charset=utf-8", text: JSON.stringify(body) };
}

/** To tenths. */
function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}
