import { setMaxListeners } from "node:events";
import type { GetTransferStatusResponse } from "../../gen/hop/bridge/v1/bridge_pb.js";
import type { ChainClients } from "../chain/chains.js";
import type { Config } from "../config/config.js";
import { getNetwork } from "../hop/networks.js";
import type { Metrics } from "../observability/metrics/metrics.js";
import { createTransferPresenter } from "../operations/transfers/transfer-presenter.js";
import type { TokenPrices } from "../prices/token-prices.js";
import { monotonicNow } from "../resilience/clock.js";
import { type AccountWatches, createAccountWatches } from "../transfers/watch/account/account-watches.js";
import { createFollowers } from "../transfers/watch/following/followers.js";
import { createWatchLookups } from "../transfers/watch/following/watch-lookups.js";
import { createIndexChangeReader } from "../transfers/watch/index-change-reader.js";
import { createTransferWatcher, type TransferWatcher } from "../transfers/watch/transfer-watcher.js";
import type { TransfersModule } from "./compose-transfers.js";

export interface ComposeWatchesOptions {
  readonly config: Pick<Config, "requestTimeoutMs" | "watchMaxSeconds" | "watchMaxStreams" | "watchMaxPerCaller">;
  readonly chains: ChainClients;
  readonly transfers: TransfersModule;
  readonly prices: TokenPrices;
  readonly metrics: Pick<Metrics, "onWatchPoll" | "onWatchEvent">;
}

/** Creates what watches of transfers share. */
export function composeWatches(options: ComposeWatchesOptions): TransferWatcher<GetTransferStatusResponse> {
  const { config, chains, transfers, prices, metrics } = options;
  const clocks = { now: monotonicNow, wallNow: () => Date.now() };
  const closing = new AbortController();
  // Each lookup that waits adds a listener.
  setMaxListeners(0, closing.signal);
  const { findAll, refresh, run } = createWatchLookups({
    chains,
    statusCache: transfers.statusCache,
    closing: closing.signal,
    timeoutMs: config.requestTimeoutMs,
    now: monotonicNow,
  });
  const present = createTransferPresenter({ details: transfers.details, prices });
  const followers = createFollowers<GetTransferStatusResponse>({
    ...clocks,
    findAll,
    refresh,
    present: (status, { network, isFull }, caller) =>
      run(network, caller, (context) => present(status, isFull, context)),
    isFinal: (network, chain, block) =>
      transfers.finality.isFinal(chains.forBackground(network.slug).getClient(chain.slug), block, closing.signal),
    getChains: (network) => chains.forBackground(network.slug),
    onPoll: metrics.onWatchPoll,
  });
  const { lister } = transfers;
  const readAs = (caller: string) => ({ caller, signal: closing.signal });
  const accounts: AccountWatches<GetTransferStatusResponse> | undefined =
    lister &&
    createAccountWatches<GetTransferStatusResponse>({
      now: monotonicNow,
      isIndexed: lister.isIndexed,
      getFeed: transfers.indexChanges,
      listTransfers: async ({ account, caller }, limit) => {
        const filter = { account, state: undefined, token: undefined, source: undefined, destination: undefined };
        return (await lister.list(filter, undefined, limit, readAs(caller))).transfers;
      },
      findTransfers: ({ transferId, transactionHash }, { caller }) =>
        lister.find(transferId, transactionHash, readAs(caller)),
      present: (status, { network, isFull, caller }) =>
        run(network, caller, (context) => present(status, isFull, context)),
      onEvent: metrics.onWatchEvent,
    });
  const watcher = createTransferWatcher({
    ...clocks,
    followers,
    accounts,
    maxLifetimeMs: config.watchMaxSeconds * 1_000,
    maxWatches: config.watchMaxStreams,
    maxWatchesPerCaller: config.watchMaxPerCaller,
    random: Math.random,
    onEvent: metrics.onWatchEvent,
  });
  const mainnet = getNetwork("mainnet");
  const changes = createIndexChangeReader({
    getFeed: transfers.indexChanges,
    onChanges(changed) {
      for (const { transferId, transactionHash, deliveryHash } of changed)
        followers.onIndexChange(mainnet, [transferId, transactionHash, ...(deliveryHash ? [deliveryHash] : [])]);
    },
    onGap: followers.onIndexGap,
  });
  return {
    ...watcher,
    close() {
      changes.close();
      closing.abort();
      watcher.close();
    },
  };
}
