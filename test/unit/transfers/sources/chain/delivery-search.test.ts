import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { encodeUsedNoncesCall } from "../../../../../src/hop/transfer-events.js";
import { findDelivery } from "../../../../../src/transfers/sources/chain/delivery-search.js";
import type { SentTransfer } from "../../../../../src/transfers/status.js";
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

function setup({ maxLogBlocks = Number.POSITIVE_INFINITY } = {}) {
  const chain = createTransferChainStub("arbitrum", { maxLogBlocks });
  const closing = new AbortController();
  const { toSearch } = createSearch(closing.signal);
  const send = (more: Partial<SentTransfer> = {}) =>
    createSentTransfer({ id: hashFromName("a"), timestamp: chain.timestampOf(50_000), ...more });
  /** Finds the delivery of a transfer and runs all timers. */
  async function findDeliveryOf(
    sent = send(),
    { custom = [] as string[], remainingMs = 10_000, sentAt = Promise.resolve(sent.timestamp) } = {},
  ) {
    const context = createLookupContext({ chains: createChainAccess([chain], custom), remainingMs: () => remainingMs });
    const delivery = findDelivery(sent, sentAt, toSearch(context));
    delivery.catch(() => {});
    await vi.runAllTimersAsync();
    closing.abort();
    return delivery;
  }
  return { chain, findDeliveryOf, send, toSearch };
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
  test.each<
    [string, Partial<Pick<TransferChainStub, "contractResult" | "beforeResponse" | "maxLogBlocks" | "events">>, unknown]
  >([
    ["with flag and log", {}, { log }],
    ["missing", { contractResult: () => 0n, events: [] }, undefined],
    [
      "missing, with the log of another transfer",
      { contractResult: () => 0n, events: [{ event: other, block: 60_000 }] },
      undefined,
    ],
    ["by the log alone, when the contract was read a moment earlier", { contractResult: () => 0n }, { log }],
    [
      "by the log alone, when the contract was read at an older block",
      { contractResult: () => 0n, beforeResponse: onCalls(flushEventLoop) },
      { log },
    ],
    [
      "missing at once, while the log read hangs",
      { contractResult: () => 0n, beforeResponse: onLogs(hang) },
      undefined,
    ],
    ["in a part of the logs", { maxLogBlocks: 2_000 }, { log }],
    ["without a log while the log read hangs", { beforeResponse: onLogs(hang) }, { log: undefined }],
    ["without a log when the log read fails", { beforeResponse: onLogs(fail) }, { log: undefined }],
    ["by the log alone when contract calls fail", { beforeResponse: onCalls(fail) }, { log }],
  ])("is found: %s", async (_, state, expected) => {
    const { chain, findDeliveryOf } = setup();
    Object.assign(chain, { contractResult: () => 1n, events: [{ event: bonded, block: 60_000 }], ...state });
    expect(await findDeliveryOf()).toEqual(expected);
  });

  test("takes one round trip when the whole chain is searched at once", async () => {
    const { chain, findDeliveryOf } = setup();
    Object.assign(chain, { contractResult: () => 1n, events: [{ event: bonded, block: 60_000 }] });
    await findDeliveryOf();
    expect(chain.methods.sort()).toEqual(["eth_call", "eth_getLogs"]);
  });

  test.each<[string, object]>([
    ["no log of the transfer", { events: [] }],
    ["a part of the logs", { events: [], maxLogBlocks: 2_000 }],
    ["a log read that hangs", { beforeResponse: (method: string) => (method === "eth_call" ? fail() : hang()) }],
    ["no logs", { beforeResponse: fail }],
  ])("is unavailable from a node without contract calls and with %s", async (_, state) => {
    const { chain, send, toSearch } = setup();
    Object.assign(chain, { beforeResponse: onCalls(fail), ...state });
    const caller = new AbortController();
    const context = createLookupContext({ chains: createChainAccess([chain]), signal: caller.signal });
    const delivery = findDelivery(send(), Promise.resolve(0), toSearch(context));
    const assertion = expect(delivery).rejects.toMatchObject(unavailable);
    setTimeout(() => caller.abort(), 1_000);
    await vi.runAllTimersAsync();
    await assertion;
  });

  test("aborts requests that it does not wait for", async () => {
    const { chain, findDeliveryOf } = setup();
    const { getLogs } = chain.client;
    const signals: AbortSignal[] = [];
    chain.client.getLogs = (search, signal) => {
      signals.push(signal);
      return getLogs(search, signal);
    };
    chain.beforeResponse = onLogs(hang);
    expect(await findDeliveryOf()).toBeUndefined();
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  });

  test("has no log, without a scan, when a complete history lacks it", async () => {
    const { chain, findDeliveryOf } = setup();
    chain.contractResult = () => 1n;
    expect(await findDeliveryOf()).toEqual({ log: undefined });
    expect(chain.searchedRanges).toHaveLength(1);
  });

  test("needs no scan when the newest logs contain it", async () => {
    const { chain, findDeliveryOf } = setup({ maxLogBlocks: 2_000 });
    Object.assign(chain, { contractResult: () => 1n, events: [{ event: bonded, block: 99_000 }] });
    expect(await findDeliveryOf()).toEqual({ log: toLog(bonded, 99_000) });
    expect(chain.searchedRanges).toHaveLength(1);
  });

  test("is no log without the data of its event", async () => {
    const { chain, findDeliveryOf } = setup();
    Object.assign(chain, { contractResult: () => 1n, events: [{ event: { ...bonded, data: "0x" }, block: 60_000 }] });
    expect(await findDeliveryOf()).toEqual({ log: undefined });
  });

  test("may be a withdrawal, but not by the bridge of another token", async () => {
    const { chain, findDeliveryOf } = setup();
    const withdrawal = withdrewEvent("a", { to: "arbitrum" });
    chain.contractResult = () => 1n;
    chain.events = [
      { event: withdrawalBondedEvent("a", { to: "arbitrum", token: "DAI" }), block: 60_000 },
      { event: withdrawalBondedEvent("b", { to: "arbitrum" }), block: 60_000 },
      { event: withdrawal, block: 61_000 },
    ];
    expect(await findDeliveryOf()).toEqual({ log: toLog(withdrawal, 61_000) });
  });

  test("reads the flag of its ID from the bridge of its token", async () => {
    const { chain, findDeliveryOf } = setup();
    const calls: string[][] = [];
    chain.contractResult = (to, data) => {
      calls.push([to, data]);
      return 0n;
    };
    await findDeliveryOf();
    expect(calls).toEqual([[bonded.address, expect.stringContaining(hashFromName("a").slice(2))]]);
  });

  test("is unavailable for a transfer that is impossible by the address book", async () => {
    const { send } = setup();
    for (const sent of [
      send({ token: "SNX", destination: getChain("gnosis") }),
      cctp({ source: getChain("gnosis") }),
    ]) {
      const context = createLookupContext();
      const { toSearch } = setup();
      await expect(findDelivery(sent, Promise.resolve(0), toSearch(context))).rejects.toMatchObject({
        ...unavailable,
        message: expect.stringContaining("a route that does not exist"),
      });
    }
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
    const { chain, findDeliveryOf } = setup({ maxLogBlocks });
    chain.contractResult = (_to, data) => (data === encodeUsedNoncesCall(2, 77n) ? 1n : 0n);
    chain.events = [
      { event: fromBase, block: 60_000 },
      { event: messageReceivedEvent(78n, { from: "optimism", to: "arbitrum" }), block: 60_001 },
      { event: fromOptimism, block: 60_002 },
    ];
    expect(await findDeliveryOf(cctp({ timestamp: chain.timestampOf(50_000) }))).toEqual({
      log: toLog(fromOptimism, 60_002),
    });
  });

  test("is no log without the data of its event", async () => {
    const { chain, findDeliveryOf } = setup();
    Object.assign(chain, {
      contractResult: () => 1n,
      events: [{ event: { ...fromOptimism, data: "0x" }, block: 60_000 }],
    });
    expect(await findDeliveryOf(cctp())).toEqual({ log: undefined });
  });

  test("ignores a message of another domain with the same nonce", async () => {
    const { chain, findDeliveryOf } = setup();
    chain.beforeResponse = onCalls(fail);
    chain.events = [{ event: fromBase, block: 60_000 }];
    await expect(findDeliveryOf(cctp())).rejects.toMatchObject(unavailable);
  });
});

describe("the wait for the delivering log", () => {
  test.each([
    [2_000, 10_000, 50],
    [500, 1_000, 50],
    [3_000, 7_000, 3_000],
  ])("takes at most %i ms of %i remaining ms after %i ms", async (timeoutMs, remainingMs, elapsedMs) => {
    const { chain, send, toSearch } = setup({ maxLogBlocks: 2_000 });
    chain.contractResult = () => 1n;
    chain.beforeResponse = onLogs(hang);
    const context = createLookupContext({
      chains: createChainAccess([chain]),
      remainingMs: () => remainingMs,
      elapsedMs: () => elapsedMs,
    });
    let isSettled = false;
    const delivery = findDelivery(send(), Promise.resolve(0), toSearch(context)).finally(() => {
      isSettled = true;
    });
    await vi.advanceTimersByTimeAsync(timeoutMs - 1);
    expect(isSettled).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(await delivery).toEqual({ log: undefined });
    // The background scan ends by itself.
    chain.beforeResponse = fail;
    await vi.runAllTimersAsync();
  });

  test("spends half of its time on the newest logs, then scans from the time of sending", async () => {
    const { chain, send, toSearch } = setup();
    chain.contractResult = () => 1n;
    chain.events = [{ event: bonded, block: 51_000 }];
    let isFirst = true;
    chain.beforeResponse = onLogs(async () => {
      if (!isFirst) return;
      isFirst = false;
      await hang();
    });
    const delivery = findDelivery(
      send(),
      Promise.resolve(chain.timestampOf(50_000)),
      toSearch(createLookupContext({ chains: createChainAccess([chain]) })),
    );
    await vi.advanceTimersByTimeAsync(999);
    expect(chain.searchedRanges).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(await delivery).toEqual({ log: toLog(bonded, 51_000) });
    expect(chain.searchedRanges[0]?.from).toBeGreaterThan(48_000);
    expect(chain.searchedRanges[0]?.from).toBeLessThanOrEqual(50_000);
  });

  test("lets the next lookup find the log that the background scan found", async () => {
    const { chain, send, toSearch } = setup({ maxLogBlocks: 2_000 });
    const context = createLookupContext({ chains: createChainAccess([chain]) });
    const sentAt = Promise.resolve(chain.timestampOf(50_000));
    chain.contractResult = () => 1n;
    chain.events = [{ event: bonded, block: 51_000 }];
    const held = createDeferred<void>();
    let pages = 0;
    chain.beforeResponse = onLogs(async () => {
      pages += 1;
      if (pages > 1) await held.promise;
    });
    const first = findDelivery(send(), sentAt, toSearch(context));
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await first).toEqual({ log: undefined });
    held.resolve();
    await vi.runAllTimersAsync();
    const before = chain.searchedRanges.length;
    expect(await findDelivery(send(), sentAt, toSearch(context))).toEqual({ log: toLog(bonded, 51_000) });
    // Only the newest page was read again.
    expect(chain.searchedRanges.length - before).toBe(1);
  });
});

describe("results of a custom endpoint are private to its caller", () => {
  // A source endpoint may lie about time and token, a destination endpoint about the log.
  test.each(["arbitrum", "optimism"])("on %s", async (slug) => {
    const { chain, findDeliveryOf, send, toSearch } = setup({ maxLogBlocks: 2_000 });
    chain.contractResult = () => 1n;
    chain.events = [{ event: bonded, block: 51_000 }];
    const tooLate = Promise.resolve(chain.timestampOf(90_000));
    const customContext = { chains: createChainAccess([chain], [slug]) };
    const first = findDelivery(send(), tooLate, toSearch(createLookupContext(customContext)));
    await vi.runAllTimersAsync();
    expect(await first).toEqual({ log: undefined });
    expect(await findDeliveryOf()).toEqual({ log: toLog(bonded, 51_000) });
  });
});

test("distinguishes transfers of two tokens with the same ID", async () => {
  const { chain, send, toSearch } = setup({ maxLogBlocks: 2_000 });
  const ofDai = withdrawalBondedEvent("a", { to: "arbitrum", token: "DAI", transaction: "of DAI" });
  chain.contractResult = () => 1n;
  chain.events = [
    { event: bonded, block: 51_000 },
    { event: ofDai, block: 52_000 },
  ];
  const context = createLookupContext({ chains: createChainAccess([chain]) });
  const find = async (sent: SentTransfer) => {
    const delivery = findDelivery(sent, Promise.resolve(sent.timestamp), toSearch(context));
    await vi.runAllTimersAsync();
    return delivery;
  };
  expect(await find(send())).toEqual({ log: toLog(bonded, 51_000) });
  expect(await find(send({ token: "DAI" }))).toEqual({ log: toLog(ofDai, 52_000) });
});
