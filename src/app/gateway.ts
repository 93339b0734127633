import cluster from "node:cluster";
import { BridgeService } from "../../gen/hop/bridge/v1/bridge_pb.js";
import { type ChainEndpoints, createChains } from "../chain/chains.js";
import type { Config } from "../config/config.js";
import { getNetwork, type NetworkSlug } from "../hop/networks.js";
import type { DynamicDocument, StaticDocument } from "../http/documents.js";
import { mountService } from "../http/request/mounted-service.js";
import { createHttpServer } from "../http/server.js";
import { createLogger, type Logger } from "../observability/log.js";
import { createWorkerMetricsClient } from "../observability/metrics/cluster-metrics.js";
import { PROMETHEUS_MEDIA_TYPE } from "../observability/metrics/media-type.js";
import { createMetrics, type ServiceLoad } from "../observability/metrics/metrics.js";
import { createMetricsListener } from "../observability/metrics/metrics-listener.js";
import { createThrottledScrape } from "../observability/metrics/throttled-scrape.js";
import { createProbes } from "../observability/probes.js";
import { createGetQuote } from "../operations/get-quote.js";
import { createGetTransferStatus } from "../operations/get-transfer-status.js";
import { createListAvailableRoutes } from "../operations/list-available-routes.js";
import type { Operation } from "../operations/operation.js";
import { withDeadline } from "../operations/with-deadline.js";
import { createAdaptiveLimiter } from "../resilience/adaptive-limiter.js";
import { monotonicNow } from "../resilience/clock.js";
import { createFairQuota } from "../resilience/fair-quota.js";
import { composeQuotes } from "./compose-quotes.js";
import { composeTransfers } from "./compose-transfers.js";
import { createDependencyMonitor } from "./dependency-status.js";
import { createOffChainSources } from "./off-chain-sources.js";
import { findPackageRoot } from "./package-root.js";
import { collectStaticAssets } from "./static-assets.js";

/** The whole service. */
export interface Gateway {
  /** Listens; the URLs have the real ports. */
  start(): Promise<{
    readonly url: string;
    /** Of the metrics, where they have a port of their own. */
    readonly metricsUrl?: string | undefined;
  }>;
  /** Takes no more, finishes what runs (bounded), closes every connection. */
  stop(): Promise<void>;
}

/** How long calls that run may take to finish after a stop, beyond the longest that any answer may take. */
const SHUTDOWN_GRACE_MS = 1_000;

/** Calls that may wait at a time for what is not at hand, a few kilobytes each. */
const MAX_PENDING_REQUESTS = 10_000;

/** Puts the parts together: the only place that knows them all. */
export async function createGateway(config: Config, logger: Logger = createLogger(config.logLevel)): Promise<Gateway> {
  const { url: root, version } = findPackageRoot();
  const clocks = { now: () => Date.now(), monotonicNow };
  let isDraining = false;
  const tracing = config.isTracingEnabled
    ? (await import("../observability/tracing.js")).createTracing(version)
    : undefined;
  const metrics = createMetrics({ version, getDependencyStatus: () => dependencies.read(), getLoad, ...clocks });
  const chains = createChains({
    networks: { mainnet: selectEndpoints(config, "mainnet"), goerli: selectEndpoints(config, "goerli") },
    customUrlPolicy: config.customRpcUrlPolicy,
    customUrlPorts: config.customRpcPorts,
    onFailure: (failure) => logger.warn(failure, "an RPC endpoint gave no answer"),
    onEndpointRequest:
      tracing === undefined
        ? metrics.onEndpointRequest
        : combineObservers(metrics.onEndpointRequest, tracing.onEndpointRequest),
  });
  const upstreams = createOffChainSources(config, logger);
  const { settings, prices } = upstreams;
  const limiter = createAdaptiveLimiter(monotonicNow);
  const quoting = composeQuotes({ config, chains, upstreams, limiter, clocks, metrics, tracing, logger });
  const limit = config.requestTimeoutMs;
  const statuses = composeTransfers({ config, chains, limiter, logger });
  const callerQuota = createFairQuota(() => MAX_PENDING_REQUESTS);
  const dependencies = createDependencyMonitor({ chains, upstreams, statuses, ...clocks });
  const probes = createProbes({ version, dependencies, isDraining: () => isDraining, ...clocks });
  // Of several processes each answers for all.
  const metricsText = createThrottledScrape(
    cluster.isWorker ? createWorkerMetricsClient(metrics.collectJson) : metrics.renderText,
  );
  const metricsReport = async () => ({ status: 200, contentType: PROMETHEUS_MEDIA_TYPE, body: await metricsText() });
  const metricsListener = ownMetricsPort();
  const documents = new Map<string, StaticDocument | (() => DynamicDocument | Promise<DynamicDocument>)>([
    ...collectStaticAssets(root),
    ...probes,
    ...(config.metricsPort === undefined ? [["/metrics", metricsReport] as const] : []),
  ]);
  /** What wraps every operation. */
  const wrap = <Request, Response>(operation: Operation<Request, Response>): Operation<Request, Response> =>
    withDeadline(operation, { maxTimeoutMs: limit, callerQuota });
  const server = createHttpServer({
    host: config.host,
    port: config.port,
    services: [
      mountService(BridgeService, {
        getQuote: wrap(createGetQuote({ chains, settings, engine: quoting.engine })),
        getTransferStatus: wrap(
          createGetTransferStatus({
            chains,
            statusCache: statuses.statusCache,
            prices,
            maxTimeoutMs: limit,
            ...clocks,
          }),
        ),
        listAvailableRoutes: wrap(createListAvailableRoutes({ settings })),
      }),
    ],
    documents,
    log(line, reason) {
      metrics.onRequest(line, reason);
      // Those for documents, probes among them, say little and come often.
      if (line.operation.startsWith("/")) logger.debug(line, "request");
      else logger.info(line, "request");
    },
    tracer: tracing?.callTracer,
    trustProxy: config.trustProxy,
    rateLimit: config.rateLimit && {
      ...config.rateLimit,
      onFailure: (err) => logger.warn({ err }, "a request could not be counted"),
    },
    onInternalError: (error, requestId) => logger.error({ requestId, err: error }, "a request failed by our own fault"),
  });

  /** Of several processes the one over them has it. */
  function ownMetricsPort() {
    const { host, metricsPort: port } = config;
    return port === undefined || cluster.isWorker
      ? undefined
      : createMetricsListener({ host, port, renderText: metricsText });
  }

  function getLoad(): ServiceLoad {
    return {
      ...server.getLoad(),
      limiter: limiter.load(),
      pendingRequests: callerQuota.heldCount(),
      customEndpoints: chains.countCustomEndpoints(),
      activeRoutes: quoting.countActiveRoutes(),
    };
  }

  return {
    async start() {
      await statuses.start();
      const metricsUrl = (await metricsListener?.listen())?.url;
      const { url } = await server.listen().catch(async (error: unknown) => {
        await metricsListener?.close();
        throw error;
      });
      if (metricsUrl !== undefined) logger.info({ url: metricsUrl }, "metrics have a port of their own");
      if (tracing?.isSdkRegistered() === false)
        logger.warn("spans are wanted, and no OpenTelemetry SDK is loaded to take them");
      upstreams.warmUp();
      metrics.loadRegistry().catch((err: unknown) => logger.error({ err }, "metrics cannot be told"));
      return { url, metricsUrl };
    },
    async stop() {
      isDraining = true;
      await server.close(limit + SHUTDOWN_GRACE_MS);
      quoting.close();
      await statuses.stop();
      await Promise.all([metricsListener?.close(), chains.close(), upstreams.close()]);
    },
  };
}

/** Tells both of a thing that begins, and of its end. */
function combineObservers<Thing, End>(
  first: (thing: Thing) => (end: End) => void,
  second: (thing: Thing) => (end: End) => void,
): (thing: Thing) => (end: End) => void {
  return (thing) => {
    const ended = [first(thing), second(thing)];
    return (end) => {
      for (const each of ended) each(end);
    };
  };
}

function selectEndpoints({ rpcUrls }: Config, slug: NetworkSlug): ReadonlyMap<string, ChainEndpoints> {
  const { chains } = getNetwork(slug);
  return new Map([...chains].map(([name, { chainId }]) => [name, { chainId, urls: rpcUrls[slug].get(name) ?? [] }]));
}
