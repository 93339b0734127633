import cluster from "node:cluster";
import { BridgeService } from "../../gen/hop/bridge/v1/bridge_pb.js";
import type { Config } from "../config/config.js";
import type { DynamicDocument, StaticDocument } from "../http/documents.js";
import { mountService } from "../http/request/mounted-service.js";
import { createHttpServer } from "../http/server.js";
import { createLogger, type Logger } from "../observability/log.js";
import { type CountingLogOutput, createLogOutput } from "../observability/log-output.js";
import { createWorkerMetricsClient } from "../observability/metrics/cluster-metrics.js";
import { PROMETHEUS_MEDIA_TYPE } from "../observability/metrics/media-type.js";
import { createMetrics, type ServiceLoad } from "../observability/metrics/metrics.js";
import { createThrottledScrape } from "../observability/metrics/throttled-scrape.js";
import { createLivenessReport, createProbes } from "../observability/probes.js";
import { createListAvailableRoutes } from "../operations/list-available-routes.js";
import type { Operation } from "../operations/operation.js";
import { createBatchGetQuotes } from "../operations/quotes/batch-get-quotes.js";
import { createGetQuote } from "../operations/quotes/get-quote.js";
import { createGetTransferStatus } from "../operations/transfers/get-transfer-status.js";
import { createListTransfers } from "../operations/transfers/list-transfers.js";
import { createWatchTransfers } from "../operations/transfers/watch-transfers.js";
import { withDeadline } from "../operations/with-deadline.js";
import { createAdaptiveLimiter } from "../resilience/adaptive-limiter.js";
import { createTurnClock, monotonicNow } from "../resilience/clock.js";
import { createFairQuota } from "../resilience/fair-quota.js";
import { composeChains } from "./compose-chains.js";
import { composeMetricsListener } from "./compose-metrics-listener.js";
import { composeQuotes } from "./compose-quotes.js";
import { type ComposeSharedStateOptions, composeSharedState } from "./compose-shared-state.js";
import { composeTransfers } from "./compose-transfers.js";
import { composeWatches } from "./compose-watches.js";
import { createDependencyMonitor } from "./dependency-monitor.js";
import { createOffChainSources } from "./off-chain/off-chain-sources.js";
import { findPackageRoot } from "./package-root.js";
import { createRecentDifferences, DIFFERENCES_PATH } from "./shadow-comparison/recent-differences.js";
import { loadQuorum } from "./startup/load-quorum.js";
import { logStartupWarnings } from "./startup/startup-warnings.js";
import { collectStaticAssets } from "./static-assets.js";

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

/** Requests that may wait for upstreams at the same time; each takes a few kilobytes. */
const MAX_PENDING_REQUESTS = 10_000;

/** Quotes of batches that may wait at the same time; each takes a few kilobytes too. */
const MAX_PENDING_BATCH_QUOTES = 10_000;

export interface GatewayOptions {
  /** As in HttpServerOptions: false makes the general path serve every request. */
  readonly fastPaths?: boolean;
  /** Key of the digits in the names of endpoints. Default: a random one. */
  readonly endpointNameKey?: string | undefined;
  /** Joins what the workers of this machine share. Default: this process is the only one. */
  readonly joinWorkers?: ComposeSharedStateOptions["joinWorkers"];
  /** Destination of the log unless a logger is given. Default: standard output. */
  readonly logOutput?: CountingLogOutput;
}

/** Creates the service from its parts. The only place that knows all of them. */
export async function createGateway(
  config: Config,
  givenLogger?: Logger,
  { fastPaths = true, endpointNameKey, joinWorkers, logOutput = createLogOutput(1) }: GatewayOptions = {},
): Promise<Gateway> {
  const logger = givenLogger ?? createLogger(config.logLevel, logOutput);
  const { url: root, version } = findPackageRoot();
  const clocks = { now: () => Date.now(), monotonicNow };
  const turnClocks = { now: createTurnClock(clocks.now), monotonicNow: createTurnClock(monotonicNow) };
  let isDraining = false;
  const tracing = config.isTracingEnabled
    ? (await import("../observability/tracing.js")).createTracing(version)
    : undefined;
  const metrics = createMetrics({
    version,
    getDependencyStatus: () => dependencies.read(),
    getLoad,
    countLostLogLines: logOutput.lostLines,
    ...clocks,
  });
  // Each worker is a process of its own, and the endpoints see all of them.
  const callsPerSecond = config.rpcBudget === undefined ? undefined : config.rpcBudget / config.workerCount;
  const createQuorum = await loadQuorum(config, (...line) => logger.warn(...line), metrics.quorum);
  const endpointOptions = { callsPerSecond, endpointNameKey, createQuorum };
  const { chains, blockAges } = composeChains({ config, clocks, metrics, tracing, logger, ...endpointOptions });
  const { sharedState, redis } = await composeSharedState({ config, version, logger, joinWorkers });
  const offChainSources = createOffChainSources({ config, chains, logger, clocks: turnClocks, sharedState });
  const { settings, prices } = offChainSources;
  const limiter = createAdaptiveLimiter(monotonicNow);
  const transfers = composeTransfers({ config, chains, limiter, metrics, logger, redis });
  const differences = createRecentDifferences();
  const quotes = composeQuotes({
    ...{ config, version, chains, blockAges, offChainSources, limiter, metrics, tracing, logger, sharedState },
    ...{ clocks: turnClocks, deliveryTimes: transfers.deliveryTimes, differences },
  });
  const maxTimeoutMs = config.requestTimeoutMs;
  const watcher = composeWatches({ config, chains, transfers, prices, metrics });
  const callerQuota = createFairQuota(() => MAX_PENDING_REQUESTS);
  const batchQuota = createFairQuota(() => MAX_PENDING_BATCH_QUOTES);
  const dependencies = createDependencyMonitor({
    chains,
    getClock: blockAges?.clock,
    offChainSources,
    transfers,
    ...clocks,
  });
  const probes = createProbes({ version, dependencies, isDraining: () => isDraining, ...clocks });
  // A worker renders the metrics of all workers.
  const renderMetrics = createThrottledScrape(
    cluster.isWorker ? createWorkerMetricsClient(metrics.collectJson) : metrics.renderText,
  );
  const readMetrics = async () => ({
    status: 200,
    contentType: PROMETHEUS_MEDIA_TYPE,
    body: await renderMetrics(),
  });
  const readLiveness = () => createLivenessReport(isDraining);
  // With several workers, the primary has the listener.
  const metricsListener = cluster.isWorker
    ? undefined
    : composeMetricsListener({ config, logger, readMetrics, readLiveness, differences });
  const documents = new Map<string, StaticDocument | (() => DynamicDocument | Promise<DynamicDocument>)>([
    ...collectStaticAssets(root),
    ...probes,
    ...(config.metricsPort === "same"
      ? ([
          ["/metrics", readMetrics],
          [DIFFERENCES_PATH, differences.readDocument],
        ] as const)
      : []),
  ]);
  const addDeadline = <Request, Response>(operation: Operation<Request, Response>): Operation<Request, Response> =>
    withDeadline(operation, { maxTimeoutMs, callerQuota });
  const server = createHttpServer({
    host: config.host,
    port: config.port,
    services: [
      mountService(BridgeService, {
        getQuote: addDeadline(createGetQuote({ chains, settings, engine: quotes.engine })),
        batchGetQuotes: addDeadline(
          createBatchGetQuotes({
            ...{ settings, engine: quotes.engine, quoteQuota: batchQuota, maxTimeoutMs, monotonicNow },
            onResults: metrics.onBatchResults,
          }),
        ),
        getTransferStatus: addDeadline(
          createGetTransferStatus({
            chains,
            blockAges,
            statusCache: transfers.statusCache,
            details: transfers.details,
            prices,
            maxTimeoutMs,
            ...clocks,
          }),
        ),
        listTransfers: addDeadline(createListTransfers({ ...transfers, chains, prices, maxTimeoutMs, monotonicNow })),
        listAvailableRoutes: addDeadline(createListAvailableRoutes({ settings })),
        watchTransfers: createWatchTransfers({ watcher }),
      }),
    ],
    documents,
    limits: { operationStreams: config.watchMaxStreams || Number.MAX_SAFE_INTEGER },
    fastPaths,
    log(entry, reason) {
      metrics.onRequest(entry, reason);
      logger.logRequest(entry);
    },
    tracer: tracing?.callTracer,
    trustProxy: config.trustProxy,
    rateLimit: config.rateLimit && {
      ...config.rateLimit,
      sharedCounts: redis?.counts,
      onFailure: (err) => logger.warn({ err }, "rate limiter failed; request allowed"),
    },
    onInternalError: (error, requestId) => logger.error({ requestId, err: error }, "internal error"),
  });

  sharedState?.observeReader((topic) =>
    logger.info({ workerPid: process.pid, topic }, "this process reads the topic for all others"),
  );

  function getLoad(): ServiceLoad {
    return {
      ...server.getLoad(),
      limiter: limiter.load(),
      pendingRequests: callerQuota.heldCount(),
      pendingBatchQuotes: batchQuota.heldCount(),
      upstreamRequests: chains.countRequestsInFlight(),
      customEndpoints: chains.countCustomEndpoints(),
      callsPerSecond: callsPerSecond ?? 0,
      activeRoutes: quotes.countActiveRoutes(),
      watches: watcher.counts(),
      ...{ sharedState: sharedState?.stats(), redis: redis?.stats() },
    };
  }

  async function stop(): Promise<void> {
    isDraining = true;
    await server.close(maxTimeoutMs + SHUTDOWN_GRACE_MS);
    quotes.close();
    watcher.close();
    await transfers.stop();
    // Others read from now on what this process has read.
    await redis?.close();
    await Promise.all([metricsListener?.close(), chains.close(), offChainSources.close()]);
  }

  return {
    async start() {
      await transfers.start();
      if (!cluster.isWorker) logStartupWarnings(config, logger);
      const { url } = await server.listen();
      // After the main port: if that is taken, nothing is to be said about this one.
      const metricsUrl = await metricsListener?.listen().catch(async (error: unknown) => {
        await stop();
        throw error;
      });
      if (tracing?.isSdkRegistered() === false)
        logger.warn("tracing is enabled but no OpenTelemetry SDK is registered");
      // The first request of undici compiles its parser, which would delay the report of the address.
      setImmediate(() => {
        if (!isDraining) offChainSources.warmUp();
      });
      return { url, metricsUrl };
    },
    stop,
  };
}
