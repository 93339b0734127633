import { vi } from "vitest";
import type { IndexChangeFeed } from "../../../../../src/transfers/index/store/changes/index-changes.js";
import { type IndexHandle, openIndex } from "../../../../../src/transfers/index/store/open-index.js";
import type { EventRows } from "../../../../../src/transfers/index/store/schema.js";
import type { TransferStatus } from "../../../../../src/transfers/status.js";
import { createAccountWatches } from "../../../../../src/transfers/watch/account/account-watches.js";
import { computeFingerprint } from "../../../../../src/transfers/watch/resume-token.js";
import { createTransferWatcher } from "../../../../../src/transfers/watch/transfer-watcher.js";
import { addressFromName, mainnetNetwork } from "../../index/support/hop-events.js";
import {
  ARBITRUM_CHAIN_ID,
  bytesFromName,
  createDeliveryRow,
  createSendRow,
  OPTIMISM_CHAIN_ID,
} from "../../index/support/index-rows.js";
import { createIndexWriter, createListHarness } from "../../list/list-harness.js";
import { CallerStub } from "../watch-world.js";

/** Sender and recipient of all transfers of `send`. */
export const SENDER = addressFromName("by");
export const RECIPIENT = addressFromName("to");

export const send = (name: string): EventRows["sends"][number] => createSendRow(bytesFromName(name), `sends ${name}`);

const atBlock = (block: number, sends: EventRows["sends"]): EventRows["sends"] =>
  sends.map((row) => ({ ...row, block_number: block }));

const createDeliveries = (block: number, names: readonly string[]): EventRows["deliveries"] =>
  names.map((name) => createDeliveryRow(bytesFromName(name), `delivers ${name}`, block));

/** An index in a file, written as the sync does, and its chains. */
export async function openTestIndex(file: string) {
  const index = await openIndex(file, mainnetNetwork);
  const writer = createIndexWriter(index);
  await writer.initialize([OPTIMISM_CHAIN_ID, ARBITRUM_CHAIN_ID]);
  return {
    index,
    send: (block: number, ...sends: EventRows["sends"]) =>
      writer.advance(OPTIMISM_CHAIN_ID, block, { sends: atBlock(block, sends) }),
    deliver: (block: number, ...names: string[]) =>
      writer.advance(ARBITRUM_CHAIN_ID, block, {
        deliveries: createDeliveries(block, names),
      }),
    rollBackSource: (block: number) => writer.rollBack(OPTIMISM_CHAIN_ID, block),
    rollBackDestination: (block: number) => writer.rollBack(ARBITRUM_CHAIN_ID, block),
    initialize: writer.initialize,
    sendFrom: (chainId: number, block: number, ...sends: EventRows["sends"]) =>
      writer.advance(chainId, block, { sends: atBlock(block, sends) }),
    finalizeDestination: (block: number, ...names: string[]) =>
      writer.finalize(ARBITRUM_CHAIN_ID, block, { deliveries: createDeliveries(block, names) }),
    finalizeSource: (block: number, ...sends: EventRows["sends"]) =>
      writer.finalize(OPTIMISM_CHAIN_ID, block, { sends: atBlock(block, sends) }),
  };
}

export type TestIndex = Awaited<ReturnType<typeof openTestIndex>>;

/** Watches of accounts over an index. Time stands still except in `advance`. */
export function createAccountWorld(index: IndexHandle) {
  const now = (): number => Date.now();
  const { lister } = createListHarness(index);
  const context = { caller: "watch", signal: new AbortController().signal };
  const any = { state: undefined, token: undefined, source: undefined, destination: undefined };
  const world = { isDown: false, lists: 0, finds: 0, presented: 0, feed: index.changes as IndexChangeFeed };
  const assertUp = (): void => {
    if (world.isDown) throw new Error("the index is down");
  };
  const accounts = createAccountWatches<TransferStatus>({
    now,
    isIndexed: (network) => network === mainnetNetwork,
    getFeed: () => world.feed,
    async listTransfers({ account }, limit) {
      world.lists += 1;
      assertUp();
      return (await lister.list({ account, ...any }, undefined, limit, context)).transfers;
    },
    findTransfers({ transferId, transactionHash }) {
      world.finds += 1;
      assertUp();
      return lister.find(transferId, transactionHash, context);
    },
    present(status, { isFull }) {
      world.presented += 1;
      const text = `${status.sent.id} ${status.state} ${status.delivery?.transactionHash} ${isFull && status.isFinal}`;
      return {
        message: status,
        fingerprint: computeFingerprint(text, status.delivery === undefined ? 0 : 4),
        isFinal: true,
      };
    },
    onEvent: () => {},
  });
  const watcher = createTransferWatcher<TransferStatus>({
    followers: {
      acquire: () => {
        throw new Error("no followers");
      },
      ...{ release() {}, onIndexChange() {}, onIndexGap() {}, close() {} },
      counts: () => ({ followed: 0, unknown: 0 }),
    },
    ...{ accounts, maxLifetimeMs: 3_600_000, maxWatches: 0, maxWatchesPerCaller: 0 },
    ...{ now, wallNow: now, random: () => 0, onEvent: () => {} },
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
    advance: (ms: number) => vi.advanceTimersByTimeAsync(ms),
  });
}

/** What a caller got, as texts; bookmarks only if `withBookmarks`. */
export function describeEvents({ events }: CallerStub, names: readonly string[], withBookmarks = false): string[] {
  const nameOf = (id = ""): string => names.find((name) => id === `0x${bytesFromName(name).toString("hex")}`) ?? id;
  return events
    .filter(({ kind }) => withBookmarks || kind !== "bookmark")
    .map(({ kind, state, id }) => (kind === "bookmark" ? kind : `${nameOf(id)} ${kind === "unknown" ? kind : state}`));
}
