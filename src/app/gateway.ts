import cluster from "node:cluster";
import { BridgeService } from "../../gen/hop/bridge/v1/bridge_pb.js";
import type { Config } from "../config/config.js";
import { ReadTurns } from "../http/admission/read-turns.js";
import type { Document, DynamicDocument } from "../http/documents.js";
import { mountService } from "../http/request/mounted-service.js";
import { HttpServer } from "../http/server.js";
import { createLogger, type Logger } from "../observability/log.js";
import { BufferedLogOutput } from "../observability/log-output.js";
import type { MetricSources } from "../observability/metrics/catalogue.js";
import { createWorkerMetricsClient } from "../observability/metrics/cluster-metrics.js";
import { createThrottledScrape, PROMETHEUS_MEDIA_TYPE } from "../observability/metrics/exposition.js";
import { Metrics } from "../observability/metrics/metrics.js";
import { createLivenessReport, createProbes, describeReachability } from "../observability/probes.js";
import type { Tracing } from "../observability/tracing.js";
import { createListAvailableRoutes } from "../operations/list-available-routes.js";
import { createBatchGetQuotes } from "../operations/quotes/batch-get-quotes.js";
import { createGetQuote } from "../operations/quotes/get-quote.js";
import { createGetTransferStatus } from "../operations/transfers/get-transfer-status.js";
import { createGetWithdrawal } from "../operations/transfers/get-withdrawal.js";
import { createListTransfers } from "../operations/transfers/list-transfers.js";
import { createWatchTransfers } from "../operations/transfers/watch-transfers.js";
import { AdaptiveLimiter } from "../resilience/adaptive-limiter.js";
import { createTurnClocks, monotonicNow, SYSTEM_CLOCKS } from "../resilience/clock.js";
import { FairQuota } from "../resilience/fair-quota.js";
import { FairScheduler } from "../resilience/fair-scheduler.js";
import { Scheduler } from "../resilience/scheduler.js";
import { composeChains, loadQuorum } from "./compose-chains.js";
import { openIndex } from "./compose-index.js";
import { composeMetricsListener } from "./compose-metrics-listener.js";
import { composeQuoteEngine } from "./compose-quote-engine.js";
import { composeSharedState } from "./compose-shared-state.js";
import { composeWatches, TransfersModule } from "./compose-transfers.js";
import { createDependencyMonitor } from "./dependency-monitor.js";
import { OffChainSources } from "./off-chain-sources.js";
import { collectStaticAssets, findPackageRoot } from "./package-files.js";
import { logStartupWarnings } from "./process-lifecycle.js";

/** The whole service. */
export interface Gateway {
  /** Starts to listen. Returns the URLs with the actual ports. */
  start(): Promise<{
    readonly url: string;
    /** URL of the metrics; undefined: they are served on the main port, or by the primary process. */
    readonly metricsUrl?: string | undefined;
  }>;
  /** Stops accepting requests, waits a bounded time for those in progress, and closes every connection. */
  stop(): Promise<void>;
}

/** Time that requests in progress have to finish after a stop, in addition to the request timeout. */
const SHUTDOWN_GRACE_MS = 1_000;

/** Quotes of batches that may wait at the same time: batches of 200 connections at their largest. Each takes a few kilobytes. */
const MAX_PENDING_BATCH_QUOTES = 20_000;

export interface GatewayOptions {
  /** As in HttpServerOptions: false makes the general path serve every request. */
  readonly fastPaths?: boolean;
  /** Key of the digits in the names of endpoints. Default: a random one. */
  readonly endpointNameKey?: string | undefined;
  /** Receives one line about which chains respond. Without it, they are checked when something asks for them. */
  readonly onChainsChecked?: ((summary: string) => void) | undefined;
  /** Adds or replaces documents by path: for a program that runs the service in its own process. */
  readonly extendDocuments?: ((documents: Documents) => void) | undefined;
  /** Destination of the log unless a logger is given. Default: standard output. */
  readonly logOutput?: BufferedLogOutput;
}

type Documents = Map<string, Document>;

/** Creates the service from its parts. The only place that knows all of them. */
export async function createGateway(
  config: Config,
  givenLogger?: Logger,
  options: GatewayOptions = {},
): Promise<Gateway> {
  const { endpointNameKey, onChainsChecked, extendDocuments, logOutput = new BufferedLogOutput(1) } = options;
  const logger = givenLogger ?? createLogger(config.logLevel, logOutput);
  const { version } = findPackageRoot();
  const draining = new AbortController();
  const tracing = config.isTracingEnabled
    ? new (await import("../observability/tracing.js")).Tracing(version)
    : undefined;
  const sources = {
    version,
    get status() {
      return dependencies.read();
    },
    get load() {
      return readLoad(parts, server);
    },
    get lostLogLines() {
      return logOutput.countLostLines();
    },
    get now() {
      return parts.clocks.now();
    },
  };
  const metrics: Metrics = new Metrics(sources, monotonicNow);
  const parts = await composeParts({ config, logger, tracing, metrics, endpointNameKey });
  const { blockAges } = parts;
  const dependencies = createDependencyMonitor({
    ...parts,
    getClock: blockAges && (() => blockAges.clock()),
    ...parts.clocks,
  });
  const { documents, metricsListener } = composeDocuments(
    { config, logger, metrics, dependencies, parts, extendDocuments },
    draining.signal,
  );
  const server: HttpServer = new HttpServer({
    host: config.host,
    port: config.port,
    services: [mountOperations(metrics, parts)],
    maxTimeoutMs: config.requestTimeoutMs,
    documents,
    scheduler: parts.scheduler,
    eventLoop: parts.eventLoop,
    reads: parts.reads,
    limits: { operationStreams: config.watchMaxStreams || Number.MAX_SAFE_INTEGER },
    fastPaths: options.fastPaths ?? true,
    log: metrics.countEntries(logger.logRequest),
    tracer: tracing?.callTracer,
    trustProxy: config.trustProxy,
    docsUrl: config.docsUrl,
    rateLimit: config.rateLimit && {
      ...config.rateLimit,
      redis: parts.redis,
      onFailure: (err) => logger.warn({ err }, "rate limiter failed; request allowed"),
    },
    onInternalError: (error, requestId) => logger.error({ requestId, err: error }, "internal error"),
  });
  return new ComposedGateway({ config, logger, tracing, parts, server, metricsListener, draining, onChainsChecked });
}

type Parts = Awaited<ReturnType<typeof composeParts>>;
type MetricsListener = ReturnType<typeof composeMetricsListener>;

/** The service in this process. */
class ComposedGateway implements Gateway {
  readonly #gateway;

  constructor(gateway: {
    readonly config: Config;
    readonly logger: Logger;
    readonly tracing: Tracing | undefined;
    readonly parts: Parts;
    readonly server: HttpServer;
    readonly metricsListener: MetricsListener;
    /** Aborted when the service stops. */
    readonly draining: AbortController;
    readonly onChainsChecked: GatewayOptions["onChainsChecked"];
  }) {
    this.#gateway = gateway;
  }

  async start(): ReturnType<Gateway["start"]> {
    const { config, logger, tracing, parts, server, metricsListener, draining } = this.#gateway;
    await parts.transfers.start();
    if (!cluster.isWorker) logStartupWarnings(config, logger);
    const { url } = await server.listen();
    // After the main port: if that is taken, nothing is to be said about this one.
    const metricsUrl = await metricsListener?.listen().catch(async (error: unknown) => {
      await this.stop();
      throw error;
    });
    if (tracing?.isSdkRegistered() === false) logger.warn("tracing is enabled but no OpenTelemetry SDK is registered");
    // The first request of undici compiles its parser, which would delay the report of the address.
    setImmediate(() => {
      if (draining.signal.aborted) return;
      parts.offChainSources.warmUp();
      void this.#reportChains();
    });
    return { url, metricsUrl };
  }

  /** A wrong endpoint shows at the start, not with the first request to its chain. */
  async #reportChains(): Promise<void> {
    const { parts, draining, onChainsChecked } = this.#gateway;
    if (onChainsChecked === undefined) return;
    await parts.chains.check("mainnet");
    if (!draining.signal.aborted) onChainsChecked(describeReachability({ chains: parts.chains.listStates() }));
  }

  async stop(): Promise<void> {
    const { config, parts, server, metricsListener, draining } = this.#gateway;
    draining.abort();
    await server.close(config.requestTimeoutMs + SHUTDOWN_GRACE_MS);
    parts.scheduler.close();
    parts.quotes.close();
    parts.watcher.close();
    await parts.transfers.stop();
    parts.redis?.close();
    await Promise.all([metricsListener?.close(), parts.chains.close(), parts.offChainSources.close()]);
  }
}

/** Creates what the operations use. */
async function composeParts({
  config,
  logger,
  tracing,
  metrics,
  endpointNameKey,
}: {
  readonly config: Config;
  readonly logger: Logger;
  readonly tracing: Tracing | undefined;
  readonly metrics: Metrics;
  readonly endpointNameKey: string | undefined;
}) {
  // Each worker is a process of its own, and the endpoints see all of them.
  const callsPerSecond = config.rpcBudget === undefined ? undefined : config.rpcBudget / config.workerCount;
  const createQuorum = await loadQuorum(config, (...line) => logger.warn(...line), metrics.quorum);
  const endpoints = { callsPerSecond, endpointNameKey, createQuorum };
  const turnClocks = createTurnClocks(SYSTEM_CLOCKS);
  const { chains, blockAges } = composeChains({ config, clocks: turnClocks, metrics, tracing, logger, ...endpoints });
  const clocks = blockAges === undefined ? turnClocks : { ...turnClocks, now: () => blockAges.now() };
  // It may be refused: before there is a connection to Redis, which somebody would have to close.
  const index = config.index && (await openIndex(config.index.location, logger));
  const { cache: sharedCache, redis } = (await composeSharedState(config, logger)) ?? {};
  const offChainSources = new OffChainSources({ config, chains, logger, clocks, sharedCache });
  const scheduler = new Scheduler({ onError: (err, job) => logger.error({ err, job }, "a periodic job failed") });
  const eventLoop = new FairScheduler();
  const reads = new ReadTurns();
  const limiter = new AdaptiveLimiter(monotonicNow);
  const { attestations } = offChainSources;
  const sources = { chains, openedIndex: index, attestations, sharedCache };
  const transfers = new TransfersModule({ config, ...sources, limiter, metrics, logger });
  const deliveryTimes = transfers.index?.deliveryTimes;
  const quotes = composeQuoteEngine({
    config,
    chains,
    blockAges,
    offChainSources,
    limiter,
    metrics,
    tracing,
    sharedCache,
    clocks,
    deliveryTimes,
  });
  const { prices } = offChainSources;
  const watcher = composeWatches({ config, chains, transfers, prices, metrics, scheduler, reads });
  return {
    callsPerSecond,
    clocks,
    chains,
    blockAges,
    redis,
    offChainSources,
    scheduler,
    eventLoop,
    reads,
    batchQuota: new FairQuota(() => MAX_PENDING_BATCH_QUOTES),
    limiter,
    index,
    transfers,
    quotes,
    watcher,
  };
}

/** Implements the contract. */
function mountOperations(metrics: Metrics, parts: Parts) {
  const { chains, blockAges, offChainSources, quotes, transfers, watcher } = parts;
  const { settings, prices, attestations } = offChainSources;
  const { engine } = quotes;
  const { statusCache, details, withdrawals } = transfers;
  const { now } = SYSTEM_CLOCKS;
  return mountService(BridgeService, {
    getQuote: createGetQuote({ chains, settings, engine }),
    batchGetQuotes: createBatchGetQuotes({
      settings,
      engine,
      quoteQuota: parts.batchQuota,
      eventLoop: parts.eventLoop,
      onResults: metrics.onBatchResults,
    }),
    getTransferStatus: createGetTransferStatus({ chains, blockAges, statusCache, details, attestations, prices, now }),
    listTransfers: createListTransfers({ lister: transfers.index?.lister, details, chains, attestations, prices }),
    getWithdrawal: createGetWithdrawal({ chains, statusCache, withdrawals, now }),
    listAvailableRoutes: createListAvailableRoutes({ settings }),
    watchTransfers: createWatchTransfers({ watcher }),
  });
}

/** Creates the documents of the main port, and the listener of the metrics if they have a port of their own. */
function composeDocuments(
  {
    config,
    logger,
    metrics,
    dependencies,
    parts,
    extendDocuments,
  }: {
    readonly config: Config;
    readonly logger: Logger;
    readonly parts: Parts;
    readonly metrics: Metrics;
    readonly dependencies: ReturnType<typeof createDependencyMonitor>;
    readonly extendDocuments: GatewayOptions["extendDocuments"];
  },
  draining: AbortSignal,
): { readonly documents: Documents; readonly metricsListener: MetricsListener } {
  const { url: root, version } = findPackageRoot();
  // A worker renders the metrics of all workers.
  const renderMetrics = createThrottledScrape(
    cluster.isWorker ? createWorkerMetricsClient(metrics.collectJson) : metrics.renderText,
  );
  const readMetrics = async (): Promise<DynamicDocument> => {
    return { status: 200, contentType: PROMETHEUS_MEDIA_TYPE, body: await renderMetrics() };
  };
  const isDraining = (): boolean => draining.aborted;
  const documents: Documents = new Map<string, Document>([
    ...collectStaticAssets(root, config.docsUrl),
    ...createProbes({ version, dependencies, isDraining, ...parts.clocks }),
  ]);
  if (config.metricsPort === "same") documents.set("/metrics", readMetrics);
  extendDocuments?.(documents);
  // With several workers, the primary has the listener.
  const readLiveness = (): DynamicDocument => createLivenessReport(draining.aborted);
  const metricsListener = cluster.isWorker
    ? undefined
    : composeMetricsListener({ config, logger, readMetrics, readLiveness });
  return { documents, metricsListener };
}

function readLoad(parts: Parts, server: HttpServer): MetricSources["load"] {
  const { chains, limiter, quotes, watcher, redis, callsPerSecond } = parts;
  return {
    ...server.getLoad(),
    limiter: limiter.load(),
    pendingBatchQuotes: parts.batchQuota.heldCount(),
    upstreamRequests: chains.countRequestsInFlight(),
    customEndpoints: chains.countCustomEndpoints(),
    callsPerSecond: callsPerSecond ?? 0,
    activeRoutes: quotes.countActiveRoutes(),
    watches: watcher.counts(),
    redis: redis?.stats(),
  };
}
