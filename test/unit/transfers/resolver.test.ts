import { beforeEach, describe, expect, test, vi } from "vitest";
import { ServiceError } from "../../../src/errors.js";
import { SourcesResolver } from "../../../src/transfers/resolver.js";
import type { IndexLookup } from "../../../src/transfers/sources/index-lookup.js";
import type { LookupResult, TransferQuery, TransferSource } from "../../../src/transfers/sources/transfer-source.js";
import type { TransferStatus } from "../../../src/transfers/status.js";
import { settleAfter } from "../../support/settle-after.js";
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

/** How a source behaves; a number is the milliseconds after which it finds the transfer. */
type Behavior = "found" | "none" | "down" | "overloaded" | "rejects" | "hangs" | number;

const behaviors = ["found", "none", "down", "overloaded", "rejects", "hangs"] as const;
const rejection = new ServiceError("INVALID_PARAMETER", "two transfers have this nonce");

const onChain = createStatus({ source: "chain" });
const onExplorer = createStatus({ source: "explorer", isFinal: false, priceUsd: 1_234 });
const priced = { ...onChain, priceUsd: 1_234 };

async function behave(source: string, behavior: Behavior, status: TransferStatus, signal: AbortSignal) {
  signal.throwIfAborted();
  if (behavior === "found") return status;
  if (behavior === "none") return undefined;
  if (behavior === "down") throw unavailableError(source);
  if (behavior === "overloaded") throw new ServiceError("OVERLOADED", "RPC_BUDGET is used up");
  if (behavior === "rejects") throw rejection;
  return new Promise<TransferStatus>((resolve, reject) => {
    signal.addEventListener("abort", () => reject(unavailableError(source)));
    if (typeof behavior === "number") setTimeout(() => resolve(status), behavior);
  });
}

type Chains = ConstructorParameters<typeof SourcesResolver>[0];

interface Setup {
  readonly chain?: Behavior;
  /** For queries by hash, where it differs. */
  readonly chainByHash?: Behavior;
  readonly statusByHash?: TransferStatus;
  readonly explorer?: Behavior;
  readonly isSendIndexed?: boolean;
  readonly explorerStatus?: TransferStatus;
}

function setup({
  chain = "found",
  chainByHash = chain,
  statusByHash = onChain,
  explorer,
  isSendIndexed = false,
  explorerStatus = onExplorer,
}: Setup) {
  const queries: unknown[][] = [];
  const signals: AbortSignal[] = [];
  const query = (source: string, args: unknown[], behavior: Behavior, status: TransferStatus, signal: AbortSignal) => {
    queries.push([source, ...args]);
    signals.push(signal);
    return behave(source, behavior, status, signal);
  };
  const chainSource: Chains = {
    resolve: ({ transactionHash: hash, transferId: id }, { signal }) =>
      hash === undefined
        ? query("chain", ["id", id], chain, onChain, signal)
        : query("chain", ["hash", hash, id], chainByHash, statusByHash, signal),
    resolveStatus: async (sent, otherTransferIds, { signal }) => {
      const status = await query("chain", ["resolve", sent.id, ...otherTransferIds], chain, onChain, signal);
      if (status === undefined) throw new Error("a known send has a status");
      return status;
    },
  };
  const index: Pick<IndexLookup, "ask"> = {
    ask: async () => ({
      status: undefined,
      send: { transfer: createSentTransfer(), otherTransferIds: [repeatedByteHash("05")] },
      lastSearchedBlock: () => -1,
    }),
  };
  const explorerSource: TransferSource = {
    resolve({ transactionHash: hash, transferId: id }, { signal }) {
      const args = hash === undefined ? ["id", id] : ["hash", hash, id];
      return query("explorer", args, explorer ?? "none", explorerStatus, signal);
    },
  };
  const resolver = new SourcesResolver(
    chainSource,
    isSendIndexed ? index : undefined,
    explorer === undefined ? undefined : explorerSource,
  );
  const caller = new AbortController();
  function find(query: Partial<TransferQuery>, remainingMs = 10_000): Promise<LookupResult> {
    const context = createLookupContext({ remainingMs: () => remainingMs, signal: caller.signal });
    const status = resolver.resolve({ transferId: undefined, transactionHash: undefined, ...query }, context);
    status.catch(() => {});
    return status;
  }
  return {
    queries,
    signals,
    caller,
    find,
    /** Finds the status within some milliseconds. */
    async findWithin(ms: number, query: Partial<TransferQuery>) {
      const status = find(query);
      await vi.advanceTimersByTimeAsync(ms);
      return status;
    },
  };
}

const byHash = { transactionHash: repeatedByteHash("2b") };
const byId = { transferId: repeatedByteHash("1a") };
const queryKinds = [
  ["hash", byHash, false],
  ["ID", byId, false],
  ["both", { ...byHash, ...byId }, false],
  ["hash, send indexed", byHash, true],
  ["ID, send indexed", byId, true],
] as const;

/** Summarizes a result: the source of the status, "none", or the reason of the error. */
async function summarize(result: Promise<LookupResult>): Promise<string> {
  const describeError = (error: unknown) => (error instanceof ServiceError ? error.reason : String(error));
  return result.then((status) => status?.source ?? "none", describeError);
}

/** By the behaviour of the chain, then of the explorer. */
const expected: Readonly<Record<(typeof behaviors)[number], (explorer: Behavior | undefined) => string>> = {
  found: () => "chain",
  none: () => "none",
  rejects: () => "INVALID_PARAMETER",
  down: (explorer) => (explorer === "found" ? "explorer" : "UPSTREAM_UNAVAILABLE"),
  overloaded: (explorer) => (explorer === "found" ? "explorer" : "OVERLOADED"),
  hangs: (explorer) => (explorer === "found" ? "explorer" : "UPSTREAM_UNAVAILABLE"),
};

describe.each(queryKinds)("by %s", (_, query, isSendIndexed) => {
  const table = behaviors
    .filter((chain) => !(isSendIndexed && chain === "none"))
    .flatMap((chain) => [...behaviors, undefined].map((explorer) => [chain, explorer] as const));
  test.each(table)("chain: %s, explorer: %s", async (chain, explorer) => {
    const { find, signals, caller } = setup({ chain, isSendIndexed, ...(explorer && { explorer }) });
    const result = summarize(find(query));
    await vi.advanceTimersByTimeAsync(9_000);
    // What still hangs then ends with the call itself.
    caller.abort();
    expect(await result).toBe(expected[chain](explorer));
    expect(signals.every(({ aborted }) => aborted)).toBe(true);
  });
});

describe("a lookup", () => {
  test.each(queryKinds)("by %s leaves no timer behind", async (_, query, isSendIndexed) => {
    const { find } = setup({ explorer: "found", isSendIndexed });
    await find(query);
    expect(vi.getTimerCount()).toBe(0);
  });

  test.each(queryKinds)(
    "by %s does not wait for the explorer once the chain has answered",
    async (_, query, isSendIndexed) => {
      const { find, signals } = setup({ explorer: "hangs", isSendIndexed });
      expect(await find(query)).toEqual(onChain);
      expect(signals.every(({ aborted }) => aborted)).toBe(true);
    },
  );

  test("queries chain and explorer in parallel, by hash where the caller gave one", async () => {
    for (const query of [byHash, { ...byHash, ...byId }]) {
      const { find, queries } = setup({ chain: "hangs", explorer: "hangs" });
      void find(query);
      const hash = ["hash", query.transactionHash, "transferId" in query ? query.transferId : undefined];
      expect(queries.sort()).toEqual([
        ["chain", ...hash],
        ["explorer", ...hash],
      ]);
    }
  });

  test("reads only the destination chain when the index has the send", async () => {
    const { find, queries } = setup({ isSendIndexed: true });
    expect(await find(byId)).toEqual(onChain);
    expect(queries).toEqual([["chain", "resolve", repeatedByteHash("1a"), repeatedByteHash("05")]]);
  });

  test("waits for the explorer when the chains are down", async () => {
    const { findWithin } = setup({ chain: "down", explorer: 2_500 });
    expect(await findWithin(2_500, byHash)).toEqual(onExplorer);
  });

  test.each([
    [10_000, 9_000],
    [1_000, 800],
  ])("of %i ms gives the chains %i ms, then returns the explorer's status", async (remainingMs, chainMs) => {
    for (const query of [byHash, byId]) {
      const { find } = setup({ chain: "hangs", explorer: "found" });
      expect(await settleAfter(find(query, remainingMs), chainMs)).toEqual(onExplorer);
    }
  });

  test("reports the failed chain shortly before the deadline", async () => {
    const { find } = setup({ chain: "down", explorer: "hangs" });
    await expect(settleAfter(find(byHash, 1_000), 950)).rejects.toMatchObject({ message: "chain is down" });
  });

  test("tells the chains how long it has taken so far", async () => {
    let [remainingMs, elapsedMs] = [10_000, Number.NaN];
    const resolve: Chains["resolve"] = async (_, context) => {
      remainingMs -= 1_500;
      elapsedMs = context.elapsedMs?.() ?? Number.NaN;
      return onChain;
    };
    const resolver = new SourcesResolver({ resolve } as Chains, undefined, undefined);
    const context = createLookupContext({ remainingMs: () => remainingMs });
    await resolver.resolve({ ...byId, transactionHash: undefined }, context);
    expect(elapsedMs).toBe(1_500);
  });

  test("fails with the chain's error, not with the explorer's", async () => {
    await expect(setup({ chain: "down", explorer: "down" }).find(byHash)).rejects.toThrow("chain is down");
  });
});

describe("by ID alone", () => {
  test.each<[Behavior, Behavior]>([
    ["hangs", "found"],
    ["down", "found"],
    [5_000, "found"],
  ])("reads the transaction that the explorer names: search %s, transaction %s", async (chain, chainByHash) => {
    const { find, queries, signals } = setup({ chain, chainByHash, explorer: "found" });
    expect(await find(byId)).toEqual(priced);
    expect(queries).toContainEqual(["chain", "hash", onExplorer.sent.transactionHash, byId.transferId]);
    expect(signals.every(({ aborted }) => aborted)).toBe(true);
  });

  test.each<Behavior>(["none", "down", "rejects", "hangs"])(
    "continues the search when that transaction gives no answer: %s",
    async (chainByHash) => {
      const { findWithin } = setup({ chain: 3_000, chainByHash, explorer: "found" });
      expect(await findWithin(3_000, byId)).toEqual(priced);
    },
  );

  // For that hash the chains return the delivered transfer with other siblings.
  test("continues the search when that transaction is the delivering one", async () => {
    const explorerStatus = createStatus({ ...onExplorer, sent: { transactionHash: repeatedByteHash("3c") } });
    const statusByHash = createStatus({ otherTransferIds: [repeatedByteHash("05")] });
    const found = { chainByHash: "found", statusByHash, explorer: "found", explorerStatus } as const;
    const { findWithin, queries } = setup({ chain: 3_000, ...found });
    expect(await findWithin(3_000, byId)).toEqual(priced);
    expect(queries).toContainEqual(["chain", "hash", repeatedByteHash("3c"), byId.transferId]);
  });

  // The explorer has one transfer, the chains several.
  test("rejects a CCTP nonce that the chains reject, whatever the explorer names", async () => {
    const { find } = setup({ chain: "rejects", chainByHash: "found", explorer: "found" });
    await expect(find({ transferId: "77" })).rejects.toBe(rejection);
  });

  test("does not use the explorer's transaction for a CCTP nonce while the chains are slow", async () => {
    const statusByHash = createStatus({ otherTransferIds: [repeatedByteHash("05")] });
    const { findWithin, queries } = setup({ chain: 3_000, chainByHash: "found", statusByHash, explorer: "found" });
    expect(await findWithin(3_000, { transferId: "77" })).toEqual(priced);
    expect(queries.sort()).toEqual([
      ["chain", "id", "77"],
      ["explorer", "id", "77"],
    ]);
  });

  test("waits for the transaction that the explorer names when the search fails", async () => {
    const { findWithin } = setup({ chain: "down", chainByHash: 500, explorer: 2_000 });
    expect(await findWithin(2_500, byId)).toEqual(priced);
  });
});

describe("the price at the time of sending", () => {
  const explorer = "found";
  const ofOther = { ...onExplorer, sent: createSentTransfer({ id: repeatedByteHash("99") }) };
  const ofDai = { ...onExplorer, sent: createSentTransfer({ token: "DAI" }) };
  const withoutPrice = { ...onExplorer, priceUsd: undefined };
  test.each<[string, Setup, number | undefined]>([
    ["is the explorer's when it has answered", { explorer }, 1_234],
    ["is unknown when the explorer answers later", { explorer: 11 }, undefined],
    ["is unknown when the explorer fails", { explorer: "down" }, undefined],
    ["is unknown when the explorer has none", { explorer, explorerStatus: withoutPrice }, undefined],
    ["is not taken from another transfer", { explorer, explorerStatus: ofOther }, undefined],
    ["is not taken from another token", { explorer, explorerStatus: ofDai }, undefined],
    ["is added to an indexed send", { explorer, isSendIndexed: true }, 1_234],
  ])("%s", async (_, options, priceUsd) => {
    const { findWithin } = setup({ chain: 10, ...options });
    expect(await findWithin(20, byHash)).toEqual({ ...onChain, priceUsd });
  });
});
