import type { GetTransferStatusResponse } from "../../gen/hop/bridge/v1/bridge_pb.js";
import type { ChainClients } from "../chain/chains.js";
import type { Config } from "../config/config.js";
import { getNetwork } from "../hop/networks.js";
import type { Metrics } from "../observability/metrics/metrics.js";
import { createTransferPresenter } from "../operations/transfers/transfer-presenter.js";
import type { TokenPrices } from "../prices/token-prices.js";
import { monotonicNow } from "../resilience/clock.js";
import type { Scheduler } from "../resilience/scheduler.js";
import type { Requester, Waiters } from "../resilience/waiters.js";
import { AccountStates } from "../transfers/watch/account-states.js";
import { ChangeHistory } from "../transfers/watch/change-history.js";
import { Followers } from "../transfers/watch/followers.js";
import { TransferWatcher } from "../transfers/watch/transfer-watcher.js";
import { WatchLookups } from "../transfers/watch/watch-lookups.js";
import type { TransfersModule } from "./compose-transfers.js";

export interface ComposeWatchesOptions {
  readonly config: Pick<Config, "requestTimeoutMs" | "watchMaxSeconds" | "watchMaxStreams" | "watchMaxPerCaller">;
  readonly chains: ChainClients;
  readonly transfers: TransfersModule;
  readonly prices: TokenPrices;
  readonly scheduler: Scheduler;
  readonly metrics: Pick<Metrics, "onWatchPoll" | "onWatchEvent">;
}

/** Creates what watches of transfers share. */
export function composeWatches(options: ComposeWatchesOptions): TransferWatcher<GetTransferStatusResponse> {
  const { config, chains, transfers, prices, scheduler, metrics } = options;
  const { lister, finality, closing } = transfers;
  const lookups = new WatchLookups<GetTransferStatusResponse>({
    chains,
    statusCache: transfers.statusCache,
    present: createTransferPresenter({ details: transfers.details, prices }),
    isFinal: (network, chain, block) =>
      finality.isFinal(chains.forBackground(network.slug).getClient(chain.slug), block, closing),
    timeoutMs: config.requestTimeoutMs,
    now: monotonicNow,
  });
  const history = new ChangeHistory(transfers.indexChanges, scheduler);
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
  const readFor = (waiters: Waiters): Requester => ({ caller: "", waiters, signal: waiters.signal });
  const accounts =
    lister &&
    new AccountStates<GetTransferStatusResponse>(
      {
        isIndexed: (network) => lister.isIndexed(network),
        async listTransfers(account, limit, waiters) {
          const filter = { account, state: undefined, token: undefined, source: undefined, destination: undefined };
          return (await lister.list(filter, undefined, limit, readFor(waiters))).transfers;
        },
        findTransfers: ({ transferId, transactionHash }, waiters) =>
          lister.find(transferId, transactionHash, readFor(waiters)),
        present: (status, view, waiters) => lookups.present(status, view, waiters),
      },
      history,
      monotonicNow,
      closing,
    );
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
