import type { CreateQuorum } from "../../chain/configured-chain.js";
import type { Config } from "../../config/config.js";
import type { QuorumMetrics } from "../../observability/metrics/quorum-metrics.js";

interface OutvotedFields {
  readonly chain: string;
  readonly endpoint: string;
  /** What it was asked for. */
  readonly read: string;
  readonly restSeconds?: number;
}

/** Loads what compares the endpoints of a chain, if that is configured. Goerli's endpoints, often one, are believed. */
export async function loadQuorum(
  { rpcQuorum: quorum, rpcQuorumRate: sampleRate }: Config,
  warn: (fields: OutvotedFields, message: string) => void,
  metrics?: QuorumMetrics["observer"],
): Promise<CreateQuorum | undefined> {
  if (quorum === 1 && sampleRate === 0) return undefined;
  const { createChainQuorum } = await import("../../chain/quorum/chain-quorum.js");
  return (pool, { network, chain, closing }) => {
    if (network !== "mainnet") return undefined;
    return createChainQuorum(pool, {
      ...{ quorum, sampleRate, closing },
      observer: {
        onOutvoted(endpoint, read, restMs) {
          metrics?.onOutvoted(network, chain, endpoint, read);
          const rest = quorum > 1 ? { restSeconds: Math.round(restMs / 1000) } : {};
          warn({ chain, endpoint, read, ...rest }, "RPC endpoint outvoted: others agree on another answer");
        },
        onRead: (outcome) => metrics?.onRead(network, chain, outcome),
        onCalls: (purpose, count) => metrics?.onCalls(network, chain, purpose, count),
      },
    });
  };
}
