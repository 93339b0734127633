import { Agent } from "undici";
import type { ChainClient } from "./chain-client.js";
import { type Caller, type CustomEndpoint, createCustomEndpoints } from "./custom-endpoints/custom-endpoints.js";
import type { CustomUrlPolicy } from "./custom-endpoints/ssrf-guard.js";
import type { ExchangeObserver, RpcExchange } from "./endpoints/endpoint.js";
import {
  createEndpointPool,
  type EndpointFailure,
  type EndpointPool,
  type PoolState,
} from "./endpoints/endpoint-pool.js";
import type { Head } from "./endpoints/head-tracker.js";

/** The chains of one network, as one request reaches them. */
export interface ChainAccess {
  /** The client for a chain of the network, by slug. */
  client(slug: string): ChainClient;
  /** Whether the caller named the endpoint, so that what it says is for this caller alone. */
  isCustom(slug: string): boolean;
}

export interface Chains {
  /** A network's chains on the configured endpoints. */
  of(network: string): ChainAccess;
  /**
   * Runs `work` with the network's chains; the endpoints that the caller names serve that work alone and are closed
   * after it.
   * @throws ServiceError RPC_URL_FORBIDDEN for an endpoint that may not be named; RATE_LIMITED or OVERLOADED
   * when too many are in use.
   */
  use<T>(
    network: string,
    custom: ReadonlyMap<string, string>,
    work: (chains: ChainAccess) => Promise<T>,
    by: Caller,
  ): Promise<T>;
  /** How all chains are on the configured endpoints. */
  states(): readonly ChainState[];
  /** Asks a chain's endpoints for their heads in the background, each once in ten seconds at most. */
  look(network: string, slug: string): void;
  /** Notes a chain's latest block, where something that was read tells it. */
  noteHead(network: string, slug: string, head: Head): void;
  /** Endpoints that callers have open. */
  customEndpoints(): number;
  close(): Promise<void>;
}

export interface ChainState extends PoolState {
  readonly network: string;
  readonly chain: string;
  readonly chainId: number;
}

/** One HTTP request to an endpoint of a chain; what callers name is called `custom`. */
export interface ChainExchange extends RpcExchange {
  readonly network: string;
  readonly chain: string;
}

export interface ChainsOptions {
  /** The chains that can be used, by network and slug. */
  readonly networks: Readonly<Record<string, ReadonlyMap<string, ChainEndpoints>>>;
  readonly customUrls: CustomUrlPolicy;
  /** Ports of public endpoints that callers name, where they are not the usual ones. */
  readonly customPorts?: readonly number[];
  readonly onFailure: (failure: EndpointFailure) => void;
  readonly onExchange?: ExchangeObserver<ChainExchange>;
}

export interface ChainEndpoints {
  readonly chainId: number;
  /** RPC endpoints, in order of preference. */
  readonly urls: readonly string[];
}

const maxAnswerBytes = 16 * 1024 * 1024;
const keepAliveMs = 30_000;
/** Longest time for a new connection; nobody waits for one so long, but it should not be tried for ever. */
const connectMs = 3_000;

export function createChains(options: ChainsOptions): Chains {
  const { networks, customUrls: policy, customPorts: ports, onFailure, onExchange } = options;
  const customEndpoints = createCustomEndpoints({ policy, onFailure, ...(ports === undefined ? {} : { ports }) });
  const closing = new AbortController();
  const dispatcher = new Agent({
    connect: { timeout: connectMs },
    keepAliveTimeout: keepAliveMs,
    maxResponseSize: maxAnswerBytes,
  });
  const pools = new Map<string, ReadonlyMap<string, EndpointPool>>();
  for (const [network, chains] of Object.entries(networks)) {
    const bySlug = [...chains].map(([slug, endpoints]) => {
      const shared = { dispatcher, maxBytes: maxAnswerBytes, onFailure, closing: closing.signal };
      return [
        slug,
        createEndpointPool({ slug, ...endpoints, ...shared, onExchange: observerOf(network, slug) }),
      ] as const;
    });
    pools.set(network, new Map(bySlug));
  }

  function observerOf(network: string, chain: string, endpoint?: string): ExchangeObserver | undefined {
    return onExchange && ((exchange) => onExchange({ ...exchange, ...(endpoint && { endpoint }), network, chain }));
  }

  function ours(network: string, slug: string): EndpointPool {
    const found = pools.get(network)?.get(slug);
    if (found === undefined) throw new Error(`no chain ${slug} on ${network}`);
    return found;
  }

  return {
    of: (network) => ({ client: (slug) => ours(network, slug), isCustom: () => false }),
    async use(network, custom, work, by) {
      const opened = new Map<string, CustomEndpoint>();
      const open = async ([slug, url]: readonly [string, string]): Promise<void> => {
        const chainId = networks[network]?.get(slug)?.chainId;
        if (chainId === undefined) throw new Error(`no chain ${slug} on ${network}`);
        const observed = { slug, chainId, onExchange: observerOf(network, slug, "custom") };
        opened.set(slug, await customEndpoints.open(observed, url, by));
      };
      try {
        // All are waited for, also when one fails: else those that open later would never be closed.
        const ends = await Promise.allSettled([...custom].map(open));
        for (const end of ends) if (end.status === "rejected") throw end.reason;
        return await work({
          client: (slug) => opened.get(slug)?.client ?? ours(network, slug),
          isCustom: (slug) => opened.has(slug),
        });
      } finally {
        await Promise.all([...opened.values()].map((endpoint) => endpoint.close()));
      }
    },
    states: () =>
      [...pools].flatMap(([network, bySlug]) =>
        [...bySlug].map(([chain, pool]) => {
          const chainId = networks[network]?.get(chain)?.chainId ?? 0;
          return { network, chain, chainId, ...pool.state() };
        }),
      ),
    look: (network, slug) => ours(network, slug).look(),
    noteHead: (network, slug, head) => ours(network, slug).noteHead(head),
    customEndpoints: customEndpoints.count,
    async close() {
      closing.abort();
      await dispatcher.destroy();
    },
  };
}
