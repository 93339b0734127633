import { Agent } from "undici";
import type { ChainClient } from "./chain-client.js";
import {
  type CustomEndpoint,
  createCustomEndpoints,
  type EndpointCaller,
} from "./custom-endpoints/custom-endpoints.js";
import type { CustomUrlPolicy } from "./custom-endpoints/ssrf-guard.js";
import type { EndpointRequest, EndpointRequestObserver } from "./endpoints/endpoint.js";
import {
  createEndpointPool,
  type EndpointFailure,
  type EndpointPool,
  type EndpointPoolState,
} from "./endpoints/endpoint-pool.js";
import type { ChainHead } from "./endpoints/head-tracker.js";

/** The chains of one network, as one request reaches them. */
export interface NetworkChains {
  /** The client for a chain of the network, by slug. */
  getClient(slug: string): ChainClient;
  /** Whether the caller named the endpoint, so that what it says is for this caller alone. */
  hasCustomEndpoint(slug: string): boolean;
}

export interface Chains {
  /** A network's chains on the configured endpoints. */
  forNetwork(network: string): NetworkChains;
  /**
   * Runs `work` with the network's chains; the endpoints that the caller names serve that work alone and are closed
   * after it.
   * @throws ServiceError RPC_URL_FORBIDDEN for an endpoint that may not be named; RATE_LIMITED or OVERLOADED
   * when too many are in use.
   */
  withCustomEndpoints<T>(
    network: string,
    custom: ReadonlyMap<string, string>,
    work: (chains: NetworkChains) => Promise<T>,
    by: EndpointCaller,
  ): Promise<T>;
  /** How all chains are on the configured endpoints. */
  listStates(): readonly ChainPoolState[];
  /** Asks a chain's endpoints for their heads in the background, each once in ten seconds at most. */
  probe(network: string, slug: string): void;
  /** Notes a chain's latest block, where something that was read tells it. */
  recordHead(network: string, slug: string, head: ChainHead): void;
  /** Endpoints that callers have open. */
  countCustomEndpoints(): number;
  close(): Promise<void>;
}

export interface ChainPoolState extends EndpointPoolState {
  readonly network: string;
  readonly chain: string;
  readonly chainId: number;
}

/** One HTTP request to an endpoint of a chain; what callers name is called `custom`. */
export interface ChainEndpointRequest extends EndpointRequest {
  readonly network: string;
  readonly chain: string;
}

export interface ChainsOptions {
  /** The chains that can be used, by network and slug. */
  readonly networks: Readonly<Record<string, ReadonlyMap<string, ChainEndpoints>>>;
  readonly customUrlPolicy: CustomUrlPolicy;
  /** Ports of public endpoints that callers name, where they are not the usual ones. */
  readonly customUrlPorts?: readonly number[];
  readonly onFailure: (failure: EndpointFailure) => void;
  readonly onEndpointRequest?: EndpointRequestObserver<ChainEndpointRequest>;
}

export interface ChainEndpoints {
  readonly chainId: number;
  /** RPC endpoints, in order of preference. */
  readonly urls: readonly string[];
}

const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;
const KEEP_ALIVE_MS = 30_000;
/** Longest time for a new connection; nobody waits for one so long, but it should not be tried for ever. */
const CONNECT_TIMEOUT_MS = 3_000;

export function createChains(options: ChainsOptions): Chains {
  const { networks, customUrlPolicy: policy, customUrlPorts: allowedPorts, onFailure, onEndpointRequest } = options;
  const customEndpoints = createCustomEndpoints({
    policy,
    onFailure,
    ...(allowedPorts === undefined ? {} : { allowedPorts }),
  });
  const closing = new AbortController();
  const dispatcher = new Agent({
    connect: { timeout: CONNECT_TIMEOUT_MS },
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxResponseSize: MAX_RESPONSE_BYTES,
  });
  const pools = new Map<string, ReadonlyMap<string, EndpointPool>>();
  for (const [network, chains] of Object.entries(networks)) {
    const bySlug = [...chains].map(([slug, endpoints]) => {
      const shared = { dispatcher, maxBytes: MAX_RESPONSE_BYTES, onFailure, closing: closing.signal };
      return [
        slug,
        createEndpointPool({ slug, ...endpoints, ...shared, onEndpointRequest: observerOf(network, slug) }),
      ] as const;
    });
    pools.set(network, new Map(bySlug));
  }

  function observerOf(network: string, chain: string, endpoint?: string): EndpointRequestObserver | undefined {
    return (
      onEndpointRequest &&
      ((exchange) => onEndpointRequest({ ...exchange, ...(endpoint && { endpoint }), network, chain }))
    );
  }

  function ours(network: string, slug: string): EndpointPool {
    const found = pools.get(network)?.get(slug);
    if (found === undefined) throw new Error(`no chain ${slug} on ${network}`);
    return found;
  }

  return {
    forNetwork: (network) => ({ getClient: (slug) => ours(network, slug), hasCustomEndpoint: () => false }),
    async withCustomEndpoints(network, custom, work, by) {
      const opened = new Map<string, CustomEndpoint>();
      const open = async ([slug, url]: readonly [string, string]): Promise<void> => {
        const chainId = networks[network]?.get(slug)?.chainId;
        if (chainId === undefined) throw new Error(`no chain ${slug} on ${network}`);
        const observed = { slug, chainId, onEndpointRequest: observerOf(network, slug, "custom") };
        opened.set(slug, await customEndpoints.open(observed, url, by));
      };
      try {
        // All are waited for, also when one fails: else those that open later would never be closed.
        const ends = await Promise.allSettled([...custom].map(open));
        for (const end of ends) if (end.status === "rejected") throw end.reason;
        return await work({
          getClient: (slug) => opened.get(slug)?.client ?? ours(network, slug),
          hasCustomEndpoint: (slug) => opened.has(slug),
        });
      } finally {
        await Promise.all([...opened.values()].map((endpoint) => endpoint.close()));
      }
    },
    listStates: () =>
      [...pools].flatMap(([network, bySlug]) =>
        [...bySlug].map(([chain, pool]) => {
          const chainId = networks[network]?.get(chain)?.chainId ?? 0;
          return { network, chain, chainId, ...pool.state() };
        }),
      ),
    probe: (network, slug) => ours(network, slug).probe(),
    recordHead: (network, slug, head) => ours(network, slug).recordHead(head),
    countCustomEndpoints: customEndpoints.count,
    async close() {
      closing.abort();
      await dispatcher.destroy();
    },
  };
}
