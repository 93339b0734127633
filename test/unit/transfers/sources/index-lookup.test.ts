import { describe, expect, test } from "vitest";
import { getNetwork } from "../../../../src/hop/networks.js";
import type { IndexDatabase } from "../../../../src/transfers/index/database/index-database.js";
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
const range = { fromBlock: 0, toBlock: 1_000, fromTimestamp: 0, toTimestamp: 0 };
const completeCoverage: IndexCoverage = { ...range, observedAtMs: now - 1, finalizedBlock: 9 };
const sinceSend = { fromBlock: 5, fromTimestamp: sent.timestamp };
/** More than three polls of 2 s behind. */
const stale = { observedAtMs: now - 6_001 };
const cctpSend = { ...sent, kind: "cctp", id: "77", token: "USDC" } as const;

interface Setup {
  readonly transfers?: readonly StoredTransfer[];
  /** Differences from a complete coverage, by chain; null for none at all. */
  readonly coverage?: Readonly<Record<string, Partial<IndexCoverage> | null>>;
  readonly isReadable?: boolean;
}

const tree: TransferTree = { leaves: [], treeIndex: 0, transferNonce: sent.id, commit: undefined };

function createReader({ transfers = [], coverage = {} }: Setup) {
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
  return {
    findByTransactionHash,
    findByTransferId,
    findCovered: async ({ transactionHash: hash, transferId = "" }: TransferQuery) => ({
      transfers: hash === undefined ? findByTransferId(transferId) : findByTransactionHash(hash),
      coverage: new Map(covered),
    }),
    readTree: async () => tree,
  };
}

function setup({ isReadable = true, ...contents }: Setup) {
  const admit: IndexDatabase["admit"] = (_, read) => {
    if (!isReadable) throw new Error("the index cannot be read");
    return read();
  };
  const lookup = new IndexLookup({ database: { admit }, reader: createReader(contents) }, mainnet, () => now);
  return {
    byId: (transferId: string = sent.id, more: Partial<LookupContext> = {}) =>
      lookup.findKnownStatus({ transferId, transactionHash: undefined }, createLookupContext(more)),
    byHash: (transactionHash = sent.transactionHash, transferId?: string, more: Partial<LookupContext> = {}) =>
      lookup.findKnownStatus({ transferId, transactionHash }, createLookupContext(more)),
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

  const [early, inFuture] = [{ observedAtMs: now - 6_000 }, { observedAtMs: now + 6_001 }];
  const sinceLater = { fromBlock: 6, fromTimestamp: sent.timestamp + 1 };
  test.each<[string, StoredTransfer, Setup["coverage"], string | undefined]>([
    ["not delivered, with complete coverage", pending, {}, "PENDING"],
    ["not delivered, with coverage since the send", pending, { arbitrum: sinceSend }, "PENDING"],
    ["not delivered, destination read within the last three polls", pending, { arbitrum: early }, "PENDING"],
    ["not delivered, source behind, send final", pending, { optimism: stale }, "PENDING"],
    ["not delivered, send not final, source current", unfinalized, {}, "PENDING"],
    ["not delivered, send not final, source behind", unfinalized, { optimism: stale }, undefined],
    ["not delivered, send not final, source not indexed", unfinalized, { optimism: null }, undefined],
    ["not delivered, observed in the future: the clock was set back", pending, { arbitrum: inFuture }, undefined],
    ["delivery ambiguous among equal transfers", ambiguous, {}, undefined],
    ["not delivered, coverage begins after the send", pending, { arbitrum: sinceLater }, undefined],
    ["not delivered, destination behind", pending, { arbitrum: stale }, undefined],
    ["not delivered, destination not indexed", pending, { arbitrum: null }, undefined],
    ["delivered, destination behind", bonded, { arbitrum: stale }, "BONDED"],
    ["delivered, coverage begins after the send", bonded, { arbitrum: sinceLater }, "BONDED"],
    ["delivered, destination not indexed", bonded, { arbitrum: null }, undefined],
  ])("%s", (_, transfer, coverage, state) => {
    const { byId, byHash } = setup({ transfers: [transfer], ...(coverage && { coverage }) });
    const status = state && expect.objectContaining({ state, source: "index", isFinal: transfer.isFinal });
    for (const find of [byId, byHash]) expect(find()).toEqual(status);
  });

  test("lists sibling transfers, and selects by transfer ID among them", () => {
    const [id5, id6] = [repeatedByteHash("05"), repeatedByteHash("06")];
    const siblings = [id5, id6].map((id, index) => ({ ...bonded, sent: { ...sent, id, logIndex: 10 + index } }));
    const { byId, byHash } = setup({ transfers: [bonded, ...siblings] });
    const found = (id: string, otherTransferIds: readonly string[]) => ({ sent: { id }, otherTransferIds });
    expect(byHash()).toMatchObject(found(sent.id, [id5, id6]));
    expect(byHash(sent.transactionHash, id6)).toMatchObject(found(id6, [sent.id, id5]));
    expect(byId(id5)).toMatchObject(found(id5, [sent.id, id6]));
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
    const lastBlocks = ["optimism", "gnosis", "base"].map((slug) => answer?.lastSearchedBlock(getChain(slug)));
    expect(lastBlocks).toEqual([completeCoverage.finalizedBlock, -1, -1]);
    expect(answer?.lastSearchedBlock({ ...getChain("optimism"), slug: "new" })).toBe(-1);
  });
});

describe("a CCTP nonce", () => {
  const first = { ...bonded, sent: cctpSend };
  const fromBase = { source: getChain("base"), transactionHash: repeatedByteHash("4d") };
  const second = { ...bonded, sent: { ...cctpSend, ...fromBase } };

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
    expect((await setup({ transfers: [ambiguous] }).ask())?.send).toEqual({ transfer: sent, otherTransferIds: [] });
  });

  test.each<[string, Setup]>([
    ["a delivered transfer", { transfers: [bonded] }],
    ["a send that is not final", { transfers: [{ ...pending, isFinal: false }] }],
    ["a transfer that is not indexed", {}],
  ])("is not returned for %s", async (_, parts) => {
    expect((await setup(parts).ask())?.send).toBeUndefined();
  });
});

describe("the index does not apply to", () => {
  test.each<[string, Partial<LookupContext>, Setup]>([
    ["another network", { network: getNetwork("goerli") }, {}],
    ["a lookup over a custom endpoint", { chains: createChainAccess([], ["gnosis"]) }, {}],
    ["any lookup before it is open", {}, { isReadable: false }],
  ])("%s", async (_, more, parts) => {
    const { byId, byHash, ask } = setup({ transfers: [bonded], ...parts });
    expect(byId(sent.id, more)).toBeUndefined();
    expect(byHash(sent.transactionHash, undefined, more)).toBeUndefined();
    expect(await ask({ transferId: sent.id }, more)).toBeUndefined();
  });
});

const failAtOnce = (): never => {
  throw new Error("disk I/O error");
};
test.each<[string, () => Promise<never>]>([
  ["at once", failAtOnce],
  ["later", () => Promise.reject(new Error("the server is away"))],
])("an index that fails %s answers as if it knew nothing", async (_, admit) => {
  const lookup = new IndexLookup({ database: { admit }, reader: createReader({}) }, mainnet, () => now);
  const [none, context] = [{ transferId: undefined, transactionHash: undefined }, createLookupContext()];
  for (const query of [{ transferId: sent.id }, { transactionHash: sent.transactionHash }]) {
    expect(await lookup.findKnownStatus({ ...none, ...query }, context)).toBeUndefined();
    expect(await lookup.ask({ ...none, ...query }, context)).toBeUndefined();
  }
});

test("the transfers of a root come from an index that can be read, and not for a caller's own endpoint", async () => {
  expect(await setup({}).findTree()).toBe(tree);
  expect(await setup({ isReadable: false }).findTree()).toBeUndefined();
  expect(await setup({}).findTree({ chains: createChainAccess([], ["gnosis"]) })).toBeUndefined();
});
