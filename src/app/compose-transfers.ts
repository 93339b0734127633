import type { GetTransferStatusResponse } from "../../gen/hop/bridge/v1/bridge_pb.js";
import type { ChainClients } from "../chain/chains.js";
import { FinalityTracker } from "../chain/heads/finality-tracker.js";
import { BlockFinder } from "../chain/read/block-finder.js";
import type { Config } from "../config/config.js";
import type { AttestationClient } from "../hop/attestation-client.js";
import { ExplorerClient } from "../hop/explorer-client.js";
import { getNetwork } from "../hop/networks.js";
import type { ReadTurns } from "../http/admission/read-turns.js";
import type { Logger } from "../observability/log.js";
import type { Metrics } from "../observability/metrics/metrics.js";
import { createTransferPresenter } from "../operations/transfers/transfer-presenter.js";
import type { TokenPrices } from "../prices/token-prices.js";
import type { AdaptiveLimiter } from "../resilience/adaptive-limiter.js";
import { monotonicNow } from "../resilience/clock.js";
import type { Scheduler } from "../resilience/scheduler.js";
import { SingleFlight } from "../resilience/single-flight.js";
import type { SourceHealth } from "../resilience/stale-while-revalidate.js";
import type { SharedCache } from "../shared-state/shared-cache.js";
import { DetailsFinder } from "../transfers/details/details-finder.js";
import { createDetailsReader } from "../transfers/details/details-reader.js";
import type { TransferIndex } from "../transfers/index/transfer-index.js";
import { SourcesResolver } from "../transfers/resolver.js";
import { createSharedResolver } from "../transfers/shared-statuses.js";
import { ChainSource } from "../transfers/sources/chain/chain-source.js";
import { ResumableLogScanner } from "../transfers/sources/chain/resumable-log-scanner.js";
import { SearchedBlocks } from "../transfers/sources/chain/searched-blocks.js";
import { ExplorerSource } from "../transfers/sources/explorer-source.js";
import { BudgetedResolver } from "../transfers/spend/budgeted-resolver.js";
import { LookupBudgets } from "../transfers/spend/lookup-budget.js";
import { StatusCache } from "../transfers/status-cache.js";
import { ChangeHistory } from "../transfers/watch/change-history.js";
import { Followers } from "../transfers/watch/followers.js";
import { TransferWatcher } from "../transfers/watch/transfer-watcher.js";
import { WatchLookups } from "../transfers/watch/watch-lookups.js";
import { WatchedAccounts } from "../transfers/watch/watched-accounts.js";
import { WithdrawalFinder } from "../transfers/withdrawals/withdrawal-finder.js";
import { IndexModule } from "./compose-index.js";

/** Transfer status with all its sources: index, chains and explorer. */
export class TransfersModule {
  readonly statusCache: StatusCache;
  readonly details: DetailsFinder;
  readonly withdrawals: WithdrawalFinder;
  /** Of mainnet; undefined: there is none. */
  readonly index: IndexModule | undefined;
  readonly finality = new FinalityTracker(monotonicNow, Date.now);
  readonly #shutdown = new AbortController();
  /** Aborts at `stop`: ends all lookups. */
  readonly closing: AbortSignal = this.#shutdown.signal;
  readonly #explorer: ExplorerClient | undefined;

  /** @param options `sharedCache` undefined: this process shares nothing */
  constructor({
    config,
    openedIndex,
    chains,
    limiter,
    attestations,
    metrics,
    logger,
    sharedCache,
  }: {
    readonly config: Config;
    /** undefined: none is configured. */
    readonly openedIndex: TransferIndex | undefined;
    readonly chains: ChainClients;
    readonly limiter: AdaptiveLimiter;
    /** undefined: the source is switched off. */
    readonly attestations: AttestationClient | undefined;
    readonly metrics: Pick<Metrics, "onLookupRequest" | "onBudgetExhausted" | "onFailedWithdrawalCheck">;
    readonly logger: Logger;
    readonly sharedCache: SharedCache | undefined;
  }) {
    const blockTimes = new BlockFinder(monotonicNow);
    const logScanner = new ResumableLogScanner(this.closing, monotonicNow);
    const budgets = new LookupBudgets({
      now: monotonicNow,
      onRequest: metrics.onLookupRequest,
      onExhausted: metrics.onBudgetExhausted,
      requestsPerRead: config.rpcQuorum,
    });
    const index =
      config.index &&
      openedIndex &&
      new IndexModule({ opened: openedIndex, from: config.index.from, chains, blockTimes, logger });
    this.index = index;
    this.#explorer =
      config.explorerApiUrl === undefined ? undefined : new ExplorerClient(config.explorerApiUrl, monotonicNow);
    const caches = { blockTimes, logScanner, searchedBlocks: new SearchedBlocks(monotonicNow) };
    const resolver = this.#createResolver(new ChainSource(caches, this.finality, Date.now), budgets);
    const shared = { limiter, timeoutMs: config.requestTimeoutMs, now: monotonicNow };
    this.statusCache = new StatusCache({
      // A server is asked by the resolver, once for all callers that ask for the same.
      index: index?.opened.database.isLocal ? index.lookup : undefined,
      resolver: sharedCache === undefined ? resolver : createSharedResolver(resolver, sharedCache),
      singleFlight: new SingleFlight(this.closing),
      ...shared,
    });
    this.details = new DetailsFinder({
      readDetails: createDetailsReader(logScanner, this.finality),
      getMedianDeliverySeconds: index && ((route) => index.deliveryTimes.get(route)?.p50Seconds),
      budgets,
      closing: this.closing,
      ...shared,
    });
    this.withdrawals = new WithdrawalFinder({
      logScanner,
      budgets,
      attestations,
      closing: this.closing,
      ...shared,
      findIndexedTree: index && ((...lookup) => index.lookup.findTree(...lookup)),
      onFailedCheck: metrics.onFailedWithdrawalCheck,
    });
  }

  /** Returns the explorer's health; undefined: the explorer is disabled. */
  explorerHealth(): SourceHealth | undefined {
    return this.#explorer?.health();
  }

  /** Starts to sync the index, if one is configured. */
  async start(): Promise<void> {
    await this.index?.start();
  }

  async stop(): Promise<void> {
    this.#shutdown.abort();
    await Promise.all([this.index?.stop(), this.#explorer?.close()]);
  }

  #createResolver(chain: ChainSource, budgets: LookupBudgets): BudgetedResolver {
    const explorer = this.#explorer && new ExplorerSource(this.#explorer, Date.now);
    return new BudgetedResolver(new SourcesResolver(chain, this.index?.lookup, explorer), budgets);
  }
}

/** Creates what watches of transfers share. */
export function composeWatches(options: {
  readonly config: Pick<Config, "requestTimeoutMs" | "watchMaxSeconds" | "watchMaxStreams" | "watchMaxPerCaller">;
  readonly chains: ChainClients;
  readonly transfers: TransfersModule;
  readonly prices: TokenPrices;
  readonly scheduler: Scheduler;
  readonly reads: ReadTurns;
  readonly metrics: Pick<Metrics, "onWatchPoll" | "onWatchEvent">;
}): TransferWatcher<GetTransferStatusResponse> {
  const { config, chains, transfers, prices, scheduler, reads, metrics } = options;
  const { index, finality, closing } = transfers;
  const lookups = new WatchLookups<GetTransferStatusResponse>({
    chains,
    statusCache: transfers.statusCache,
    present: createTransferPresenter({ details: transfers.details, prices }),
    isFinal: (network, chain, block) =>
      finality.isFinal(chains.forBackground(network.slug).getClient(chain.slug), block, closing),
    untilRead: (callers) => reads.untilRead(callers),
    timeoutMs: config.requestTimeoutMs,
    now: monotonicNow,
  });
  const history = new ChangeHistory(index?.opened.changes, scheduler);
  const followers = new Followers<GetTransferStatusResponse>({
    now: monotonicNow,
    wallNow: Date.now,
    lookups,
    scheduler,
    getChains: (network) => chains.forBackground(network.slug),
    indexedNetwork: getNetwork("mainnet"),
    onPoll: metrics.onWatchPoll,
  });
  history.addListener(followers);
  const accounts = index && new WatchedAccounts({ lister: index.lister, lookups, history, now: monotonicNow, closing });
  return new TransferWatcher({
    followers,
    accounts,
    history,
    scheduler,
    maxLifetimeMs: config.watchMaxSeconds * 1_000,
    maxWatches: config.watchMaxStreams,
    maxWatchesPerCaller: config.watchMaxPerCaller,
    random: Math.random,
    onEvent: metrics.onWatchEvent,
  });
}
