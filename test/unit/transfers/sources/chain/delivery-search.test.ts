import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createBlockFinder } from "../../../../../src/chain/read/block-finder.js";
import { createContractRegistry } from "../../../../../src/hop/contract-registry.js";
import { encodeUsedNoncesCall } from "../../../../../src/hop/transfer-events.js";
import { findDelivery } from "../../../../../src/transfers/sources/chain/delivery-search.js";
import { createResumableLogScanner } from "../../../../../src/transfers/sources/chain/resumable-log-scanner.js";
import type { SentTransfer } from "../../../../../src/transfers/transfer.js";
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
  mainnetNetwork,
  messageReceivedEvent,
  withdrawalBondedEvent,
  withdrewEvent,
} from "../../index/support/hop-events.js";

const book = createContractRegistry(mainnetNetwork);
const bonded = withdrawalBondedEvent("a", { to: "arbitrum" });
const isDown = { reason: "UPSTREAM_UNAVAILABLE" };

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
});
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

function setup({ most = Number.POSITIVE_INFINITY } = {}) {
  const chain = createTransferChainStub("arbitrum", { most });
  const closing = new AbortController();
  const memory = {
    blockTimes: createBlockFinder({ now: () => 0 }),
    logScanner: createResumableLogScanner(closing.signal),
  };
  const send = (more: Partial<SentTransfer> = {}) =>
    createSentTransfer({ id: hashFromName("a"), timestamp: chain.timestampOf(50_000), ...more });
  /** Whether and how a transfer arrived, once the time is over. */
  async function arrival(
    sent = send(),
    { custom = [] as string[], leftMs = 10_000, sentAt = Promise.resolve(sent.timestamp) } = {},
  ) {
    const context = createLookupContext({ chains: createChainAccess([chain], custom), remainingMs: () => leftMs });
    const found = findDelivery(sent, sentAt, book, memory, context);
    found.catch(() => {});
    await vi.runAllTimersAsync();
    closing.abort();
    return found;
  }
  return { chain, arrival, send, memory };
}

/** Until it is waited for no more. */
const hangs = (): Promise<void> => createDeferred<void>().promise;
const fails = (): never => {
  throw unavailableError("arbitrum");
};
const onLogs =
  (does: () => Promise<void>): TransferChainStub["beforeResponse"] =>
  (method) =>
    method === "eth_getLogs" ? does() : undefined;
const onCalls =
  (does: () => Promise<void>): TransferChainStub["beforeResponse"] =>
  (method) =>
    method === "eth_call" ? does() : undefined;

describe("whether a transfer has arrived, and by which log", () => {
  const log = toLog(bonded, 60_000);
  const other = withdrawalBondedEvent("b", { to: "arbitrum" });
  test.each<
    [string, Partial<Pick<TransferChainStub, "contractResult" | "beforeResponse" | "maxLogBlocks" | "events">>, unknown]
  >([
    ["yes", {}, { log }],
    ["no", { contractResult: () => 0n, events: [] }, undefined],
    ["no, with another's log", { contractResult: () => 0n, events: [{ event: other, block: 60_000 }] }, undefined],
    ["yes by the log alone, where the contract was asked a moment before", { contractResult: () => 0n }, { log }],
    [
      "yes by the log alone, where the contract was asked of an older block",
      { contractResult: () => 0n, beforeResponse: onCalls(flushEventLoop) },
      { log },
    ],
    ["no, at once, with logs that hang", { contractResult: () => 0n, beforeResponse: onLogs(hangs) }, undefined],
    ["yes, in a part of the logs", { maxLogBlocks: 2_000 }, { log }],
    ["yes, with logs that hang", { beforeResponse: onLogs(hangs) }, { log: undefined }],
    ["yes, with logs that cannot be had", { beforeResponse: onLogs(fails) }, { log: undefined }],
    ["yes by the log alone, where contracts cannot be run", { beforeResponse: onCalls(fails) }, { log }],
  ])("%s", async (_, state, expected) => {
    const { chain, arrival } = setup();
    Object.assign(chain, { contractResult: () => 1n, events: [{ event: bonded, block: 60_000 }], ...state });
    expect(await arrival()).toEqual(expected);
  });

  test("in one round trip where all logs are searched at once", async () => {
    const { chain, arrival } = setup();
    Object.assign(chain, { contractResult: () => 1n, events: [{ event: bonded, block: 60_000 }] });
    await arrival();
    expect(chain.methods.sort()).toEqual(["eth_call", "eth_getLogs"]);
  });

  test.each<[string, object]>([
    ["no log of it", { events: [] }],
    ["a part of its logs", { events: [], maxLogBlocks: 2_000 }],
    ["logs that hang", { beforeResponse: (method: string) => (method === "eth_call" ? fails() : hangs()) }],
    ["no logs", { beforeResponse: fails }],
  ])("cannot be told by a node that runs no contracts and has %s", async (_, state) => {
    const { chain, send, memory } = setup();
    Object.assign(chain, { beforeResponse: onCalls(fails), ...state });
    const caller = new AbortController();
    const context = createLookupContext({ chains: createChainAccess([chain]), signal: caller.signal });
    const found = findDelivery(send(), Promise.resolve(0), book, memory, context);
    const outcome = expect(found).rejects.toMatchObject(isDown);
    setTimeout(() => caller.abort(), 1_000);
    await vi.runAllTimersAsync();
    await outcome;
  });

  test("breaks off what is not waited for", async () => {
    const { chain, arrival } = setup();
    const { getLogs } = chain.client;
    const signals: AbortSignal[] = [];
    chain.client.getLogs = (filter, range, newestFirst, signal) => {
      signals.push(signal);
      return getLogs(filter, range, newestFirst, signal);
    };
    chain.beforeResponse = onLogs(hangs);
    expect(await arrival()).toBeUndefined();
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  });

  test("is said by a log that is not there yet to be unknown, without a search for it", async () => {
    const { chain, arrival } = setup();
    chain.contractResult = () => 1n;
    expect(await arrival()).toEqual({ log: undefined });
    expect(chain.searchedRanges).toHaveLength(1);
  });

  test("by withdrawal as well, and by no other token's bridge", async () => {
    const { chain, arrival } = setup();
    const withdrawal = withdrewEvent("a", { to: "arbitrum" });
    chain.contractResult = () => 1n;
    chain.events = [
      { event: withdrawalBondedEvent("a", { to: "arbitrum", token: "DAI" }), block: 60_000 },
      { event: withdrawalBondedEvent("b", { to: "arbitrum" }), block: 60_000 },
      { event: withdrawal, block: 61_000 },
    ];
    expect(await arrival()).toEqual({ log: toLog(withdrawal, 61_000) });
  });

  test("asks the bridge of its token for its id", async () => {
    const { chain, arrival } = setup();
    const calls: string[][] = [];
    chain.contractResult = (to, data) => {
      calls.push([to, data]);
      return 0n;
    };
    await arrival();
    expect(calls).toEqual([[bonded.address, expect.stringContaining(hashFromName("a").slice(2))]]);
  });

  test("cannot be told of a transfer that the address book makes impossible", async () => {
    const { send } = setup();
    for (const sent of [
      send({ token: "SNX", destination: getChain("gnosis") }),
      cctp({ source: getChain("gnosis") }),
    ]) {
      const context = createLookupContext();
      const memory = setup().memory;
      await expect(findDelivery(sent, Promise.resolve(0), book, memory, context)).rejects.toMatchObject({
        ...isDown,
        message: expect.stringContaining("a route that does not exist"),
      });
    }
  });
});

const cctp = (more: Partial<SentTransfer> = {}) =>
  createSentTransfer({ kind: "cctp", id: "77", token: "USDC", source: getChain("optimism"), ...more });

describe("by CCTP", () => {
  const own = messageReceivedEvent(77n, { from: "optimism", to: "arbitrum" });
  const fromBase = messageReceivedEvent(77n, { from: "base", to: "arbitrum" });

  test.each([
    ["one page", Number.POSITIVE_INFINITY],
    ["pages", 3_000],
  ])("the message of its own source tells, in %s", async (_, most) => {
    const { chain, arrival } = setup({ most });
    chain.contractResult = (_to, data) => (data === encodeUsedNoncesCall(2, 77n) ? 1n : 0n);
    chain.events = [
      { event: fromBase, block: 60_000 },
      { event: messageReceivedEvent(78n, { from: "optimism", to: "arbitrum" }), block: 60_001 },
      { event: own, block: 60_002 },
    ];
    expect(await arrival(cctp({ timestamp: chain.timestampOf(50_000) }))).toEqual({ log: toLog(own, 60_002) });
  });

  test("another domain's message with the same nonce is none", async () => {
    const { chain, arrival } = setup();
    chain.beforeResponse = onCalls(fails);
    chain.events = [{ event: fromBase, block: 60_000 }];
    await expect(arrival(cctp())).rejects.toMatchObject(isDown);
  });
});

describe("the log that delivered it is waited for", () => {
  test.each([
    [2_000, 10_000],
    [500, 1_000],
  ])("for %i ms at most where %i ms are left", async (patience, leftMs) => {
    const { chain, send, memory } = setup({ most: 2_000 });
    chain.contractResult = () => 1n;
    chain.beforeResponse = onLogs(hangs);
    const context = createLookupContext({ chains: createChainAccess([chain]), remainingMs: () => leftMs });
    let isOver = false;
    const found = findDelivery(send(), Promise.resolve(0), book, memory, context).finally(() => {
      isOver = true;
    });
    await vi.advanceTimersByTimeAsync(patience - 1);
    expect(isOver).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(await found).toEqual({ log: undefined });
    // The search that goes on ends by itself.
    chain.beforeResponse = fails;
    await vi.runAllTimersAsync();
  });

  test("half of that time in the newest logs, then from its sending on", async () => {
    const { chain, send, memory } = setup();
    chain.contractResult = () => 1n;
    chain.events = [{ event: bonded, block: 51_000 }];
    let isFirst = true;
    chain.beforeResponse = onLogs(async () => {
      if (!isFirst) return;
      isFirst = false;
      await hangs();
    });
    const found = findDelivery(
      send(),
      Promise.resolve(chain.timestampOf(50_000)),
      book,
      memory,
      createLookupContext({ chains: createChainAccess([chain]) }),
    );
    await vi.advanceTimersByTimeAsync(999);
    expect(chain.searchedRanges).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(await found).toEqual({ log: toLog(bonded, 51_000) });
    expect(chain.searchedRanges[0]?.from).toBeGreaterThan(48_000);
    expect(chain.searchedRanges[0]?.from).toBeLessThanOrEqual(50_000);
  });

  test("and is found by the next who asks, when the answer was out before", async () => {
    const { chain, send, memory } = setup({ most: 2_000 });
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
    const first = findDelivery(send(), sentAt, book, memory, context);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await first).toEqual({ log: undefined });
    held.resolve();
    await vi.runAllTimersAsync();
    const before = chain.searchedRanges.length;
    expect(await findDelivery(send(), sentAt, book, memory, context)).toEqual({ log: toLog(bonded, 51_000) });
    // Only the newest page was read once more.
    expect(chain.searchedRanges.length - before).toBe(1);
  });
});

describe("what a caller's own endpoint says is for this caller alone", () => {
  // One that is asked for the sending may lie about its time or token, one that is asked for the arrival about its log.
  test.each(["arbitrum", "optimism"])("when it is that of %s", async (slug) => {
    const { chain, arrival, send, memory } = setup({ most: 2_000 });
    chain.contractResult = () => 1n;
    chain.events = [{ event: bonded, block: 51_000 }];
    const tooLate = Promise.resolve(chain.timestampOf(90_000));
    const lied = { chains: createChainAccess([chain], [slug]) };
    const first = findDelivery(send(), tooLate, book, memory, createLookupContext(lied));
    await vi.runAllTimersAsync();
    expect(await first).toEqual({ log: undefined });
    expect(await arrival()).toEqual({ log: toLog(bonded, 51_000) });
  });
});

test("two tokens' transfers with one id are not taken for each other", async () => {
  const { chain, send, memory } = setup({ most: 2_000 });
  const ofDai = withdrawalBondedEvent("a", { to: "arbitrum", token: "DAI", transaction: "of DAI" });
  chain.contractResult = () => 1n;
  chain.events = [
    { event: bonded, block: 51_000 },
    { event: ofDai, block: 52_000 },
  ];
  const context = createLookupContext({ chains: createChainAccess([chain]) });
  const find = async (sent: SentTransfer) => {
    const found = findDelivery(sent, Promise.resolve(sent.timestamp), book, memory, context);
    await vi.runAllTimersAsync();
    return found;
  };
  expect(await find(send())).toEqual({ log: toLog(bonded, 51_000) });
  expect(await find(send({ token: "DAI" }))).toEqual({ log: toLog(ofDai, 52_000) });
});
