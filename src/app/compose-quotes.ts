import type { Chains } from "../chain/chains.js";
import type { Config } from "../config/config.js";
import type { Logger } from "../observability/log.js";
import type { Metrics } from "../observability/metrics/metrics.js";
import type { Tracing } from "../observability/tracing.js";
import type { Quote } from "../quotes/math/quote.js";
import type { QuoteEngine } from "../quotes/quote-engine.js";
import { createSdkEngine, type SdkEngine } from "../quotes/sdk-engine.js";
import { createVerification, type Verdict } from "../quotes/shadow-comparison.js";
import { createSnapshotEngine } from "../quotes/snapshot-engine.js";
import type { Clocks } from "../quotes/state/chain-state-cache.js";
import type { OpenRoutesDeps } from "../quotes/state/route-cache.js";
import type { Gate } from "../resilience/adaptive-limiter.js";
import type { Upstreams } from "./off-chain-sources.js";

/** What prices transfers, put together. */
export interface Quoting {
  readonly engine: QuoteEngine;
  /** Routes that are kept fresh. */
  routesKept(): number;
  close(): void;
}

export interface QuotingOptions {
  readonly config: Config;
  readonly chains: Chains;
  readonly upstreams: Upstreams;
  readonly gate: Gate;
  readonly clocks: Clocks;
  readonly metrics: Metrics;
  readonly tracing: Tracing | undefined;
  readonly logger: Logger;
}

type OnRead = NonNullable<OpenRoutesDeps["onRead"]>;

export function createQuoting(options: QuotingOptions): Quoting {
  const { config, chains, upstreams, gate, clocks, metrics, tracing, logger } = options;
  const closing = new AbortController();
  const access = { ...upstreams, chains: chains.of };
  const sdkEngine = createSdkEngine({ ...access, gate });
  if (config.quoteEngine === "sdk") return { engine: sdkEngine, routesKept: () => 0, close: () => {} };

  /** What a read says of its chain's head is known from then on. */
  const counted: OnRead = async (network, about, run) => {
    try {
      const facts = await run();
      metrics.onSnapshotRead("ok");
      const { number, timeSeconds } = facts.block;
      chains.noteHead(network, about.chain, { number: Number(number), time: Number(timeSeconds) });
      return facts;
    } catch (error) {
      if (!closing.signal.aborted) metrics.onSnapshotRead("failed");
      throw error;
    }
  };
  const onRead: OnRead =
    tracing === undefined
      ? counted
      : (network, about, run) => tracing.onRead(network, about, () => counted(network, about, run));
  const engine = createSnapshotEngine({
    ...access,
    maxAgeMs: config.quoteMaxAgeMs,
    maxStaleMs: config.quoteMaxStaleMs,
    clocks,
    onRead,
    onAge: metrics.onQuote,
    ...(config.quoteVerifyRate > 0 && { onQuote: verification(sdkEngine) }),
  });

  function verification(judge: SdkEngine): ReturnType<typeof createVerification> {
    return createVerification({
      rate: config.quoteVerifyRate,
      engine: judge,
      chains: chains.of,
      onVerdict(verdict) {
        metrics.onVerdict(verdict.bySdk === undefined ? "failed" : verdict.isEqual ? "equal" : "different");
        logVerdict(logger, verdict);
      },
      random: Math.random,
      signal: closing.signal,
    });
  }

  return {
    engine,
    routesKept: engine.routesKept,
    close() {
      closing.abort();
      engine.close();
    },
  };
}

/** Says what the SDK made of a quote of ours, with all that it takes to compute both again. */
function logVerdict(logger: Logger, { given, bySdk, isEqual, counts }: Verdict): void {
  const { request, quote, source, destination } = given;
  const { network, token, amountIn, slippage } = request;
  const line = {
    network,
    token: token.name,
    route: `${request.source.slug}>${request.destination.slug}`,
    amount: String(amountIn),
    slippage,
    sourceBlock: String(source?.block.number ?? ""),
    destinationBlock: String(destination?.block.number ?? ""),
    ours: inDigits(quote),
    counts,
  };
  if (bySdk === undefined) logger.info(line, "a quote could not be verified by the SDK");
  else if (isEqual) logger.debug(line, "a quote is verified by the SDK");
  else logger.warn({ ...line, sdk: inDigits(bySdk) }, "a quote differs from the SDK's");
}

function inDigits(quote: Quote): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(quote).map(([name, value]) => [name, String(value)]));
}
