import type { Chains } from "../chain/chains.js";
import { createBlockFinder } from "../chain/read/block-finder.js";
import { createFinalityTracker } from "../chain/read/finality-tracker.js";
import type { Config } from "../config/config.js";
import { createExplorerClient } from "../hop/explorer/explorer-client.js";
import type { Logger } from "../observability/log.js";
import type { AdaptiveLimiter } from "../resilience/adaptive-limiter.js";
import { monotonicNow } from "../resilience/clock.js";
import { createSingleFlight } from "../resilience/single-flight.js";
import type { SourceHealth } from "../resilience/stale-while-revalidate.js";
import { createTransferResolver } from "../transfers/resolver.js";
import { createChainSource } from "../transfers/sources/chain/chain-source.js";
import { createResumableLogScanner } from "../transfers/sources/chain/resumable-log-scanner.js";
import { createExplorerSource } from "../transfers/sources/explorer-source.js";
import { createStatusCache, type StatusCache } from "../transfers/status-cache.js";
import { composeIndex, type IndexModule } from "./compose-index.js";

/** Where the status of a transfer is known, put together. */
export interface TransfersModule {
  readonly statusCache: StatusCache;
  /** How the explorer is; undefined: it is off. */
  explorerHealth(): SourceHealth | undefined;
  /** How much of each of mainnet's chains is in the index; undefined: there is no index. */
  readonly indexCoverage: IndexModule["coverage"] | undefined;
  /** Opens the index, where there is one. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export interface ComposeTransfersOptions {
  readonly config: Config;
  readonly chains: Chains;
  readonly limiter: AdaptiveLimiter;
  readonly logger: Logger;
}

export function composeTransfers({ config, chains, limiter, logger }: ComposeTransfersOptions): TransfersModule {
  const closing = new AbortController();
  const blockTimes = createBlockFinder({ now: monotonicNow });
  const indexing = config.index && composeIndex({ config: config.index, chains, blockTimes, logger });
  const index = indexing?.source;
  const explorer =
    config.explorerApiUrl === undefined
      ? undefined
      : createExplorerClient({ baseUrl: config.explorerApiUrl, now: monotonicNow });
  const chain = createChainSource({
    blockTimes,
    logScanner: createResumableLogScanner(closing.signal),
    finality: createFinalityTracker({ now: monotonicNow, wallNow: Date.now }),
    now: Date.now,
  });
  const statusCache = createStatusCache({
    index,
    resolver: createTransferResolver({
      chain,
      index,
      explorer: explorer && createExplorerSource({ explorer, now: Date.now }),
    }),
    singleFlight: createSingleFlight(closing.signal),
    limiter,
    timeoutMs: config.requestTimeoutMs,
    now: monotonicNow,
  });
  return {
    statusCache,
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
