import type { Chains } from "../chain/chains.js";
import { createBlockTimes } from "../chain/read/block-finder.js";
import { createFinality } from "../chain/read/finality-tracker.js";
import type { Config } from "../config/config.js";
import { createExplorer } from "../hop/explorer/explorer-client.js";
import type { Logger } from "../observability/log.js";
import type { Gate } from "../resilience/adaptive-limiter.js";
import { steadyNow } from "../resilience/clock.js";
import { createSharing } from "../resilience/single-flight.js";
import type { SourceHealth } from "../resilience/stale-while-revalidate.js";
import { createLookUp } from "../transfers/resolver.js";
import { createChainSource } from "../transfers/sources/chain/chain-source.js";
import { createLogTrails } from "../transfers/sources/chain/resumable-log-scanner.js";
import { createExplorerSource } from "../transfers/sources/explorer-source.js";
import { createStatusBook, type StatusBook } from "../transfers/status-cache.js";
import { createIndexing, type Indexing } from "./compose-index.js";

/** Where the status of a transfer is known, put together. */
export interface Statuses {
  readonly book: StatusBook;
  /** How the explorer is; undefined: it is off. */
  explorerHealth(): SourceHealth | undefined;
  /** How much of each of mainnet's chains is in the index; undefined: there is no index. */
  readonly indexCoverage: Indexing["coverage"] | undefined;
  /** Opens the index, where there is one. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export interface StatusesOptions {
  readonly config: Config;
  readonly chains: Chains;
  readonly gate: Gate;
  readonly logger: Logger;
}

export function createStatuses({ config, chains, gate, logger }: StatusesOptions): Statuses {
  const closing = new AbortController();
  const blockTimes = createBlockTimes({ now: steadyNow });
  const indexing = config.index && createIndexing({ config: config.index, chains, blockTimes, logger });
  const index = indexing?.source;
  const explorer =
    config.explorerApiUrl === undefined
      ? undefined
      : createExplorer({ baseUrl: config.explorerApiUrl, now: steadyNow });
  const chain = createChainSource({
    blockTimes,
    trails: createLogTrails(closing.signal),
    finality: createFinality({ now: steadyNow, wallNow: Date.now }),
    now: Date.now,
  });
  const book = createStatusBook({
    index,
    lookUp: createLookUp({
      chain,
      index,
      explorer: explorer && createExplorerSource({ explorer, now: Date.now }),
    }),
    sharing: createSharing(closing.signal),
    gate,
    longestMs: config.requestTimeoutMs,
    now: steadyNow,
  });
  return {
    book,
    explorerHealth: () => explorer?.health(),
    indexCoverage: indexing?.coverage,
    async start() {
      await indexing?.start();
    },
    async stop() {
      closing.abort();
      await Promise.all([indexing?.stop(), explorer?.close()]);
    },
  };
}
