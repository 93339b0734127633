import { Agent } from "../resilience/http-client/undici.js";
import type { Requester } from "../resilience/waiters.js";
import type { ChainClient } from "./chain-client.js";
import { CustomEndpoints, type CustomEndpointsOptions } from "./custom-endpoints/custom-endpoints.js";
import type { CustomUrlPolicy, SsrfGuardOptions } from "./custom-endpoints/ssrf-guard.js";
import type { BudgetOutcome } from "./endpoints/call-budget.js";
import type { EndpointFailure, EndpointRequest, EndpointRequestObserver } from "./endpoints/endpoint.js";
import { createEndpointNamer, type EndpointNamer } from "./endpoints/endpoint-name.js";
import { EndpointPool, type EndpointPoolState } from "./endpoints/endpoint-pool.js";
import { UpstreamBudget } from "./endpoints/upstream-budget.js";
import type { BlockAgeMonitor } from "./heads/block-age-monitor.js";
import type { ChainHead } from "./heads/head-tracker.js";
import type { ChainQuorum } from "./quorum/chain-quorum.js";

/** The chains of one network, as one request reaches them. */
export interface NetworkChainClients {
  /** Returns the client of a chain by slug. */
  getClient(slug: string): ChainClient;
  /** Returns whether the caller named the endpoint. Its results are then for this caller only. */
  hasCustomEndpoint(slug: string): boolean;
}

/** Returns whether the caller supplied the endpoint of at least one of these chains: the result is then private to it. */
export function usesCustomEndpoints(chains: NetworkChainClients, slugs: Iterable<string>): boolean {
  for (const slug of slugs) if (chains.hasCustomEndpoint(slug)) return true;
  return false;
}

export interface ChainEndpointsState extends EndpointPoolState {
  readonly network: string;
  readonly chain: string;
  readonly chainId: number;
}

/** One HTTP request to an endpoint of a chain. The endpoint is `custom` for those that callers name. */
export interface ChainEndpointRequest extends EndpointRequest {
  readonly network: string;
  readonly chain: string;
}

/**
 * Has several endpoints of a chain confirm what is read; undefined: one endpoint is believed.
 * @param place the chain whose reads are compared, and the signal that ends all work on it
 */
export type CreateQuorum = (
  pool: EndpointPool,
  place: { readonly network: string; readonly chain: string; readonly closing: AbortSignal },
) => ChainQuorum | undefined;

/** A chain on the configured endpoints. */
interface ConfiguredChain {
  readonly chainId: number;
  readonly pool: EndpointPool;
  /** undefined: one endpoint is believed. */
  readonly quorum: ChainQuorum | undefined;
}

/** What the budget of calls did to a request. */
export interface BudgetEvent {
  readonly network: string;
  readonly chain: string;
  readonly endpoint: string;
  readonly outcome: BudgetOutcome;
}

export interface ChainEndpoints {
  readonly chainId: number;
  /** RPC endpoints in order of preference. */
  readonly urls: readonly string[];
}

const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;
const KEEP_ALIVE_MS = 30_000;
/** Limits how long undici tries to connect. An endpoint that cannot be reached fails then, also while its callers wait. */
const CONNECT_TIMEOUT_MS = 3_000;

/** The chains of all networks. */
export class ChainClients {
  readonly #options;
  readonly #nameEndpoint: EndpointNamer;
  readonly #customEndpoints: CustomEndpoints;
  readonly #closing = new AbortController();
  readonly #dispatcher = new Agent({
    connect: { timeout: CONNECT_TIMEOUT_MS },
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxResponseSize: MAX_RESPONSE_BYTES,
  });
  readonly #upstreamBudget = new UpstreamBudget();
  /** By network and slug. */
  readonly #configured: ReadonlyMap<string, ReadonlyMap<string, ConfiguredChain>>;

  constructor(options: {
    /** The configured chains by network and slug. */
    readonly networks: Readonly<Record<string, ReadonlyMap<string, ChainEndpoints>>>;
    readonly customUrlPolicy: CustomUrlPolicy;
    /** Allowed ports of public custom endpoints; undefined: the default ports. */
    readonly customUrlPorts?: SsrfGuardOptions["allowedPorts"];
    /** Undefined: the default limits. */
    readonly customEndpointLimits?: CustomEndpointsOptions["limits"];
    /** Names the configured endpoints. Default: a namer with a random key. */
    readonly nameEndpoint?: EndpointNamer;
    /** Longest time for which a caller waits for configured endpoints, in milliseconds. */
    readonly callerTimeoutMs?: number | undefined;
    readonly onFailure: (failure: EndpointFailure) => void;
    readonly onEndpointRequest?: EndpointRequestObserver<ChainEndpointRequest>;
    /** Calls per second to each configured endpoint; undefined: no limit. */
    readonly callsPerSecond?: number | undefined;
    /** Called when this limit makes calls wait or refuses them. */
    readonly onBudgetLimited?: (event: BudgetEvent) => void;
    /** Judges the age of blocks. Default: every chain may be stalled. */
    readonly blockAges?: BlockAgeMonitor | undefined;
    /** Has several endpoints of a chain confirm what is read; undefined: one endpoint is believed. */
    readonly createQuorum?: CreateQuorum | undefined;
  }) {
    const { networks, onFailure } = options;
    const { customUrlPolicy: policy, customUrlPorts: allowedPorts, customEndpointLimits: limits } = options;
    this.#options = options;
    this.#nameEndpoint = options.nameEndpoint ?? createEndpointNamer();
    this.#customEndpoints = new CustomEndpoints({ policy, allowedPorts, limits, onFailure });
    this.#configured = new Map(
      Object.entries(networks).map(([network, chains]) => {
        const create = ([slug, endpoints]: readonly [string, ChainEndpoints]) =>
          [slug, this.#createChain(network, slug, endpoints)] as const;
        return [network, new Map([...chains].map(create))] as const;
      }),
    );
  }

  /** Returns a network's chains on the configured endpoints. */
  forNetwork(network: string): NetworkChainClients {
    return { getClient: (slug) => this.#getReader(network, slug).client, hasCustomEndpoint: () => false };
  }

  /** Returns the same for work that no caller waits for: within the budget of calls it comes last. */
  forBackground(network: string): NetworkChainClients {
    return { getClient: (slug) => this.#getReader(network, slug).background, hasCustomEndpoint: () => false };
  }

  /**
   * Runs `work` with the network's chains. The endpoints that the caller names serve only this work and are closed
   * afterwards.
   * @throws ServiceError RPC_URL_FORBIDDEN for a URL that is not allowed; RATE_LIMITED or OVERLOADED when too many custom
   * endpoints are open
   */
  async withCustomEndpoints<T>(
    network: string,
    customUrls: ReadonlyMap<string, string>,
    work: (chains: NetworkChainClients) => Promise<T>,
    requester: Requester,
  ): Promise<T> {
    const session = this.#customEndpoints.startSession(requester);
    const opened = new Map<string, ChainClient>();
    const open = async ([slug, url]: readonly [string, string]): Promise<void> => {
      const { chainId } = this.#getChain(network, slug);
      const chain = { slug, chainId, onEndpointRequest: this.#createObserver(network, slug) };
      opened.set(slug, await session.open(chain, url));
    };
    try {
      // Waits for all even when one fails: otherwise those that open later would keep their slots.
      const results = await Promise.allSettled([...customUrls].map(open));
      for (const result of results) if (result.status === "rejected") throw result.reason;
      return await work({
        getClient: (slug) => opened.get(slug) ?? this.#getReader(network, slug).client,
        hasCustomEndpoint: (slug) => opened.has(slug),
      });
    } finally {
      await session.close();
    }
  }

  /** Returns the state of all chains on the configured endpoints. */
  listStates(): readonly ChainEndpointsState[] {
    return [...this.#configured].flatMap(([network, chains]) =>
      [...chains].map(([chain, { chainId, pool, quorum }]) => {
        const state = pool.state();
        const endpoints = state.endpoints.map((each) =>
          quorum?.isOutvoted(each.endpoint) === true ? { ...each, state: "outvoted" as const } : each,
        );
        return { network, chain, chainId, ...state, endpoints };
      }),
    );
  }

  /** Reads the heads of a chain's endpoints in the background, at most once in ten seconds. */
  probe(network: string, slug: string): void {
    void this.#getChain(network, slug).pool.refreshHeads();
  }

  /** Reads the heads of all chains of a network, as `probe` does, and waits for them. */
  async check(network: string): Promise<void> {
    const chains = this.#configured.get(network)?.values() ?? [];
    await Promise.all([...chains].map(({ pool }) => pool.refreshHeads()));
  }

  /**
   * Records a chain head that a read of chain state has returned, here or in another process.
   * @param readAt start of the read on the monotonic clock of this process, in milliseconds
   */
  recordHead(network: string, slug: string, head: ChainHead, readAt: number): void {
    this.#getChain(network, slug).pool.recordHead(head, readAt);
  }

  /** Returns the number of open custom endpoints. */
  countCustomEndpoints(): number {
    return this.#customEndpoints.count();
  }

  /** Returns the number of requests to configured endpoints that wait for a response. */
  countRequestsInFlight(): number {
    return this.#upstreamBudget.inFlight();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#dispatcher.destroy();
  }

  #getChain(network: string, slug: string): ConfiguredChain {
    const chain = this.#configured.get(network)?.get(slug);
    if (chain === undefined) throw new Error(`no chain ${slug} on ${network}`);
    return chain;
  }

  /** Returns what callers of a chain read through. */
  #getReader(network: string, slug: string): Pick<EndpointPool, "client" | "background"> {
    const { pool, quorum } = this.#getChain(network, slug);
    return quorum ?? pool;
  }

  #createChain(network: string, slug: string, endpoints: ChainEndpoints): ConfiguredChain {
    const { callerTimeoutMs, callsPerSecond, onFailure, blockAges, createQuorum, onBudgetLimited } = this.#options;
    const closing = this.#closing.signal;
    const pool = new EndpointPool({
      slug,
      ...endpoints,
      dispatcher: this.#dispatcher,
      upstreamBudget: this.#upstreamBudget,
      closing,
      nameEndpoint: this.#nameEndpoint,
      maxBytes: MAX_RESPONSE_BYTES,
      onFailure,
      callsPerSecond,
      callerTimeoutMs,
      heads: blockAges?.getHeadTracker(network, slug),
      onEndpointRequest: this.#createObserver(network, slug),
      onBudgetLimited: (endpoint, outcome) => onBudgetLimited?.({ network, chain: slug, endpoint, outcome }),
    });
    return { chainId: endpoints.chainId, pool, quorum: createQuorum?.(pool, { network, chain: slug, closing }) };
  }

  #createObserver(network: string, chain: string): EndpointRequestObserver | undefined {
    const { onEndpointRequest } = this.#options;
    return onEndpointRequest && ((request) => onEndpointRequest({ ...request, network, chain }));
  }
}
