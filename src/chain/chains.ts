import { monotonicNow } from "../resilience/clock.js";
import { Agent } from "../resilience/http-client/undici.js";
import { type BlockAgeMonitor, bindBlockAges } from "./block-age/block-age-monitor.js";
import { STATE_SOURCE } from "./block-age/chain-history.js";
import type { ChainClient } from "./chain-client.js";
import { type ConfiguredChain, type CreateQuorum, readConfiguredState } from "./configured-chain.js";
import {
  type CustomEndpointLimits,
  createCustomEndpoints,
  type EndpointCaller,
} from "./custom-endpoints/custom-endpoints.js";
import type { CustomUrlPolicy } from "./custom-endpoints/ssrf-guard.js";
import type { BudgetOutcome } from "./endpoints/budget/call-budget.js";
import { createUpstreamBudget } from "./endpoints/budget/upstream-budget.js";
import type { EndpointRequest, EndpointRequestObserver } from "./endpoints/endpoint.js";
import type { EndpointFailure } from "./endpoints/endpoint-attempt.js";
import { createEndpointNamer, type EndpointNamer } from "./endpoints/endpoint-name.js";
import { createEndpointPool, type EndpointPoolState } from "./endpoints/endpoint-pool.js";
import { createEventLoopDelay } from "./endpoints/event-loop-delay.js";
import type { ChainHead } from "./endpoints/head-tracker.js";

/** The chains of one network, as one request reaches them. */
export interface NetworkChainClients {
  /** Returns the client of a chain by slug. */
  getClient(slug: string): ChainClient;
  /** Returns whether the caller named the endpoint. Its results are then for this caller only. */
  hasCustomEndpoint(slug: string): boolean;
}

export interface ChainClients {
  /** Returns a network's chains on the configured endpoints. */
  forNetwork(network: string): NetworkChainClients;
  /** Returns the same for work that no caller waits for: within the budget of calls it comes last. */
  forBackground(network: string): NetworkChainClients;
  /**
   * Runs `work` with the network's chains. The endpoints that the caller names serve only this work and are closed
   * afterwards.
   * @throws ServiceError RPC_URL_FORBIDDEN for a URL that is not allowed; RATE_LIMITED or OVERLOADED when too many custom
   * endpoints are open
   */
  withCustomEndpoints<T>(
    network: string,
    customUrls: ReadonlyMap<string, string>,
    work: (chains: NetworkChainClients) => Promise<T>,
    caller: EndpointCaller,
  ): Promise<T>;
  /** Returns the state of all chains on the configured endpoints. */
  listStates(): readonly ChainPoolState[];
  /** Reads the heads of a chain's endpoints in the background, at most once in ten seconds. */
  probe(network: string, slug: string): void;
  /**
   * Records a chain head that a read of chain state has returned, here or in another process.
   * @param readAt start of the read on the monotonic clock of this process, in milliseconds
   */
  recordHead(network: string, slug: string, head: ChainHead, readAt: number): void;
  /** Returns the number of open custom endpoints. */
  countCustomEndpoints(): number;
  /** Returns the number of requests to configured endpoints that wait for a response. */
  countRequestsInFlight(): number;
  close(): Promise<void>;
}

export interface ChainPoolState extends EndpointPoolState {
  readonly network: string;
  readonly chain: string;
  readonly chainId: number;
}

/** One HTTP request to an endpoint of a chain. The endpoint is `custom` for those that callers name. */
export interface ChainEndpointRequest extends EndpointRequest {
  readonly network: string;
  readonly chain: string;
}

export interface ChainClientsOptions {
  /** The configured chains by network and slug. */
  readonly networks: Readonly<Record<string, ReadonlyMap<string, ChainEndpoints>>>;
  readonly customUrlPolicy: CustomUrlPolicy;
  /** Allowed ports of public custom endpoints; undefined: the default ports. */
  readonly customUrlPorts?: readonly number[];
  /** Undefined: the default limits. */
  readonly customEndpointLimits?: CustomEndpointLimits;
  /** Names the configured endpoints. Default: a namer with a random key. */
  readonly nameEndpoint?: EndpointNamer;
  /** Longest time for which a caller waits for configured endpoints, in milliseconds. */
  readonly callerTimeoutMs?: number;
  readonly onFailure: (failure: EndpointFailure) => void;
  readonly onEndpointRequest?: EndpointRequestObserver<ChainEndpointRequest>;
  /** Calls per second to each configured endpoint; undefined: no limit. */
  readonly callsPerSecond?: number | undefined;
  /** Called when this limit makes calls wait or refuses them. */
  readonly onBudgetLimited?: (event: BudgetEvent) => void;
  /** Judges the age of blocks. Default: every chain may stand still. */
  readonly blockAges?: BlockAgeMonitor | undefined;
  /** Has several endpoints of a chain confirm what is read; undefined: one endpoint is believed. */
  readonly createQuorum?: CreateQuorum | undefined;
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

export function createChainClients(options: ChainClientsOptions): ChainClients {
  const { networks, customUrlPolicy: policy, customUrlPorts: allowedPorts, onFailure, onEndpointRequest } = options;
  const {
    nameEndpoint = createEndpointNamer(),
    customEndpointLimits: limits,
    callerTimeoutMs,
    callsPerSecond,
    onBudgetLimited,
    blockAges,
    createQuorum,
  } = options;
  const customEndpoints = createCustomEndpoints({
    policy,
    onFailure,
    ...(allowedPorts === undefined ? {} : { allowedPorts }),
    ...(limits === undefined ? {} : { limits }),
  });
  const closing = new AbortController();
  const dispatcher = new Agent({
    connect: { timeout: CONNECT_TIMEOUT_MS },
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxResponseSize: MAX_RESPONSE_BYTES,
  });
  const eventLoopDelay = createEventLoopDelay(monotonicNow);
  const upstreamBudget = createUpstreamBudget();
  const configured = new Map<string, ReadonlyMap<string, ConfiguredChain>>();
  for (const [network, chains] of Object.entries(networks)) {
    const bySlug = [...chains].map(([slug, endpoints]) => {
      const shared = {
        nameEndpoint,
        dispatcher,
        maxBytes: MAX_RESPONSE_BYTES,
        onFailure,
        closing: closing.signal,
        eventLoopDelay,
        upstreamBudget,
        ...(callerTimeoutMs === undefined ? {} : { callerTimeoutMs }),
      };
      const pool = createEndpointPool({
        slug,
        ...endpoints,
        ...shared,
        onEndpointRequest: createObserver(network, slug),
        callsPerSecond,
        blockAges: blockAges && bindBlockAges(blockAges, network, slug),
        onBudgetLimited: (endpoint, outcome) => onBudgetLimited?.({ network, chain: slug, endpoint, outcome }),
      });
      const quorum = createQuorum?.(pool, { network, chain: slug, closing: closing.signal });
      return [slug, { pool, client: quorum?.client ?? pool, quorum }] as const;
    });
    configured.set(network, new Map(bySlug));
  }

  function createObserver(network: string, chain: string): EndpointRequestObserver | undefined {
    return onEndpointRequest && ((request) => onEndpointRequest({ ...request, network, chain }));
  }

  function getChain(network: string, slug: string): ConfiguredChain {
    const chain = configured.get(network)?.get(slug);
    if (chain === undefined) throw new Error(`no chain ${slug} on ${network}`);
    return chain;
  }

  return {
    forNetwork: (network) => ({ getClient: (slug) => getChain(network, slug).client, hasCustomEndpoint: () => false }),
    forBackground: (network) => ({
      getClient: (slug) => getChain(network, slug).client.asBackground(),
      hasCustomEndpoint: () => false,
    }),
    async withCustomEndpoints(network, customUrls, work, caller) {
      const session = customEndpoints.startSession(caller);
      const opened = new Map<string, ChainClient>();
      const open = async ([slug, url]: readonly [string, string]): Promise<void> => {
        const chainId = networks[network]?.get(slug)?.chainId;
        if (chainId === undefined) throw new Error(`no chain ${slug} on ${network}`);
        const chain = { slug, chainId, onEndpointRequest: createObserver(network, slug) };
        opened.set(slug, await session.open(chain, url));
      };
      try {
        // Waits for all even when one fails: otherwise those that open later would keep their slots.
        const results = await Promise.allSettled([...customUrls].map(open));
        for (const result of results) if (result.status === "rejected") throw result.reason;
        return await work({
          getClient: (slug) => opened.get(slug) ?? getChain(network, slug).client,
          hasCustomEndpoint: (slug) => opened.has(slug),
        });
      } finally {
        await session.close();
      }
    },
    listStates: () =>
      [...configured].flatMap(([network, bySlug]) =>
        [...bySlug].map(([chain, each]) => {
          const chainId = networks[network]?.get(chain)?.chainId ?? 0;
          return { network, chain, chainId, ...readConfiguredState(each) };
        }),
      ),
    probe: (network, slug) => getChain(network, slug).pool.probe(),
    recordHead(network, slug, head, readAt) {
      blockAges?.recordHead(network, slug, { source: STATE_SOURCE, timestamp: head.timestamp, readAt });
      getChain(network, slug).pool.recordHead(head);
    },
    countCustomEndpoints: customEndpoints.count,
    countRequestsInFlight: upstreamBudget.inFlight,
    async close() {
      closing.abort();
      await dispatcher.destroy();
    },
  };
}
