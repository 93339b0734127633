import { describe, expect, test } from "vitest";
import { getNetwork } from "../../../../src/hop/networks.js";
import type { IndexCoverage, IndexedTransfer } from "../../../../src/transfers/index/row-mapping.js";
import type { TransferTree } from "../../../../src/transfers/index/transfer-tree.js";
import { IndexLookup } from "../../../../src/transfers/sources/index-lookup.js";
import type { LookupContext, TransferQuery } from "../../../../src/transfers/sources/transfer-source.js";
import {
  createChainAccess,
  createLookupContext,
  createSentTransfer,
  defaultDelivery,
  getChain,
  repeatedByteHash,
} from "../../../support/stubs/transfer-fixtures.js";

const now = 1_700_100_000_000;
const mainnet = getNetwork("mainnet");
const sent = createSentTransfer();
/** The members that do not depend on the other transfers and the coverage. */
type StoredTransfer = Omit<IndexedTransfer, "otherTransferIds" | "sourceCoverage" | "destinationCoverage">;
const bonded: StoredTransfer = { sent, delivery: defaultDelivery, isFinal: true, isUnambiguous: true };
const pending: StoredTransfer = { ...bonded, delivery: undefined };
const unfinalized: StoredTransfer = { ...pending, isFinal: false };
const ambiguous: StoredTransfer = { ...pending, isUnambiguous: false };
const completeCoverage: IndexCoverage = {
  fromBlock: 0,
  toBlock: 1_000,
  fromTimestamp: 0,
  toTimestamp: 0,
  observedAtMs: now - 1,
  finalizedBlock: 9,
};
const sinceSend = { fromBlock: 5, fromTimestamp: sent.timestamp };
/** More than three polls of 2 s behind. */
const stale = { observedAtMs: now - 6_001 };
const cctpSend = { ...sent, kind: "cctp", id: "77", token: "USDC" } as const;

interface Setup {
  readonly transfers?: readonly StoredTransfer[];
  /** Differences from a complete coverage, by chain; null for none at all. */
  readonly coverage?: Readonly<Record<string, Partial<IndexCoverage> | null>>;
  readonly isOpen?: boolean;
}

const tree: TransferTree = { leaves: [], treeIndex: 0, transferNonce: sent.id, commit: undefined };

function setup({ transfers = [], coverage = {}, isOpen = true }: Setup) {
  const getCoverage = (slug: string) =>
    coverage[slug] === null ? undefined : { ...completeCoverage, ...coverage[slug] };
  const all: readonly IndexedTransfer[] = transfers.map((stored) => ({
    ...stored,
    otherTransferIds: transfers
      .filter((other) => other !== stored && other.sent.transactionHash === stored.sent.transactionHash)
      .map((other) => other.sent.id),
    sourceCoverage: getCoverage(stored.sent.source.slug),
    destinationCoverage: getCoverage(stored.sent.destination.slug),
  }));
  const findByTransactionHash = (hash: string) =>
    all.filter((stored) => [stored.sent.transactionHash, stored.delivery?.transactionHash].includes(hash));
  const findByTransferId = (id: string) => all.filter((stored) => stored.sent.id === id);
  const covered = [...mainnet.chains.keys()].flatMap((slug) => {
    const chain = getCoverage(slug);
    return chain === undefined ? [] : [[slug, chain] as const];
  });
  const reader = {
    findByTransactionHash,
    findByTransferId,
    findCovered: async ({ transactionHash: hash, transferId = "" }: TransferQuery) => ({
      transfers: hash === undefined ? findByTransferId(transferId) : findByTransactionHash(hash),
      coverage: new Map(covered),
    }),
    readTree: async () => tree,
  };
  const lookup = new IndexLookup(
    (query) => {
      if (!isOpen) throw new Error("the index is not open");
      return query(reader);
    },
    mainnet,
    () => now,
    () => 2_000,
  );
  return {
    byId: (transferId: string = sent.id, more: Partial<LookupContext> = {}) =>
      lookup.findKnownStatus({ transferId, transactionHash: undefined }, createLookupContext(more)),
    byHash: (transactionHash = sent.transactionHash, transferId?: string) =>
      lookup.findKnownStatus({ transferId, transactionHash }, createLookupContext()),
    findTree: (more: Partial<LookupContext> = {}) => lookup.findTree(sent, createLookupContext(more)),
    ask: (query: Partial<TransferQuery> = { transferId: sent.id }, more: Partial<LookupContext> = {}) =>
      lookup.ask({ transferId: undefined, transactionHash: undefined, ...query }, createLookupContext(more)),
  };
}

describe("the status of an indexed transfer", () => {
  test("contains everything that the index knows", () => {
    const { byId, byHash } = setup({ transfers: [bonded], coverage: { arbitrum: { observedAtMs: now - 77 } } });
    expect(byId()).toEqual({
      sent,
      delivery: defaultDelivery,
      isFinal: true,
      state: "BONDED",
      source: "index",
      observedAtMs: now - 77,
      otherTransferIds: [],
      priceUsd: undefined,
    });
    expect(byHash()).toEqual(byId());
    expect(byHash(defaultDelivery.transactionHash)).toEqual(byId());
    expect(byHash(sent.transactionHash, sent.id)).toEqual(byId());
  });

  test.each<[string, StoredTransfer, Setup["coverage"], string | undefined]>([
    ["not delivered, with complete coverage", pending, {}, "PENDING"],
    ["not delivered, with coverage since the send", pending, { arbitrum: sinceSend }, "PENDING"],
    [
      "not delivered, destination read within the last three polls",
      pending,
      { arbitrum: { observedAtMs: now - 6_000 } },
      "PENDING",
    ],
    ["not delivered, source behind, send final", pending, { optimism: stale }, "PENDING"],
    ["not delivered, send not final, source current", unfinalized, {}, "PENDING"],
    ["not delivered, send not final, source behind", unfinalized, { optimism: stale }, undefined],
    ["not delivered, send not final, source not indexed", unfinalized, { optimism: null }, undefined],
    [
      "not delivered, observed in the future after the clock was set back",
      pending,
      { arbitrum: { observedAtMs: now + 6_001 } },
      undefined,
    ],
    ["delivery ambiguous among equal transfers", ambiguous, {}, undefined],
    [
      "not delivered, coverage begins after the send",
      pending,
      { arbitrum: { fromBlock: 6, fromTimestamp: sent.timestamp + 1 } },
      undefined,
    ],
    ["not delivered, destination behind", pending, { arbitrum: stale }, undefined],
    ["not delivered, destination not indexed", pending, { arbitrum: null }, undefined],
    ["delivered, destination behind", bonded, { arbitrum: stale }, "BONDED"],
    [
      "delivered, coverage begins after the send",
      bonded,
      { arbitrum: { fromBlock: 6, fromTimestamp: sent.timestamp + 1 } },
      "BONDED",
    ],
    ["delivered, destination not indexed", bonded, { arbitrum: null }, undefined],
  ])("%s", (_, transfer, coverage, state) => {
    const { byId, byHash } = setup({ transfers: [transfer], ...(coverage && { coverage }) });
    for (const find of [byId, byHash]) {
      if (state === undefined) expect(find()).toBeUndefined();
      else expect(find()).toMatchObject({ state, source: "index", isFinal: transfer.isFinal });
    }
  });

  test("is not final while a block is not", () => {
    expect(setup({ transfers: [{ ...bonded, isFinal: false }] }).byId()).toMatchObject({ isFinal: false });
  });

  test("lists sibling transfers, and selects by transfer ID among them", () => {
    const siblings = ["05", "06"].map((id, index) => ({
      ...bonded,
      sent: { ...sent, id: repeatedByteHash(id), logIndex: 10 + index },
    }));
    const { byId, byHash } = setup({ transfers: [bonded, ...siblings] });
    expect(byHash()).toMatchObject({
      sent: { id: sent.id },
      otherTransferIds: [repeatedByteHash("05"), repeatedByteHash("06")],
    });
    expect(byHash(sent.transactionHash, repeatedByteHash("06"))).toMatchObject({
      sent: { id: repeatedByteHash("06") },
      otherTransferIds: [sent.id, repeatedByteHash("05")],
    });
    expect(byId(repeatedByteHash("05"))).toMatchObject({ otherTransferIds: [sent.id, repeatedByteHash("06")] });
    expect(byHash(sent.transactionHash, repeatedByteHash("99"))).toBeUndefined();
  });

  test("distinguishes two transfers from L1 with the same ID by their logs", () => {
    const fromL1 = { ...sent, kind: "l1", id: sent.transactionHash } as const;
    const both = [fromL1, { ...fromL1, logIndex: 9 }].map((stored) => ({ ...bonded, sent: stored }));
    expect(setup({ transfers: both }).byId(fromL1.id)).toMatchObject({
      sent: { logIndex: fromL1.logIndex },
      otherTransferIds: [fromL1.id],
    });
  });
});

describe("a transfer that is not indexed", () => {
  test("is unknown, because it may have been sent after the last poll", () => {
    const { byId, byHash } = setup({});
    for (const find of [byId, byHash]) expect(find()).toBeUndefined();
  });

  test("was not sent in final blocks of a chain that is indexed from its beginning", async () => {
    const { ask } = setup({ coverage: { gnosis: { fromBlock: 1 }, base: null } });
    const answer = await ask();
    expect(answer).toMatchObject({ status: undefined, send: undefined });
    expect(["optimism", "gnosis", "base"].map((slug) => answer?.lastSearchedBlock(getChain(slug)))).toEqual([
      completeCoverage.finalizedBlock,
      -1,
      -1,
    ]);
    expect(answer?.lastSearchedBlock({ ...getChain("optimism"), slug: "new" })).toBe(-1);
  });
});

describe("a CCTP nonce", () => {
  const first = { ...bonded, sent: cctpSend };
  const second = {
    ...bonded,
    sent: { ...cctpSend, source: getChain("base"), transactionHash: repeatedByteHash("4d") },
  };

  test("identifies a transfer when every CCTP chain is indexed from its beginning to the present", async () => {
    expect(await setup({ transfers: [first] }).byId("77")).toMatchObject({ sent: { id: "77" }, source: "index" });
    const withoutGnosis = setup({ transfers: [first], coverage: { gnosis: null } });
    expect(await withoutGnosis.byId("77")).toMatchObject({ sent: { id: "77" } });
    for (const coverage of [{ polygon: { fromBlock: 1 } }, { polygon: stale }, { polygon: null }]) {
      const { byId, byHash, ask } = setup({ transfers: [first], coverage });
      expect(await byId("77")).toBeUndefined();
      expect(byHash(sent.transactionHash, "77")).toMatchObject({ sent: { id: "77" } });
      expect(await ask({ transferId: "77" })).toMatchObject({ status: undefined, send: undefined });
    }
  });

  test("that several source chains use is rejected, whatever the coverage", async () => {
    const isAmbiguous = expect.objectContaining({ reason: "INVALID_PARAMETER", field: "transferId" });
    for (const coverage of [{}, { polygon: null }]) {
      const { byId, byHash, ask } = setup({ transfers: [first, second], coverage });
      await expect(byId("77")).rejects.toEqual(isAmbiguous);
      await expect(ask({ transferId: "77" })).rejects.toEqual(isAmbiguous);
      expect(byHash(repeatedByteHash("4d"), "77")).toMatchObject({ sent: { source: { slug: "base" } } });
    }
  });
});

describe("a finalized send", () => {
  test("is returned for a transfer without a delivery, however far behind the destination is", async () => {
    const other = { ...bonded, sent: { ...sent, id: repeatedByteHash("05"), logIndex: 10 } };
    const { ask, byId } = setup({ transfers: [pending, other], coverage: { arbitrum: null } });
    expect(byId()).toBeUndefined();
    const expected = { transfer: sent, otherTransferIds: [repeatedByteHash("05")] };
    expect((await ask())?.send).toEqual(expected);
    expect((await ask({ transactionHash: sent.transactionHash }))?.send).toEqual(expected);
  });

  test("is returned for a transfer whose delivery is ambiguous", async () => {
    const answer = await setup({ transfers: [ambiguous] }).ask();
    expect(answer?.send).toEqual({ transfer: sent, otherTransferIds: [] });
  });

  test.each<[string, Setup]>([
    ["a delivered transfer", { transfers: [bonded] }],
    ["a send that is not final", { transfers: [{ ...pending, isFinal: false }] }],
    ["a transfer that is not indexed", {}],
    ["any transfer before the index is open", { transfers: [pending], isOpen: false }],
  ])("is not returned for %s", async (_, parts) => {
    expect((await setup(parts).ask())?.send).toBeUndefined();
  });
});

describe("the index does not apply to", () => {
  test.each<[string, Partial<LookupContext>]>([
    ["another network", { network: getNetwork("goerli") }],
    ["a lookup over a custom endpoint", { chains: createChainAccess([], ["gnosis"]) }],
  ])("%s", async (_, more) => {
    const { byId, ask } = setup({ transfers: [pending] });
    expect(byId(sent.id, more)).toBeUndefined();
    expect(await ask({ transferId: sent.id }, more)).toBeUndefined();
  });

  test("any lookup before it is open", () => {
    const { byId, byHash } = setup({ transfers: [bonded], isOpen: false });
    expect(byId()).toBeUndefined();
    expect(byHash()).toBeUndefined();
  });
});

test.each<[string, () => Promise<never>]>([
  [
    "at once",
    () => {
      throw new Error("disk I/O error");
    },
  ],
  ["later", () => Promise.reject(new Error("the server is away"))],
])("an index that fails %s answers as if it knew nothing", async (_, read) => {
  const lookup = new IndexLookup(read, mainnet, () => now);
  for (const query of [
    { transferId: sent.id, transactionHash: undefined },
    { transferId: undefined, transactionHash: sent.transactionHash },
  ]) {
    expect(await lookup.findKnownStatus(query, createLookupContext())).toBeUndefined();
    expect(await lookup.ask(query, createLookupContext())).toBeUndefined();
  }
});

test("the transfers of a root come from an index that can be read, and not for a caller's own endpoint", async () => {
  expect(await setup({}).findTree()).toBe(tree);
  expect(await setup({ isOpen: false }).findTree()).toBeUndefined();
  expect(await setup({}).findTree({ chains: createChainAccess([], ["gnosis"]) })).toBeUndefined();
});
