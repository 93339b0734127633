import type { EndpointPool, EndpointPoolState } from "./endpoints/endpoint-pool.js";
import type { ChainQuorum } from "./quorum/chain-quorum.js";

/** A chain on the configured endpoints. */
export interface ConfiguredChain {
  readonly pool: EndpointPool;
  readonly client: ChainQuorum["client"];
  /** undefined: one endpoint is believed. */
  readonly quorum: ChainQuorum | undefined;
}

/** The chain whose reads are compared, and the signal that ends all work on it. */
interface QuorumPlace {
  readonly network: string;
  readonly chain: string;
  readonly closing: AbortSignal;
}

/** Has several endpoints of a chain confirm what is read; undefined: one endpoint is believed. */
export type CreateQuorum = (pool: EndpointPool, place: QuorumPlace) => ChainQuorum | undefined;

/** Returns the state of the endpoints, and who of them was outvoted. */
export function readConfiguredState({ pool, quorum }: ConfiguredChain): EndpointPoolState {
  const state = pool.state();
  if (quorum === undefined) return state;
  const endpoints = state.endpoints.map((each) =>
    quorum.isOutvoted(each.endpoint) ? { ...each, state: "outvoted" as const } : each,
  );
  return { ...state, endpoints };
}
