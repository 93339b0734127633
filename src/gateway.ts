import { BridgeService } from "../gen/hop/bridge/v1/bridge_pb.js";
import { type ChainEndpoints, createChains } from "./chain/chains.js";
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
import { createRateLimit } from "./operations/with-rate-limit.js";
import { createSdkEngine } from "./quotes/sdk-engine.js";
import { createChainSource } from "./transfers/chain-source.js";
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

/** Puts the parts together: the only place that knows them all. */
export function createGateway(config: Config, logger: Logger = createLogger(config.logLevel)): Gateway {
  const chains = createChains({
    networks: { mainnet: endpointsOf(config, "mainnet"), goerli: endpointsOf(config, "goerli") },
    customUrls: config.customRpcUrls,
    onFailure: (failure) => logger.warn(failure, "an RPC endpoint gave no answer"),
  });
  const upstreams = createUpstreams(config, logger);
  const { settings, prices } = upstreams;
  const engine = createSdkEngine(upstreams);
  const limit = config.requestTimeoutMs;
  const rateLimit = createRateLimit(config.rateLimit);
  /** What wraps every operation. */
  const wrap = <Request, Response>(operation: Operation<Request, Response>): Operation<Request, Response> =>
    rateLimit(withDeadline(operation, limit));
  const server = createHttpServer({
    host: config.host,
    port: config.port,
    services: [
      mount(BridgeService, {
        getQuote: wrap(createGetQuote({ chains, settings, engine })),
        getTransferStatus: wrap(createGetTransferStatus({ chains, source: createChainSource(), prices })),
        listAvailableRoutes: wrap(createListAvailableRoutes({ settings })),
      }),
    ],
    log: (line) => logger.info(line, "request"),
    trustProxy: config.trustProxy,
    onInternalError: (error, requestId) => logger.error({ requestId, err: error }, "a request failed by our own fault"),
  });

  return {
    start: () => server.listen(),
    async stop() {
      await server.close(limit + graceMs);
      await Promise.all([chains.close(), upstreams.close()]);
    },
  };
}

function endpointsOf({ rpcUrls }: Config, slug: NetworkSlug): ReadonlyMap<string, ChainEndpoints> {
  const { chains } = networkOf(slug);
  return new Map([...chains].map(([name, { chainId }]) => [name, { chainId, urls: rpcUrls[slug].get(name) ?? [] }]));
}
