import cluster from "node:cluster";
import { BridgeService } from "../../gen/hop/bridge/v1/bridge_pb.js";
import { type ChainEndpoints, createChains } from "../chain/chains.js";
import type { Config } from "../config/config.js";
import { type NetworkSlug, networkOf } from "../hop/networks.js";
import type { FixedDocument, Report } from "../http/documents.js";
import { mount } from "../http/request/mounted-service.js";
import { createHttpServer } from "../http/server.js";
import { createLogger, type Logger } from "../observability/log.js";
import { tellMetrics } from "../observability/metrics/cluster-metrics.js";
import { metricsType } from "../observability/metrics/media-type.js";
import { createMetrics, type Load } from "../observability/metrics/metrics.js";
import { createMetricsListener } from "../observability/metrics/metrics-listener.js";
import { createSharedText } from "../observability/metrics/throttled-scrape.js";
import { createProbes } from "../observability/probes.js";
import { createGetQuote } from "../operations/get-quote.js";
import { createGetTransferStatus } from "../operations/get-transfer-status.js";
import { createListAvailableRoutes } from "../operations/list-available-routes.js";
import type { Operation } from "../operations/operation.js";
import { withDeadline } from "../operations/with-deadline.js";
import { createGate } from "../resilience/adaptive-limiter.js";
import { steadyNow } from "../resilience/clock.js";
import { createPlaces } from "../resilience/fair-quota.js";
import { createQuoting } from "./compose-quotes.js";
import { createStatuses } from "./compose-transfers.js";
import { createStateReader } from "./dependency-status.js";
import { createUpstreams } from "./off-chain-sources.js";
import { findPackageRoot } from "./package-root.js";
import { readPages } from "./static-assets.js";

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
const graceMs = 1_000;

/** Calls that may wait at a time for what is not at hand, a few kilobytes each. */
const mostWaiting = 10_000;

/** Puts the parts together: the only place that knows them all. */
export async function createGateway(config: Config, logger: Logger = createLogger(config.logLevel)): Promise<Gateway> {
  const { url: root, version } = findPackageRoot();
  const clocks = { now: () => Date.now(), steady: steadyNow };
  let isDraining = false;
  const tracing = config.tracing ? (await import("../observability/tracing.js")).createTracing(version) : undefined;
  const metrics = createMetrics({ version, state: () => state.read(), load, ...clocks });
  const chains = createChains({
    networks: { mainnet: endpointsOf(config, "mainnet"), goerli: endpointsOf(config, "goerli") },
    customUrls: config.customRpcUrls,
    customPorts: config.customRpcPorts,
    onFailure: (failure) => logger.warn(failure, "an RPC endpoint gave no answer"),
    onExchange: tracing === undefined ? metrics.onExchange : both(metrics.onExchange, tracing.onExchange),
  });
  const upstreams = createUpstreams(config, logger);
  const { settings, prices } = upstreams;
  const gate = createGate(steadyNow);
  const quoting = createQuoting({ config, chains, upstreams, gate, clocks, metrics, tracing, logger });
  const limit = config.requestTimeoutMs;
  const statuses = createStatuses({ config, chains, gate, logger });
  const places = createPlaces(() => mostWaiting);
  const state = createStateReader({ chains, upstreams, statuses, ...clocks });
  const probes = createProbes({ version, state, isDraining: () => isDraining, ...clocks });
  // Of several processes each answers for all.
  const metricsText = createSharedText(cluster.isWorker ? tellMetrics(metrics.take) : metrics.text);
  const metricsReport = async () => ({ status: 200, type: metricsType, text: await metricsText() });
  const metricsListener = ownMetricsPort();
  const documents = new Map<string, FixedDocument | (() => Report | Promise<Report>)>([
    ...readPages(root),
    ...probes,
    ...(config.metricsPort === undefined ? [["/metrics", metricsReport] as const] : []),
  ]);
  /** What wraps every operation. */
  const wrap = <Request, Response>(operation: Operation<Request, Response>): Operation<Request, Response> =>
    withDeadline(operation, { longestMs: limit, places });
  const server = createHttpServer({
    host: config.host,
    port: config.port,
    services: [
      mount(BridgeService, {
        getQuote: wrap(createGetQuote({ chains, settings, engine: quoting.engine })),
        getTransferStatus: wrap(
          createGetTransferStatus({ chains, statuses: statuses.book, prices, longestMs: limit, ...clocks }),
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
    tracer: tracing?.calls,
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
      : createMetricsListener({ host, port, text: metricsText });
  }

  function load(): Load {
    return {
      ...server.load(),
      gate: gate.load(),
      callsWaiting: places.taken(),
      customEndpoints: chains.customEndpoints(),
      routesKept: quoting.routesKept(),
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
      if (tracing?.isHeard() === false)
        logger.warn("spans are wanted, and no OpenTelemetry SDK is loaded to take them");
      upstreams.warmUp();
      metrics.load().catch((err: unknown) => logger.error({ err }, "metrics cannot be told"));
      return { url, metricsUrl };
    },
    async stop() {
      isDraining = true;
      await server.close(limit + graceMs);
      quoting.close();
      await statuses.stop();
      await Promise.all([metricsListener?.close(), chains.close(), upstreams.close()]);
    },
  };
}

/** Tells both of a thing that begins, and of its end. */
function both<Thing, End>(
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

function endpointsOf({ rpcUrls }: Config, slug: NetworkSlug): ReadonlyMap<string, ChainEndpoints> {
  const { chains } = networkOf(slug);
  return new Map([...chains].map(([name, { chainId }]) => [name, { chainId, urls: rpcUrls[slug].get(name) ?? [] }]));
}
