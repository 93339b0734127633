import { BridgeService } from "../gen/hop/bridge/v1/bridge_pb.js";
import { type ChainEndpoints, createChains } from "./chain/chains.js";
import { steadyNow } from "./clock.js";
import type { Config } from "./config.js";
import { type NetworkSlug, networkOf } from "./hop/networks.js";
import { mount } from "./http/mount.js";
import { createHttpServer } from "./http/server.js";
import { createLogger, type Logger } from "./log.js";
import { createGetQuote } from "./operations/get-quote.js";
import { createGetTransferStatus } from "./operations/get-transfer-status.js";
import { createListAvailableRoutes } from "./operations/list-available-routes.js";
import type { Operation } from "./operations/operation.js";
import { withDeadline } from "./operations/with-deadline.js";
import type { Quote } from "./quotes/quote.js";
import { createSdkEngine } from "./quotes/sdk-engine.js";
import { createSnapshotEngine, type SnapshotEngine } from "./quotes/snapshot-engine.js";
import { createVerification, type Verdict } from "./quotes/verification.js";
import { createGate } from "./remote/gate.js";
import { createPlaces } from "./remote/places.js";
import { createStatuses } from "./statuses.js";
import { createUpstreams } from "./upstreams.js";

/** The whole service. */
export interface Gateway {
  /** Listens; the URL has the real port. */
  start(): Promise<{ readonly url: string }>;
  /** Takes no more, finishes what runs (bounded), closes every connection. */
  stop(): Promise<void>;
}

/** How long calls that run may take to finish after a stop, beyond the longest that any answer may take. */
const graceMs = 1_000;

/** Calls that may wait at a time for what is not at hand, a few kilobytes each. */
const mostWaiting = 10_000;

/** Puts the parts together: the only place that knows them all. */
export function createGateway(config: Config, logger: Logger = createLogger(config.logLevel)): Gateway {
  const chains = createChains({
    networks: { mainnet: endpointsOf(config, "mainnet"), goerli: endpointsOf(config, "goerli") },
    customUrls: config.customRpcUrls,
    customPorts: config.customRpcPorts,
    onFailure: (failure) => logger.warn(failure, "an RPC endpoint gave no answer"),
  });
  const upstreams = createUpstreams(config, logger);
  const { settings, prices } = upstreams;
  const closing = new AbortController();
  const clocks = { now: () => Date.now(), steady: steadyNow };
  const gate = createGate(steadyNow);
  const sdkEngine = createSdkEngine({ ...upstreams, chains: chains.of, gate });
  const snapshotEngine = config.quoteEngine === "sdk" ? undefined : createSnapshots();
  const limit = config.requestTimeoutMs;
  const statuses = createStatuses({ config, chains, gate, logger });
  const places = createPlaces(() => mostWaiting);
  /** What wraps every operation. */
  const wrap = <Request, Response>(operation: Operation<Request, Response>): Operation<Request, Response> =>
    withDeadline(operation, { longestMs: limit, places });
  const server = createHttpServer({
    host: config.host,
    port: config.port,
    services: [
      mount(BridgeService, {
        getQuote: wrap(createGetQuote({ chains, settings, engine: snapshotEngine ?? sdkEngine })),
        getTransferStatus: wrap(
          createGetTransferStatus({ chains, statuses: statuses.book, prices, longestMs: limit, ...clocks }),
        ),
        listAvailableRoutes: wrap(createListAvailableRoutes({ settings })),
      }),
    ],
    log: (line) => logger.info(line, "request"),
    trustProxy: config.trustProxy,
    rateLimit: config.rateLimit && {
      ...config.rateLimit,
      onFailure: (err) => logger.warn({ err }, "a request could not be counted"),
    },
    onInternalError: (error, requestId) => logger.error({ requestId, err: error }, "a request failed by our own fault"),
  });

  function createSnapshots(): SnapshotEngine {
    const { quoteVerifyRate: rate, quoteMaxAgeMs, quoteMaxStaleMs } = config;
    const access = { chains: chains.of, clocks };
    const ages = { maxAgeMs: quoteMaxAgeMs, maxStaleMs: quoteMaxStaleMs };
    if (rate === 0) return createSnapshotEngine({ ...upstreams, ...access, ...ages });
    const judge = { rate, engine: sdkEngine, random: Math.random, signal: closing.signal };
    const onQuote = createVerification({ ...access, ...judge, onVerdict: (verdict) => logVerdict(logger, verdict) });
    return createSnapshotEngine({ ...upstreams, ...access, ...ages, onQuote });
  }

  return {
    async start() {
      await statuses.start();
      const address = await server.listen();
      upstreams.warmUp();
      return address;
    },
    async stop() {
      await server.close(limit + graceMs);
      closing.abort();
      snapshotEngine?.close();
      await statuses.stop();
      await Promise.all([chains.close(), upstreams.close()]);
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

function endpointsOf({ rpcUrls }: Config, slug: NetworkSlug): ReadonlyMap<string, ChainEndpoints> {
  const { chains } = networkOf(slug);
  return new Map([...chains].map(([name, { chainId }]) => [name, { chainId, urls: rpcUrls[slug].get(name) ?? [] }]));
}
