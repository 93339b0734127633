import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { encodeUsedNoncesCall } from "../../../../../src/hop/transfer-events.js";
import { findDelivery } from "../../../../../src/transfers/sources/chain/delivery-search.js";
import type { LookupContext } from "../../../../../src/transfers/sources/transfer-source.js";
import type { SentTransfer } from "../../../../../src/transfers/status.js";
import { settleAfter } from "../../../../support/settle-after.js";
import {
  createChainAccess,
  createDeferred,
  createLookupContext,
  createSentTransfer,
  createTransferChainStub,
  flushEventLoop,
  getChain,
  type TransferChainStub,
  toLog,
  unavailableError,
} from "../../../../support/stubs/transfer-fixtures.js";
import {
  hashFromName,
  messageReceivedEvent,
  withdrawalBondedEvent,
  withdrewEvent,
} from "../../index/support/hop-events.js";
import { createSearch } from "./search-fixtures.js";

const bonded = withdrawalBondedEvent("a", { to: "arbitrum" });
const unavailable = { reason: "UPSTREAM_UNAVAILABLE" };

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
});
afterEach(() => {
  const pendingTimers = vi.getTimerCount();
  vi.useRealTimers();
  expect(pendingTimers).toBe(0);
});

/** Arbitrum with the bond of a transfer and its flag unless `state` replaces them, and searches over it. */
function setup(state: Partial<Omit<TransferChainStub, "client">> = {}) {
  const chain = createTransferChainStub("arbitrum");
  Object.assign(chain, { contractResult: () => 1n, events: [{ event: bonded, block: 60_000 }], ...state });
  const { toSearch } = createSearch(new AbortController().signal);
  const send = (more: Partial<SentTransfer> = {}) =>
    createSentTransfer({ id: hashFromName("a"), timestamp: chain.timestampOf(50_000), ...more });
  function find(sent = send(), { custom = [], sentAt = sent.timestamp, ...more }: Context = {}) {
    const chains = createChainAccess([chain], custom);
    const delivery = findDelivery(sent, Promise.resolve(sentAt), toSearch(createLookupContext({ chains, ...more })));
    delivery.catch(() => {});
    return delivery;
  }
  /** Finds the delivery of a transfer and runs all timers. */
  async function findAfterTimers(...args: Parameters<typeof find>) {
    const delivery = find(...args);
    await vi.runAllTimersAsync();
    return delivery;
  }
  return { chain, find, findAfterTimers, send };
}

interface Context extends Partial<LookupContext> {
  /** Chains for which the caller names its own endpoint. */
  readonly custom?: readonly string[];
  /** When the transfer was sent, Unix seconds. */
  readonly sentAt?: number;
}

const hang = (): Promise<void> => createDeferred<void>().promise;
const fail = (): never => {
  throw unavailableError("arbitrum");
};
const onLogs =
  (respond: () => Promise<void>): TransferChainStub["beforeResponse"] =>
  (method) =>
    method === "eth_getLogs" ? respond() : undefined;
const onCalls =
  (respond: () => Promise<void>): TransferChainStub["beforeResponse"] =>
  (method) =>
    method === "eth_call" ? respond() : undefined;

describe("the delivery of a transfer", () => {
  const log = toLog(bonded, 60_000);
  const other = withdrawalBondedEvent("b", { to: "arbitrum" });
  const withoutData = { event: { ...bonded, data: "0x" }, block: 60_000 };
  const isUnset = () => 0n;
  const none = { contractResult: isUnset, events: [] };
  test.each<[string, Parameters<typeof setup>[0], unknown]>([
    ["with flag and log", {}, { log }],
    ["missing", none, undefined],
    ["missing, with the log of another transfer", { ...none, events: [{ event: other, block: 60_000 }] }, undefined],
    ["by the log alone, when the contract was read a moment earlier", { contractResult: isUnset }, { log }],
    [
      "by the log alone, when the contract was read at an older block",
      { contractResult: isUnset, beforeResponse: onCalls(flushEventLoop) },
      { log },
    ],
    ["missing at once, while the log read hangs", { ...none, beforeResponse: onLogs(hang) }, undefined],
    ["in a part of the logs", { maxLogBlocks: 2_000 }, { log }],
    ["without a log while the log read hangs", { beforeResponse: onLogs(hang) }, { log: undefined }],
    ["without a log when the log read fails", { beforeResponse: onLogs(fail) }, { log: undefined }],
    ["without a log when that lacks the data of its event", { events: [withoutData] }, { log: undefined }],
    ["by the log alone when contract calls fail", { beforeResponse: onCalls(fail) }, { log }],
  ])("is found: %s", async (_, state, expected) => {
    expect(await setup(state).findAfterTimers()).toEqual(expected);
  });

  test("takes one round trip when the whole chain is searched at once", async () => {
    const { chain, findAfterTimers } = setup();
    await findAfterTimers();
    expect(chain.methods.sort()).toEqual(["eth_call", "eth_getLogs"]);
  });

  test.each<[string, Parameters<typeof setup>[0]]>([
    ["no log of the transfer", { events: [] }],
    ["a part of the logs", { events: [], maxLogBlocks: 2_000 }],
    ["a log read that hangs", { beforeResponse: (method) => (method === "eth_call" ? fail() : hang()) }],
    ["no logs", { beforeResponse: fail }],
  ])("is unavailable from a node without contract calls and with %s", async (_, state) => {
    const { find } = setup({ beforeResponse: onCalls(fail), ...state });
    const caller = new AbortController();
    const delivery = find(undefined, { signal: caller.signal });
    setTimeout(() => caller.abort(), 1_000);
    await vi.runAllTimersAsync();
    await expect(delivery).rejects.toMatchObject(unavailable);
  });

  test("aborts requests that it does not wait for", async () => {
    const { chain, findAfterTimers } = setup({ contractResult: isUnset, beforeResponse: onLogs(hang) });
    const getLogs = vi.spyOn(chain.client, "getLogs");
    expect(await findAfterTimers()).toBeUndefined();
    expect(getLogs.mock.calls.map(([, { aborted }]) => aborted)).toEqual([true]);
  });

  test("has no log, without a scan, when a complete history lacks it", async () => {
    const { chain, findAfterTimers } = setup({ events: [] });
    expect(await findAfterTimers()).toEqual({ log: undefined });
    expect(chain.searchedRanges).toHaveLength(1);
  });

  test("needs no scan when the newest logs contain it", async () => {
    const { chain, findAfterTimers } = setup({ maxLogBlocks: 2_000, events: [{ event: bonded, block: 99_000 }] });
    expect(await findAfterTimers()).toEqual({ log: toLog(bonded, 99_000) });
    expect(chain.searchedRanges).toHaveLength(1);
  });

  test("may be a withdrawal, but not by the bridge of another token", async () => {
    const withdrawal = withdrewEvent("a", { to: "arbitrum" });
    const events = [
      { event: withdrawalBondedEvent("a", { to: "arbitrum", token: "DAI" }), block: 60_000 },
      { event: other, block: 60_000 },
      { event: withdrawal, block: 61_000 },
    ];
    expect(await setup({ events }).findAfterTimers()).toEqual({ log: toLog(withdrawal, 61_000) });
  });

  test("reads the flag of its ID from the bridge of its token", async () => {
    const contractResult = vi.fn(isUnset);
    await setup({ contractResult, events: [] }).findAfterTimers();
    expect(contractResult.mock.calls).toEqual([[bonded.address, expect.stringContaining(hashFromName("a").slice(2))]]);
  });

  test("is unavailable for a transfer that is impossible by the address book", async () => {
    const { find, send } = setup();
    const message = expect.stringContaining("a route that does not exist");
    for (const sent of [send({ token: "SNX", destination: getChain("gnosis") }), cctp({ source: getChain("gnosis") })])
      await expect(find(sent)).rejects.toMatchObject({ ...unavailable, message });
  });
});

const cctp = (more: Partial<SentTransfer> = {}) =>
  createSentTransfer({ kind: "cctp", id: "77", token: "USDC", source: getChain("optimism"), ...more });

describe("over CCTP", () => {
  const fromOptimism = messageReceivedEvent(77n, { from: "optimism", to: "arbitrum" });
  const fromBase = messageReceivedEvent(77n, { from: "base", to: "arbitrum" });

  test.each([
    ["one page", Number.POSITIVE_INFINITY],
    ["pages", 3_000],
  ])("the message of its own source domain is the delivery, in %s", async (_, maxLogBlocks) => {
    const { chain, findAfterTimers } = setup({
      maxLogBlocks,
      contractResult: (_to, data) => (data === encodeUsedNoncesCall(2, 77n) ? 1n : 0n),
      events: [
        { event: fromBase, block: 60_000 },
        { event: messageReceivedEvent(78n, { from: "optimism", to: "arbitrum" }), block: 60_001 },
        { event: fromOptimism, block: 60_002 },
      ],
    });
    const delivery = await findAfterTimers(cctp({ timestamp: chain.timestampOf(50_000) }));
    expect(delivery).toEqual({ log: toLog(fromOptimism, 60_002) });
  });

  test("is no log without the data of its event", async () => {
    const events = [{ event: { ...fromOptimism, data: "0x" }, block: 60_000 }];
    expect(await setup({ events }).findAfterTimers(cctp())).toEqual({ log: undefined });
  });

  test("ignores a message of another domain with the same nonce", async () => {
    const events = [{ event: fromBase, block: 60_000 }];
    const { findAfterTimers } = setup({ beforeResponse: onCalls(fail), events });
    await expect(findAfterTimers(cctp())).rejects.toMatchObject(unavailable);
  });
});

describe("the wait for the delivering log", () => {
  test.each([
    [2_000, 10_000, 50],
    [500, 1_000, 50],
    [3_000, 7_000, 3_000],
  ])("takes at most %i ms of %i remaining ms after %i ms", async (timeoutMs, remainingMs, elapsedMs) => {
    const { chain, find } = setup({ maxLogBlocks: 2_000, beforeResponse: onLogs(hang) });
    const delivery = find(undefined, { remainingMs: () => remainingMs, elapsedMs: () => elapsedMs, sentAt: 0 });
    expect(await settleAfter(delivery, timeoutMs)).toEqual({ log: undefined });
    // The background scan ends by itself.
    chain.beforeResponse = fail;
    await vi.runAllTimersAsync();
  });

  test("spends half of its time on the newest logs, then scans from the time of sending", async () => {
    const { chain, find } = setup({ events: [{ event: bonded, block: 51_000 }] });
    let isFirst = true;
    chain.beforeResponse = onLogs(async () => {
      if (!isFirst) return;
      isFirst = false;
      await hang();
    });
    const delivery = find();
    await vi.advanceTimersByTimeAsync(999);
    expect(chain.searchedRanges).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(await delivery).toEqual({ log: toLog(bonded, 51_000) });
    expect(chain.searchedRanges[0]?.from).toBeGreaterThan(48_000);
    expect(chain.searchedRanges[0]?.from).toBeLessThanOrEqual(50_000);
  });

  test("lets the next lookup find the log that the background scan found", async () => {
    const { chain, find } = setup({ maxLogBlocks: 2_000, events: [{ event: bonded, block: 51_000 }] });
    const held = createDeferred<void>();
    let pages = 0;
    chain.beforeResponse = onLogs(async () => {
      pages += 1;
      if (pages > 1) await held.promise;
    });
    const first = find();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await first).toEqual({ log: undefined });
    held.resolve();
    await vi.runAllTimersAsync();
    const before = chain.searchedRanges.length;
    expect(await find()).toEqual({ log: toLog(bonded, 51_000) });
    // Only the newest page was read again.
    expect(chain.searchedRanges.length - before).toBe(1);
  });
});

// A source endpoint may lie about time and token, a destination endpoint about the log.
test.each(["arbitrum", "optimism"])("results of a custom endpoint of %s are private to its caller", async (slug) => {
  const { chain, findAfterTimers } = setup({ maxLogBlocks: 2_000, events: [{ event: bonded, block: 51_000 }] });
  const tooLate = { custom: [slug], sentAt: chain.timestampOf(90_000) };
  expect(await findAfterTimers(undefined, tooLate)).toEqual({ log: undefined });
  expect(await findAfterTimers()).toEqual({ log: toLog(bonded, 51_000) });
});

test("distinguishes transfers of two tokens with the same ID", async () => {
  const ofDai = withdrawalBondedEvent("a", { to: "arbitrum", token: "DAI", transaction: "of DAI" });
  const { chain, findAfterTimers, send } = setup({ maxLogBlocks: 2_000, events: [{ event: bonded, block: 51_000 }] });
  chain.events.push({ event: ofDai, block: 52_000 });
  expect(await findAfterTimers()).toEqual({ log: toLog(bonded, 51_000) });
  expect(await findAfterTimers(send({ token: "DAI" }))).toEqual({ log: toLog(ofDai, 52_000) });
});
