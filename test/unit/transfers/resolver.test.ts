import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ServiceError } from "../../../src/errors.js";
import { createTransferResolver } from "../../../src/transfers/resolver.js";
import type { ChainSource } from "../../../src/transfers/sources/chain/chain-source.js";
import type { IndexSource } from "../../../src/transfers/sources/index-source.js";
import type { LookupResult, TransferQuery, TransferSource } from "../../../src/transfers/sources/transfer-source.js";
import type { TransferStatus } from "../../../src/transfers/status.js";
import {
  createLookupContext,
  createSentTransfer,
  createStatus,
  repeatedByteHash,
  unavailableError,
} from "../../support/stubs/transfer-fixtures.js";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** What somebody who is asked does; a number is how many milliseconds it takes to find the transfer. */
type Word = "found" | "none" | "down" | "refuses" | "hangs" | number;

const words = ["found", "none", "down", "refuses", "hangs"] as const;
const refusal = new ServiceError("INVALID_PARAMETER", "two transfers have this nonce");

const onChain = createStatus({ source: "chain" });
const onExplorer = createStatus({ source: "explorer", isFinal: false, priceUsd: 1_234 });
const priced = { ...onChain, priceUsd: 1_234 };

async function say(who: string, word: Word, found: TransferStatus, signal: AbortSignal): Promise<LookupResult> {
  signal.throwIfAborted();
  if (word === "found") return found;
  if (word === "none") return undefined;
  if (word === "down") throw unavailableError(who);
  if (word === "refuses") throw refusal;
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(unavailableError(who)));
    if (typeof word === "number") setTimeout(() => resolve(found), word);
  });
}

interface Setup {
  readonly chain?: Word;
  /** Where that differs when it is asked by hash. */
  readonly chainByHash?: Word;
  readonly foundByHash?: TransferStatus;
  readonly explorer?: Word;
  readonly isSentKnown?: boolean;
  readonly explored?: TransferStatus;
}

function setup({
  chain = "found",
  chainByHash = chain,
  foundByHash = onChain,
  explorer,
  isSentKnown = false,
  explored = onExplorer,
}: Setup) {
  const asked: unknown[][] = [];
  const signals: AbortSignal[] = [];
  const ask = (who: string, what: unknown[], word: Word, found: TransferStatus, signal: AbortSignal) => {
    asked.push([who, ...what]);
    signals.push(signal);
    return say(who, word, found, signal);
  };
  const chainSource: ChainSource = {
    name: "chain",
    findByTransactionHash: (hash, id, { signal }) => ask("chain", ["hash", hash, id], chainByHash, foundByHash, signal),
    findByTransferId: (id, { signal }) => ask("chain", ["id", id], chain, onChain, signal),
    resolveStatus: async (sent, others, { signal }) => {
      const found = await ask("chain", ["follow", sent.id, ...others], chain, onChain, signal);
      if (found === undefined) throw new Error("what is followed is there");
      return found;
    },
  };
  const index: IndexSource = {
    name: "index",
    findByTransactionHash: () => undefined,
    findByTransferId: () => undefined,
    findFinalizedSend: () =>
      isSentKnown ? { transfer: createSentTransfer(), otherTransferIds: [repeatedByteHash("05")] } : undefined,
    getLastSearchedBlock: () => undefined,
  };
  const explorerSource: TransferSource = {
    name: "explorer",
    findByTransactionHash: (hash, id, { signal }) =>
      ask("explorer", ["hash", hash, id], explorer ?? "none", explored, signal),
    findByTransferId: (id, { signal }) => ask("explorer", ["id", id], explorer ?? "none", explored, signal),
  };
  const lookUp = createTransferResolver({
    chain: chainSource,
    index: isSentKnown ? index : undefined,
    explorer: explorer === undefined ? undefined : explorerSource,
  });
  const caller = new AbortController();
  return {
    asked,
    signals,
    caller,
    async find(query: Partial<TransferQuery>, leftMs = 10_000) {
      const context = createLookupContext({ remainingMs: () => leftMs, signal: caller.signal });
      const found = lookUp.resolve({ transferId: undefined, transactionHash: undefined, ...query }, context);
      found.catch(() => {});
      return found;
    },
  };
}

const byHash = { transactionHash: repeatedByteHash("2b") };
const byId = { transferId: repeatedByteHash("1a") };
const ways = [
  ["hash", byHash, false],
  ["id", byId, false],
  ["both", { ...byHash, ...byId }, false],
  ["hash, sent for sure", byHash, true],
  ["id, sent for sure", byId, true],
] as const;

/** What an answer comes to: who says it, that there is none, or why it cannot be said. */
async function outcome(found: Promise<LookupResult>): Promise<string> {
  return found.then(
    (status) => status?.source ?? "none",
    (error: unknown) => (error instanceof ServiceError ? error.reason : String(error)),
  );
}

/** By the chain's word, then the explorer's. */
const expected: Readonly<Record<(typeof words)[number], (explorer: Word | undefined) => string>> = {
  found: () => "chain",
  none: () => "none",
  refuses: () => "INVALID_PARAMETER",
  down: (explorer) => (explorer === "found" ? "explorer" : "UPSTREAM_UNAVAILABLE"),
  hangs: (explorer) => (explorer === "found" ? "explorer" : "UPSTREAM_UNAVAILABLE"),
};

describe.each(ways)("by %s", (_, query, isSentKnown) => {
  const table = words
    .filter((chain) => !(isSentKnown && chain === "none"))
    .flatMap((chain) => [...words, undefined].map((explorer) => [chain, explorer] as const));
  test.each(table)("the chain: %s, the explorer: %s", async (chain, explorer) => {
    const { find, signals, caller } = setup({ chain, isSentKnown, ...(explorer && { explorer }) });
    const found = outcome(find(query));
    await vi.advanceTimersByTimeAsync(9_000);
    // Who hangs beyond the time of the chains is given up with the call itself.
    caller.abort();
    expect(await found).toBe(expected[chain](explorer));
    expect(signals.every(({ aborted }) => aborted)).toBe(true);
  });
});

describe("a look-up", () => {
  test.each(ways)("by %s leaves no timer behind", async (_, query, isSentKnown) => {
    const { find } = setup({ explorer: "found", isSentKnown });
    await find(query);
    expect(vi.getTimerCount()).toBe(0);
  });

  test.each(ways)("by %s does not wait for the explorer when the chain has answered", async (_, query, isSentKnown) => {
    const { find, signals } = setup({ explorer: "hangs", isSentKnown });
    expect(await find(query)).toEqual(onChain);
    expect(signals.every(({ aborted }) => aborted)).toBe(true);
  });

  test("asks chain and explorer together, each by what the caller gave", async () => {
    for (const query of [byHash, { ...byHash, ...byId }]) {
      const { find, asked } = setup({ chain: "hangs", explorer: "hangs" });
      void find(query);
      const hash = ["hash", query.transactionHash, "transferId" in query ? query.transferId : undefined];
      expect(asked.sort()).toEqual([
        ["chain", ...hash],
        ["explorer", ...hash],
      ]);
    }
  });

  test("follows what was sent for sure on its destination alone", async () => {
    const { find, asked } = setup({ isSentKnown: true });
    expect(await find(byId)).toEqual(onChain);
    expect(asked).toEqual([["chain", "follow", repeatedByteHash("1a"), repeatedByteHash("05")]]);
  });

  test("waits for the explorer when the chains are down", async () => {
    const { find } = setup({ chain: "down", explorer: 2_500 });
    const found = find(byHash);
    await vi.advanceTimersByTimeAsync(2_500);
    expect(await found).toEqual(onExplorer);
  });

  test.each([
    [10_000, 9_000],
    [1_000, 800],
  ])("of %i ms gives the chains %i ms, and then says what the explorer said", async (leftMs, chainMs) => {
    for (const query of [byHash, byId]) {
      const { find } = setup({ chain: "hangs", explorer: "found" });
      let isOver = false;
      const found = find(query, leftMs).finally(() => {
        isOver = true;
      });
      await vi.advanceTimersByTimeAsync(chainMs - 1);
      expect(isOver).toBe(false);
      await vi.advanceTimersByTimeAsync(1);
      expect(isOver).toBe(true);
      expect(await found).toEqual(onExplorer);
    }
  });

  test("says who did not answer a little before the time is over", async () => {
    const { find } = setup({ chain: "down", explorer: "hangs" });
    let isOver = false;
    const over = find(byHash, 1_000).catch((error: unknown) => {
      isOver = true;
      return error;
    });
    await vi.advanceTimersByTimeAsync(949);
    expect(isOver).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(isOver).toBe(true);
    expect(await over).toMatchObject({ message: "chain is down" });
  });

  test("ends when the caller leaves", async () => {
    const { find, caller, signals } = setup({ chain: "hangs", explorer: "hangs" });
    const found = find(byId);
    caller.abort();
    await expect(found).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE" });
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  });

  test("fails with the chain's word, not with the explorer's", async () => {
    await expect(setup({ chain: "down", explorer: "down" }).find(byHash)).rejects.toThrow("chain is down");
  });
});

describe("by an id alone", () => {
  test.each<[Word, Word]>([
    ["hangs", "found"],
    ["down", "found"],
    [5_000, "found"],
  ])("the transaction that the explorer names is looked at: search %s, transaction %s", async (chain, chainByHash) => {
    const { find, asked, signals } = setup({ chain, chainByHash, explorer: "found" });
    expect(await find(byId)).toEqual(priced);
    expect(asked).toContainEqual(["chain", "hash", onExplorer.sent.transactionHash, byId.transferId]);
    expect(signals.every(({ aborted }) => aborted)).toBe(true);
  });

  test.each<Word>(["none", "down", "refuses", "hangs"])(
    "the search goes on when that transaction is no answer: %s",
    async (chainByHash) => {
      const { find } = setup({ chain: 3_000, chainByHash, explorer: "found" });
      const found = find(byId);
      await vi.advanceTimersByTimeAsync(3_000);
      expect(await found).toEqual(priced);
    },
  );

  test("the search need not wait for an explorer that is slow", async () => {
    const { find } = setup({ chain: 100, chainByHash: "hangs", explorer: 2_000 });
    const found = find(byId);
    await vi.advanceTimersByTimeAsync(100);
    expect(await found).toEqual(onChain);
  });

  // Asked for that hash the chains tell of what it delivered, and of others beside.
  test("the search goes on when that transaction is the one that delivered it", async () => {
    const explored = createStatus({ ...onExplorer, sent: { transactionHash: repeatedByteHash("3c") } });
    const foundByHash = createStatus({ otherTransferIds: [repeatedByteHash("05")] });
    const { find, asked } = setup({ chain: 3_000, chainByHash: "found", foundByHash, explorer: "found", explored });
    const found = find(byId);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(asked).toContainEqual(["chain", "hash", repeatedByteHash("3c"), byId.transferId]);
    expect(await found).toEqual(priced);
  });

  // The explorer knows of one, the chains of several.
  test("a CCTP nonce that the chains refuse is refused, whatever the explorer names", async () => {
    const { find } = setup({ chain: "refuses", chainByHash: "found", explorer: "found" });
    await expect(find({ transferId: "77" })).rejects.toBe(refusal);
  });

  test("a CCTP nonce is not looked for where the explorer says, while the chains take their time", async () => {
    const foundByHash = createStatus({ otherTransferIds: [repeatedByteHash("05")] });
    const { find, asked } = setup({ chain: 3_000, chainByHash: "found", foundByHash, explorer: "found" });
    const found = find({ transferId: "77" });
    await vi.advanceTimersByTimeAsync(3_000);
    expect(await found).toEqual(priced);
    expect(asked.sort()).toEqual([
      ["chain", "id", "77"],
      ["explorer", "id", "77"],
    ]);
  });

  test("a search that fails waits for what the explorer names", async () => {
    const { find } = setup({ chain: "down", chainByHash: 500, explorer: 2_000 });
    const found = find(byId);
    await vi.advanceTimersByTimeAsync(2_500);
    expect(await found).toEqual(priced);
  });
});

describe("the price of the time", () => {
  const explorer = "found";
  test.each<[string, Setup, number | undefined]>([
    ["is the explorer's, when it has answered", { chain: 10, explorer }, 1_234],
    ["is not known when it answers later", { chain: 10, explorer: 11 }, undefined],
    ["is not known when it does not answer", { chain: 10, explorer: "down" }, undefined],
    [
      "is not known when it has none",
      { chain: 10, explorer, explored: { ...onExplorer, priceUsd: undefined } },
      undefined,
    ],
    [
      "is not that of another transfer",
      { chain: 10, explorer, explored: { ...onExplorer, sent: createSentTransfer({ id: repeatedByteHash("99") }) } },
      undefined,
    ],
    [
      "is not that of another token",
      { chain: 10, explorer, explored: { ...onExplorer, sent: createSentTransfer({ token: "DAI" }) } },
      undefined,
    ],
    ["goes with what was sent for sure", { chain: 10, explorer, isSentKnown: true }, 1_234],
  ])("%s", async (_, parts, priceUsd) => {
    const { find } = setup(parts);
    const found = find(byHash);
    await vi.advanceTimersByTimeAsync(20);
    expect(await found).toEqual({ ...onChain, priceUsd });
  });
});
