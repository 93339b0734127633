import type { Chain, Network } from "../../hop/networks.js";
import type { RemoteIndex } from "../index/store/postgres/remote-index.js";
import type { TransferIndexReader } from "../index/store/transfer-index.js";
import type { TransferResolver, TransferResolverOptions } from "../resolver.js";
import type { TransferStatus } from "../status.js";
import { createIndexLookup, type FinalizedSend, type IndexLookup } from "./index-source.js";
import type { LookupContext, TransferQuery } from "./transfer-source.js";

export interface RemoteIndexResolverOptions {
  readonly remote: RemoteIndex;
  /** The network that is indexed. */
  readonly network: Network;
  /** Returns the interval at which the index polls a chain, in milliseconds. */
  readonly getPollIntervalMs: (chain: Chain) => number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Creates a resolver for what the index does not know. */
  readonly createResolver: (index: TransferResolverOptions["index"]) => TransferResolver;
}

/** What the index says about a lookup, all of one state. */
interface IndexAnswer {
  readonly status: TransferStatus | undefined;
  readonly send: FinalizedSend | undefined;
  /** By chain slug; undefined: the index does not apply to the lookup. */
  readonly lastSearchedBlocks: ReadonlyMap<string, number> | undefined;
}

/**
 * Creates a resolver that asks the index first. While the index does not answer, the other sources do, as if there were
 * none: nothing that it has not said in this lookup is used.
 */
export function createRemoteIndexResolver(options: RemoteIndexResolverOptions): TransferResolver {
  const { remote, network, getPollIntervalMs, now, createResolver } = options;

  function ask(query: TransferQuery, context: LookupContext, reader: TransferIndexReader): IndexAnswer {
    const lookup = createIndexLookup({ getIndex: () => reader, network, getPollIntervalMs, now });
    const status = lookup.findKnownStatus(query, context);
    if (status !== undefined) return { status, send: undefined, lastSearchedBlocks: undefined };
    const getLastSearchedBlock = lookup.getLastSearchedBlock(context);
    return {
      status,
      send: lookup.findFinalizedSend(query, context),
      lastSearchedBlocks:
        getLastSearchedBlock &&
        new Map(Array.from(network.chains.values(), (chain) => [chain.slug, getLastSearchedBlock(chain)])),
    };
  }

  return {
    async resolve(query, context) {
      const answer =
        context.network === network
          ? (await remote.read((reader) => ask(query, context, reader), context))?.value
          : undefined;
      if (answer === undefined) return createResolver(undefined).resolve(query, context);
      const { status, send, lastSearchedBlocks } = answer;
      if (status !== undefined) return status;
      const index: Pick<IndexLookup, "findFinalizedSend" | "getLastSearchedBlock"> = {
        findFinalizedSend: () => send,
        getLastSearchedBlock: () => lastSearchedBlocks && ((chain) => lastSearchedBlocks.get(chain.slug) ?? -1),
      };
      return createResolver(index).resolve(query, context);
    },
  };
}
