import { vi } from "vitest";
import type { Network } from "../../../../src/hop/networks.js";
import { Scheduler } from "../../../../src/resilience/scheduler.js";
import type { Waiters } from "../../../../src/resilience/waiters.js";
import type { IndexChangeFeed } from "../../../../src/transfers/index/change-feed.js";
import type { EventRows } from "../../../../src/transfers/index/database/schema.js";
import type { TransferLister } from "../../../../src/transfers/index/list/transfer-lister.js";
import type { TransferIndex } from "../../../../src/transfers/index/transfer-index.js";
import type { TransferStatus } from "../../../../src/transfers/status.js";
import { ChangeHistory } from "../../../../src/transfers/watch/change-history.js";
import { Followers } from "../../../../src/transfers/watch/followers.js";
import { computeFingerprint } from "../../../../src/transfers/watch/resume-token.js";
import { TransferWatcher } from "../../../../src/transfers/watch/transfer-watcher.js";
import type { WatchTarget } from "../../../../src/transfers/watch/watch-lifecycle.js";
import { WatchedAccounts } from "../../../../src/transfers/watch/watched-accounts.js";
import { createDeferred } from "../../../support/stubs/transfer-fixtures.js";
import { createIndexWriter, createListHarness } from "../index/list/list-harness.js";
import { addressFromName, mainnetNetwork } from "../index/support/hop-events.js";
import {
  ARBITRUM_CHAIN_ID,
  bytesFromName,
  createDeliveryRow,
  createSendRow,
  OPTIMISM_CHAIN_ID,
} from "../index/support/index-rows.js";
import { CallerStub } from "./watch-world.js";

/** Sender and recipient of all transfers of `send`. */
export const SENDER = addressFromName("by");
export const RECIPIENT = addressFromName("to");

export const send = (name: string): EventRows["sends"][number] => createSendRow(bytesFromName(name), `sends ${name}`);

const atBlock = (block: number, sends: EventRows["sends"]): EventRows["sends"] =>
  sends.map((row) => ({ ...row, block_number: block }));

const createDeliveries = (block: number, names: readonly string[]): EventRows["deliveries"] =>
  names.map((name) => createDeliveryRow(bytesFromName(name), `delivers ${name}`, block));

/** Lets what was begun end. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Writes an index and its chains as the sync does. What follows from a write has happened when that ends. */
export async function writeTestIndex(index: TransferIndex) {
  const writer = createIndexWriter(index);
  await writer.initialize([OPTIMISM_CHAIN_ID, ARBITRUM_CHAIN_ID]);
  const sendFrom = async (chainId: number, block: number, ...sends: EventRows["sends"]): Promise<void> => {
    await writer.advance(chainId, block, { sends: atBlock(block, sends) });
    await settle();
  };
  return {
    index,
    initialize: writer.initialize,
    sendFrom,
    send: (block: number, ...sends: EventRows["sends"]) => sendFrom(OPTIMISM_CHAIN_ID, block, ...sends),
    async deliver(block: number, ...names: string[]): Promise<void> {
      await writer.advance(ARBITRUM_CHAIN_ID, block, { deliveries: createDeliveries(block, names) });
      await settle();
    },
    async rollBack(chainId: number, block: number): Promise<void> {
      await writer.rollBack(chainId, block);
      await settle();
    },
    async finalizeDestination(block: number, ...names: string[]): Promise<void> {
      await writer.finalize(ARBITRUM_CHAIN_ID, block, { deliveries: createDeliveries(block, names) });
      await settle();
    },
    async finalizeSource(block: number, ...sends: EventRows["sends"]): Promise<void> {
      await writer.finalize(OPTIMISM_CHAIN_ID, block, { sends: atBlock(block, sends) });
      await settle();
    },
  };
}

export type TestIndex = Awaited<ReturnType<typeof writeTestIndex>>;

const fail = (): never => {
  throw new Error("no transfer is watched by its ID or hash");
};
const NO_LOOKUPS = { findAll: fail, refresh: fail, present: fail, isFinal: fail };

/** Watches of accounts over an index. Time stands still except in `advance`. */
export function createAccountWorld(index: TransferIndex, feed: IndexChangeFeed = index.changes) {
  const now = (): number => Date.now();
  const { lister } = createListHarness(index);
  const context = { caller: "watch", signal: new AbortController().signal };
  const world = {
    substate: "WAITING_FOR_SETTLEMENT",
    ...{ isDown: false, lists: 0, finds: 0, presented: 0 },
    /** What the index answers is held back until it resolves. */
    held: Promise.resolve(),
    /** Holds back what the index answers until the returned function is called. */
    hold(): () => void {
      const { promise, resolve } = createDeferred<void>();
      world.held = promise;
      return () => {
        world.held = Promise.resolve();
        resolve();
      };
    },
    /** IDs of transfers whose details cannot be read. */
    unreadable: new Set<string>(),
    /** Who waits for each of the reads. */
    reads: [] as Waiters[],
  };
  const assertUp = (): void => {
    if (world.isDown) throw new Error("the index is down");
  };
  const scheduler = new Scheduler();
  const history = new ChangeHistory(feed, scheduler);
  const source = {
    isIndexed: (network: Network) => lister.isIndexed(network),
    async list(...[filter, after, limit, requester]: Parameters<TransferLister["list"]>) {
      world.lists += 1;
      if (requester.waiters !== undefined) world.reads.push(requester.waiters);
      assertUp();
      const list = await lister.list(filter, after, limit, context);
      await world.held;
      return list;
    },
    async find(...[transferId, transactionHash]: Parameters<TransferLister["find"]>) {
      world.finds += 1;
      assertUp();
      const transfers = await lister.find(transferId, transactionHash, context);
      await world.held;
      return transfers;
    },
  };
  const lookups = {
    async present(status: TransferStatus, { isFull }: Pick<WatchTarget, "isFull">) {
      world.presented += 1;
      if (world.unreadable.has(status.sent.id)) throw new Error("the chain does not respond");
      const text = `${status.sent.id} ${status.state} ${status.delivery?.transactionHash} ${isFull && status.isFinal} ${isFull && world.substate}`;
      const stage = status.delivery === undefined ? 0 : 4;
      return { message: status, fingerprint: computeFingerprint(text, stage), isFinal: true };
    },
  };
  const closing = new AbortController().signal;
  const accounts = new WatchedAccounts({ lister: source, lookups, history, now, closing });
  const followers = new Followers<TransferStatus>({
    now,
    wallNow: now,
    scheduler,
    lookups: NO_LOOKUPS,
    getChains: fail,
    indexedNetwork: mainnetNetwork,
    onPoll: fail,
  });
  const watcher = new TransferWatcher<TransferStatus>({
    ...{ followers, accounts, history, scheduler, random: () => 0, onEvent: () => {} },
    ...{ maxLifetimeMs: 3_600_000, maxWatches: 0, maxWatchesPerCaller: 0 },
  });
  return Object.assign(world, {
    watcher,
    open(
      account = SENDER,
      { resumeToken = "", caller = "me", isFull = false, stub = new CallerStub(), network = mainnetNetwork } = {},
    ): CallerStub {
      stub.watch = watcher.openAccount({ network, account, isFull, resumeToken, caller }, stub);
      if (stub.ending !== "open") stub.watch.onEnd();
      return stub;
    },
    /** Passes time, and lets what that begins end. */
    async advance(ms: number): Promise<void> {
      await vi.advanceTimersByTimeAsync(ms);
      await settle();
    },
  });
}

/** What a caller got, as texts; bookmarks only if `withBookmarks`. */
export function describeEvents({ events }: CallerStub, names: readonly string[], withBookmarks = false): string[] {
  const nameOf = (id = ""): string => names.find((name) => id === `0x${bytesFromName(name).toString("hex")}`) ?? id;
  return events
    .filter(({ kind }) => withBookmarks || kind !== "bookmark")
    .map(({ kind, state, id }) => (kind === "bookmark" ? kind : `${nameOf(id)} ${kind === "unknown" ? kind : state}`));
}
