import { ChainClients, type ChainEndpoints, type CreateQuorum } from "../chain/chains.js";
import { CUSTOM_ENDPOINT_NAME, createEndpointNamer } from "../chain/endpoints/endpoint-name.js";
import { BlockAgeMonitor } from "../chain/heads/block-age-monitor.js";
import type { StallCriteria } from "../chain/heads/head-tracker.js";
import type { Config } from "../config/config.js";
import { type Chain, getNetwork, NETWORK_SLUGS, type NetworkSlug } from "../hop/networks.js";
import type { Logger } from "../observability/log.js";
import type { Metrics } from "../observability/metrics/metrics.js";
import type { Tracing } from "../observability/tracing.js";
import type { Clocks } from "../resilience/clock.js";

/** Creates the chains, and what judges the age of their blocks; undefined: no chain has a limit. */
export function composeChains(options: {
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
}) {
  const { config, clocks, metrics, tracing, logger, callsPerSecond, endpointNameKey, createQuorum } = options;
  const blockAges = composeBlockAges(config, logger, clocks);
  const chains = new ChainClients({
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
      return [network, new Map(limited.map((chain) => [chain.slug, toCriteria(chain)] as const))] as const;
    }),
  );

  function toCriteria({ blockTimeMs, maxBlockAgeMs: defaultMs }: Chain): StallCriteria {
    return { blockTimeMs, maxBlockAgeMs: maxBlockAgeMs ?? defaultMs };
  }

  return new BlockAgeMonitor({
    limits,
    clocks,
    onStall({ network, chain, block }) {
      if (block === undefined)
        logger.info({ network, chain }, "chain has new blocks again; quotes on its routes are served");
      else
        logger.warn(
          { network, chain, blockAgeSeconds: Math.round(block.ageMs / 1000) },
          "chain is stalled; quotes on its routes are refused",
        );
    },
    onClock({ evidence, offsetMs }) {
      if (evidence === undefined) logger.info("the clock of this machine is right again");
      else
        logger.error(
          { evidence, offsetSeconds: Math.round(offsetMs / 1000) },
          "the clock of this machine is wrong; ages, prices and deadlines are corrected",
        );
    },
  });
}

/** Returns the configured endpoints of a network by chain. */
export function selectEndpoints({ rpcUrls }: Config, slug: NetworkSlug): ReadonlyMap<string, ChainEndpoints> {
  const { chains } = getNetwork(slug);
  return new Map([...chains].map(([name, { chainId }]) => [name, { chainId, urls: rpcUrls[slug].get(name) ?? [] }]));
}

/** Notifies two observers of the start of an event and of its outcome. */
function combineObservers<Event, Outcome>(
  first: (event: Event) => (outcome: Outcome) => void,
  second: (event: Event) => (outcome: Outcome) => void,
): (event: Event) => (outcome: Outcome) => void {
  return (event) => {
    const onEndCallbacks = [first(event), second(event)];
    return (outcome) => {
      for (const onEnd of onEndCallbacks) onEnd(outcome);
    };
  };
}

/** Loads what compares the endpoints of a chain, if that is configured. Goerli's endpoints, often one, are believed. */
export async function loadQuorum(
  { rpcQuorum: quorum, rpcQuorumRate: sampleRate }: Config,
  warn: (
    fields: {
      readonly chain: string;
      readonly endpoint: string;
      /** What it was asked for. */
      readonly read: string;
      readonly restSeconds?: number;
    },
    message: string,
  ) => void,
  metrics?: Metrics["quorum"],
): Promise<CreateQuorum | undefined> {
  if (quorum === 1 && sampleRate === 0) return undefined;
  const { ChainQuorum } = await import("../chain/quorum/chain-quorum.js");
  return (pool, { network, chain, closing }) => {
    if (network !== "mainnet") return undefined;
    return new ChainQuorum(pool, {
      quorum,
      sampleRate,
      closing,
      observer: {
        onOutvoted(endpoint, read, suspendedMs) {
          metrics?.onOutvoted(network, chain, endpoint, read);
          const rest = quorum > 1 ? { restSeconds: Math.round(suspendedMs / 1000) } : {};
          warn({ chain, endpoint, read, ...rest }, "RPC endpoint outvoted: others agree on another answer");
        },
        onRead: (outcome) => metrics?.onRead(network, chain, outcome),
        onCalls: (purpose, count) => metrics?.onCalls(network, chain, purpose, count),
      },
    });
  };
}
