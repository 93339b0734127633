import type { ChainClients } from "../../chain/chains.js";
import { getErrorMessage } from "../../errors.js";
import type { Logger } from "../../observability/log.js";
import type { Metrics } from "../../observability/metrics/metrics.js";
import type { QuoteEngine } from "../../quotes/quote-engine.js";
import type { ComparisonCase } from "../../quotes/shadow-comparison/comparison-case.js";
import { createRequestSampler } from "../../quotes/shadow-comparison/request-sampler.js";
import type { ComparisonResult, ShadowComparisonDeps } from "../../quotes/shadow-comparison/shadow-comparison.js";
import type { QuoteObserver, ServedQuote } from "../../quotes/snapshot-engine.js";
import type { QuoteRequest } from "../../quotes/state/quote-request.js";
import { sleep } from "../../resilience/clock.js";
import type { SharedState } from "../../shared-state/shared-state.js";
import type { OffChainSources } from "../off-chain/off-chain-sources.js";
import { COMPARISON_TOPIC, printCase, type RecentDifferences } from "./recent-differences.js";

/** Compares one quote now and then with the SDK's, in one process of all that share their state. */
export interface ShadowComparisonModule {
  /** For the engine whose quotes are compared. */
  readonly onQuoteServed: QuoteObserver;
  /** Begins to compare the quotes of an engine. */
  start(engine: Pick<QuoteEngine, "quote">): void;
  close(): void;
}

export interface ComposeShadowComparisonOptions {
  /** Time between two comparisons. */
  readonly intervalSeconds: number;
  readonly version: string;
  readonly chains: Pick<ChainClients, "forBackground">;
  readonly offChainSources: Pick<OffChainSources, "settings" | "attestations">;
  readonly sharedState: SharedState | undefined;
  readonly metrics: Pick<Metrics, "onQuoteComparison">;
  readonly logger: Pick<Logger, "debug" | "info" | "warn">;
  readonly differences: RecentDifferences;
}

const REQUESTER = "shadow comparison";
/** What only a comparison needs is loaded for the first one: it would delay the start. */
const loadCaseModule = () => import("../../quotes/shadow-comparison/comparison-case.js");

export function composeShadowComparison(options: ComposeShadowComparisonOptions): ShadowComparisonModule {
  const { intervalSeconds, version, chains, offChainSources, sharedState, metrics, logger, differences } = options;
  const sampler = createRequestSampler(Math.random);
  const shutdown = new AbortController();
  /** The quote that is being made for a comparison: only its request is this object. */
  const awaited: { request: QuoteRequest | undefined; quote: ServedQuote | undefined } = {
    request: undefined,
    quote: undefined,
  };
  let timer: NodeJS.Timeout | undefined;
  let compare: ((request: QuoteRequest, signal: AbortSignal) => Promise<ComparisonResult>) | undefined;
  let isComparing = false;

  const topic = sharedState?.join(COMPARISON_TOPIC, {
    onPublished: differences.add,
    async onRequest(text) {
      const { count, request } = JSON.parse(text) as { readonly count: unknown; readonly request: unknown };
      if (!Number.isSafeInteger(count) || Number(count) < 1) return undefined;
      const { parseRequest } = await loadCaseModule();
      sampler.merge(parseRequest(request), Number(count));
      return "taken";
    },
    onBecomeReader() {},
  });

  function takeAwaited(quote: ServedQuote): void {
    awaited.quote = quote;
  }

  async function tick(engine: Pick<QuoteEngine, "quote">): Promise<void> {
    if (isComparing) return;
    const sample = sampler.take();
    if (sample === undefined) return;
    isComparing = true;
    try {
      if (topic === undefined || topic.isReader()) await compareSample(sample.request, engine);
      else {
        const request = (await loadCaseModule()).printRequest(sample.request);
        await topic.request(JSON.stringify({ count: sample.count, request }));
      }
    } catch (error) {
      logger.warn({ error: getErrorMessage(error) }, "quotes cannot be compared with the SDK's");
    } finally {
      isComparing = false;
    }
  }

  async function compareSample(request: QuoteRequest, engine: Pick<QuoteEngine, "quote">): Promise<void> {
    compare ??= await loadComparison(engine);
    const result = await compare(request, shutdown.signal);
    if (!shutdown.signal.aborted) await report(request, result);
  }

  /** Loads the rest of what a comparison needs. */
  async function loadComparison(engine: Pick<QuoteEngine, "quote">): Promise<NonNullable<typeof compare>> {
    const [{ createShadowComparison }, { createReferenceProcess }] = await Promise.all([
      import("../../quotes/shadow-comparison/shadow-comparison.js"),
      import("./reference-process.js"),
    ]);
    const quote: ShadowComparisonDeps["quote"] = async (request, signal) => {
      const ownRequest = { ...request };
      awaited.request = ownRequest;
      try {
        await engine.quote(ownRequest, { caller: REQUESTER, signal });
        if (awaited.quote === undefined) throw new Error("the engine has not shown its quote");
        return awaited.quote;
      } finally {
        Object.assign(awaited, { request: undefined, quote: undefined });
      }
    };
    return createShadowComparison({
      ...{ quote, sleep, referenceEngine: createReferenceProcess() },
      ...{ settings: offChainSources.settings, attestations: offChainSources.attestations },
      chains: chains.forBackground,
      versions: { service: version, node: process.version },
      now: Date.now,
    });
  }

  async function report(request: QuoteRequest, result: ComparisonResult): Promise<void> {
    metrics.onQuoteComparison(result.outcome);
    const { listBlocks, printRequest } = await loadCaseModule();
    const line = printRequest(request);
    switch (result.outcome) {
      case "equal":
        logger.debug({ ...line, quote: result.quote }, "quote equals the SDK's");
        break;
      case "unconfirmed": {
        const message = "quote differed from the SDK's, but not when both were made again";
        logger.info({ ...line, differences: result.differences }, message);
        break;
      }
      case "failed":
        logger.info({ ...line, reason: result.reason }, "quote could not be compared with the SDK's");
        break;
      case "different":
        reportDifference(result.case, listBlocks(result.case.chains));
    }
  }

  function reportDifference(found: ComparisonCase, blocks: Readonly<Record<string, number>>): void {
    const { id, request, servedQuote, sdkQuote } = found;
    logger.warn({ id, ...request, blocks, quote: servedQuote, sdkQuote }, "quote differs from the SDK's");
    const text = printCase(found);
    differences.add(text);
    topic?.publish(text);
  }

  return {
    onQuoteServed(request) {
      if (request === awaited.request) return takeAwaited;
      sampler.observe(request);
      return undefined;
    },
    start(engine) {
      timer = setInterval(() => void tick(engine), intervalSeconds * 1_000).unref();
    },
    close() {
      clearInterval(timer);
      shutdown.abort();
    },
  };
}
