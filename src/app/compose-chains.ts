import {
  type BlockAgeLimit,
  type BlockAgeMonitor,
  createBlockAgeMonitor,
} from "../chain/block-age/block-age-monitor.js";
import { type ChainClients, type ChainEndpoints, createChainClients } from "../chain/chains.js";
import type { CreateQuorum } from "../chain/configured-chain.js";
import { CUSTOM_ENDPOINT_NAME, createEndpointNamer } from "../chain/endpoints/endpoint-name.js";
import type { Config } from "../config/config.js";
import { type Chain, getNetwork, NETWORK_SLUGS, type NetworkSlug } from "../hop/networks.js";
import { combineObservers } from "../observability/combine-observers.js";
import type { Logger } from "../observability/log.js";
import type { Metrics } from "../observability/metrics/metrics.js";
import type { Tracing } from "../observability/tracing.js";
import type { Clocks } from "../resilience/clock.js";

/** The chains, and what is known about the age of their blocks; undefined: no chain has a limit. */
export interface ChainsModule {
  readonly chains: ChainClients;
  readonly blockAges: BlockAgeMonitor | undefined;
}

export interface ComposeChainsOptions {
  readonly config: Config;
  readonly clocks: Clocks;
  readonly metrics: Pick<Metrics, "onEndpointRequest" | "onBudgetLimited">;
  readonly tracing: Tracing | undefined;
  readonly logger: Logger;
  /** Calls per second to each endpoint; undefined: no limit. */
  readonly callsPerSecond: number | undefined;
  /** Key of the digits in the names of endpoints; undefined: a random one. */
  readonly endpointNameKey: string | undefined;
  /** As in ChainClientsOptions. */
  readonly createQuorum: CreateQuorum | undefined;
}

export function composeChains(options: ComposeChainsOptions): ChainsModule {
  const { config, clocks, metrics, tracing, logger, callsPerSecond, endpointNameKey, createQuorum } = options;
  const blockAges = composeBlockAges(config, logger, clocks);
  const chains = createChainClients({
    networks: { mainnet: selectEndpoints(config, "mainnet"), goerli: selectEndpoints(config, "goerli") },
    customUrlPolicy: config.customRpcUrlPolicy,
    customUrlPorts: config.customRpcPorts,
    customEndpointLimits: { perCaller: config.customRpcMaxPerCaller, total: config.customRpcMaxEndpoints },
    callsPerSecond,
    onBudgetLimited: metrics.onBudgetLimited,
    blockAges,
    createQuorum,
    // One namer for all chains: names in the log, the metrics and /readyz agree.
    nameEndpoint: createEndpointNamer(endpointNameKey),
    onFailure(failure) {
      // Callers decide how often their endpoints fail: above debug they could fill the log.
      if (failure.endpoint === CUSTOM_ENDPOINT_NAME) logger.debug(failure, "RPC endpoint failed");
      else logger.warn(failure, "RPC endpoint failed");
    },
    callerTimeoutMs: config.requestTimeoutMs,
    onEndpointRequest:
      tracing === undefined
        ? metrics.onEndpointRequest
        : combineObservers(metrics.onEndpointRequest, tracing.onEndpointRequest),
  });
  return { chains, blockAges };
}

/** Creates the monitor of the chains that have a limit; undefined: none has. */
function composeBlockAges(
  { maxBlockAgeMs }: Pick<Config, "maxBlockAgeMs">,
  logger: Logger,
  clocks: Clocks,
): BlockAgeMonitor | undefined {
  if (maxBlockAgeMs === 0) return undefined;
  const limits = Object.fromEntries(
    NETWORK_SLUGS.map((network) => {
      const limited = [...getNetwork(network).chains.values()].filter((chain) => chain.maxBlockAgeMs > 0);
      return [network, new Map(limited.map((chain) => [chain.slug, toLimit(chain)] as const))] as const;
    }),
  );

  function toLimit({ blockTimeMs, maxBlockAgeMs: defaultMs }: Chain): BlockAgeLimit {
    return { blockTimeMs, maxBlockAgeMs: maxBlockAgeMs ?? defaultMs };
  }

  return createBlockAgeMonitor({
    limits,
    clocks,
    onStall({ network, chain, block }) {
      if (block === undefined) logger.info({ network, chain }, "chain moves again; quotes on its routes are served");
      else
        logger.warn(
          { network, chain, blockAgeSeconds: Math.round(block.ageMs / 1000) },
          "chain stands still; quotes on its routes are refused",
        );
    },
    onClock({ evidence, offsetMs }) {
      if (evidence === undefined) logger.info("the clock of this machine is right again");
      else
        logger.error(
          { evidence, offsetSeconds: Math.round(offsetMs / 1000) },
          "the clock of this machine is wrong; the age of blocks is corrected",
        );
    },
  });
}

/** Returns the configured endpoints of a network by chain. */
export function selectEndpoints({ rpcUrls }: Config, slug: NetworkSlug): ReadonlyMap<string, ChainEndpoints> {
  const { chains } = getNetwork(slug);
  return new Map([...chains].map(([name, { chainId }]) => [name, { chainId, urls: rpcUrls[slug].get(name) ?? [] }]));
}
