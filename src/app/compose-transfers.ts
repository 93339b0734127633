import type { ChainClients } from "../chain/chains.js";
import { createBlockFinder } from "../chain/read/block-finder.js";
import { createFinalityTracker, type FinalityTracker } from "../chain/read/finality-tracker.js";
import type { Config } from "../config/config.js";
import { createExplorerClient } from "../hop/explorer/explorer-client.js";
import { getNetwork } from "../hop/networks.js";
import type { Logger } from "../observability/log.js";
import type { Metrics } from "../observability/metrics/metrics.js";
import type { AdaptiveLimiter } from "../resilience/adaptive-limiter.js";
import { monotonicNow } from "../resilience/clock.js";
import { createSingleFlight } from "../resilience/single-flight.js";
import type { SourceHealth } from "../resilience/stale-while-revalidate.js";
import type { RedisServices } from "../shared-state/redis/redis-services.js";
import { createTransferDetailsFinder } from "../transfers/details/details-finder.js";
import { createDetailsReader } from "../transfers/details/details-reader.js";
import type { TransferDetailsFinder } from "../transfers/details/transfer-details.js";
import type { IndexChangeFeed } from "../transfers/index/store/changes/index-changes.js";
import { getPollIntervalMs } from "../transfers/index/sync/reorg-detection.js";
import type { TransferLister } from "../transfers/list/transfer-lister.js";
import { createTransferResolver, type TransferResolver, type TransferResolverOptions } from "../transfers/resolver.js";
import { createSharedResolver } from "../transfers/shared-statuses.js";
import { createChainSource } from "../transfers/sources/chain/chain-source.js";
import { createResumableLogScanner } from "../transfers/sources/chain/resumable-log-scanner.js";
import { createSearchedBlocks } from "../transfers/sources/chain/searched-blocks.js";
import { createExplorerSource } from "../transfers/sources/explorer-source.js";
import { createRemoteIndexResolver } from "../transfers/sources/remote-index-resolver.js";
import { createBudgetedResolver } from "../transfers/spend/budgeted-resolver.js";
import { createLookupBudgets } from "../transfers/spend/lookup-budget.js";
import { createStatusCache, type StatusCache } from "../transfers/status-cache.js";
import { composeIndex, type IndexModule } from "./compose-index.js";

/** Transfer status with all its sources: index, chains and explorer. */
export interface TransfersModule {
  readonly statusCache: StatusCache;
  readonly details: TransferDetailsFinder;
  /** undefined: there is no index. */
  readonly lister: TransferLister | undefined;
  /** Delivery times of mainnet; undefined: there is no index. */
  readonly deliveryTimes: IndexModule["deliveryTimes"] | undefined;
  readonly finality: FinalityTracker;
  /** Returns what changes in the index of mainnet; undefined: there is none, or it is not open. */
  indexChanges(): IndexChangeFeed | undefined;
  /** Returns the explorer's health; undefined: the explorer is disabled. */
  explorerHealth(): SourceHealth | undefined;
  /** Returns the indexed range of a mainnet chain; undefined: there is no index. */
  readonly indexCoverage: IndexModule["coverage"] | undefined;
  /** undefined: there is no index. */
  readonly indexDatabase?: IndexModule["databaseStatus"] | undefined;
  /** Opens the index, if one is configured. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export interface ComposeTransfersOptions {
  readonly config: Config;
  readonly chains: ChainClients;
  readonly limiter: AdaptiveLimiter;
  readonly metrics: Pick<Metrics, "onLookupRequest" | "onBudgetExhausted">;
  readonly logger: Logger;
  /** undefined: nothing is shared with other replicas. */
  readonly redis: RedisServices | undefined;
}

export function composeTransfers({
  config,
  chains,
  limiter,
  metrics,
  logger,
  redis,
}: ComposeTransfersOptions): TransfersModule {
  const shutdown = new AbortController();
  const blockTimes = createBlockFinder({ now: monotonicNow });
  const indexModule = config.index && composeIndex({ config: config.index, chains, blockTimes, logger });
  const index = indexModule?.source;
  const explorer =
    config.explorerApiUrl === undefined
      ? undefined
      : createExplorerClient({ baseUrl: config.explorerApiUrl, now: monotonicNow });
  const logScanner = createResumableLogScanner(shutdown.signal, monotonicNow);
  const finality = createFinalityTracker({ now: monotonicNow, wallNow: Date.now });
  const chain = createChainSource({
    blockTimes,
    logScanner,
    searchedBlocks: createSearchedBlocks(monotonicNow),
    finality,
    now: Date.now,
  });
  const explorerSource = explorer && createExplorerSource({ explorer, now: Date.now });
  const createResolver = (source: TransferResolverOptions["index"]): TransferResolver =>
    createTransferResolver({ chain, index: source, explorer: explorerSource });
  const resolver =
    indexModule?.remote === undefined
      ? createResolver(index)
      : createRemoteIndexResolver({
          remote: indexModule.remote,
          network: getNetwork("mainnet"),
          getPollIntervalMs,
          now: Date.now,
          createResolver,
        });
  const budgets = createLookupBudgets({
    now: monotonicNow,
    onRequest: metrics.onLookupRequest,
    onExhausted: metrics.onBudgetExhausted,
    sharedBuckets: redis?.buckets,
    requestsPerRead: config.rpcQuorum,
  });
  const budgetedResolver = createBudgetedResolver(resolver, budgets);
  const statusCache = createStatusCache({
    index,
    resolver:
      redis === undefined
        ? budgetedResolver
        : createSharedResolver(budgetedResolver, redis.statuses, redis.onStatusRefused),
    singleFlight: createSingleFlight(shutdown.signal),
    limiter,
    timeoutMs: config.requestTimeoutMs,
    now: monotonicNow,
  });
  const details = createTransferDetailsFinder({
    readDetails: createDetailsReader({ logScanner, finality }),
    getMedianDeliverySeconds: indexModule && ((route) => indexModule.deliveryTimes.get(route).p50Seconds),
    budgets,
    limiter,
    timeoutMs: config.requestTimeoutMs,
    closing: shutdown.signal,
    now: monotonicNow,
  });
  return {
    statusCache,
    details,
    lister: indexModule?.lister,
    deliveryTimes: indexModule?.deliveryTimes,
    finality,
    indexChanges: () => indexModule?.changes(),
    explorerHealth: () => explorer?.health(),
    indexCoverage: indexModule?.coverage,
    indexDatabase: indexModule?.databaseStatus,
    async start() {
      await indexModule?.start();
    },
    async stop() {
      shutdown.abort();
      await Promise.all([indexModule?.stop(), explorer?.close()]);
    },
  };
}
