import { describe, expect, test } from "vitest";
import { getNetwork } from "../../../../src/hop/networks.js";
import type { IndexCoverage } from "../../../../src/transfers/index/store/index-coverage.js";
import type { IndexedTransfer } from "../../../../src/transfers/index/store/pages/transfer-page.js";
import type { TransferIndexReader } from "../../../../src/transfers/index/store/transfer-index.js";
import { createIndexLookup } from "../../../../src/transfers/sources/index-source.js";
import type { LookupContext } from "../../../../src/transfers/sources/transfer-source.js";
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
  const index: TransferIndexReader = {
    findByTransactionHash: (hash) =>
      all.filter((stored) => [stored.sent.transactionHash, stored.delivery?.transactionHash].includes(hash)),
    findByTransferId: (id) => all.filter((stored) => stored.sent.id === id),
    readPage: () => ({ entries: [], next: undefined, rows: 0 }),
    getCoverage,
    close: () => {},
  };
  const source = createIndexLookup({
    getIndex: () => (isOpen ? index : undefined),
    network: mainnet,
    getPollIntervalMs: () => 2_000,
    now: () => now,
  });
  return {
    byId: (transferId: string = sent.id, more: Partial<LookupContext> = {}) =>
      source.findKnownStatus({ transferId, transactionHash: undefined }, createLookupContext(more)),
    byHash: (transactionHash = sent.transactionHash, transferId?: string) =>
      source.findKnownStatus({ transferId, transactionHash }, createLookupContext()),
    findFinalizedSend: (query: object = { transferId: sent.id }, more: Partial<LookupContext> = {}) =>
      source.findFinalizedSend(
        { transferId: undefined, transactionHash: undefined, ...query },
        createLookupContext(more),
      ),
    getLastSearchedBlock: (more: Partial<LookupContext> = {}) => source.getLastSearchedBlock(createLookupContext(more)),
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

  test("was not sent in final blocks of a chain that is indexed from its beginning", () => {
    const { getLastSearchedBlock } = setup({ coverage: { gnosis: { fromBlock: 1 }, base: null } });
    const lastSearchedBlock = getLastSearchedBlock();
    expect(["optimism", "gnosis", "base"].map((slug) => lastSearchedBlock?.(getChain(slug)))).toEqual([
      completeCoverage.finalizedBlock,
      -1,
      -1,
    ]);
    expect(getLastSearchedBlock({ network: getNetwork("goerli") })).toBeUndefined();
    expect(getLastSearchedBlock({ chains: createChainAccess([], ["base"]) })).toBeUndefined();
  });
});

describe("a CCTP nonce", () => {
  const first = { ...bonded, sent: cctpSend };
  const second = {
    ...bonded,
    sent: { ...cctpSend, source: getChain("base"), transactionHash: repeatedByteHash("4d") },
  };

  test("identifies a transfer when every CCTP chain is indexed from its beginning to the present", () => {
    expect(setup({ transfers: [first] }).byId("77")).toMatchObject({ sent: { id: "77" }, source: "index" });
    const withoutGnosis = setup({ transfers: [first], coverage: { gnosis: null } });
    expect(withoutGnosis.byId("77")).toMatchObject({ sent: { id: "77" } });
    for (const coverage of [{ polygon: { fromBlock: 1 } }, { polygon: stale }, { polygon: null }]) {
      const { byId, byHash, findFinalizedSend } = setup({ transfers: [first], coverage });
      expect(byId("77")).toBeUndefined();
      expect(byHash(sent.transactionHash, "77")).toMatchObject({ sent: { id: "77" } });
      expect(findFinalizedSend({ transferId: "77" })).toBeUndefined();
    }
  });

  test("that several source chains use is rejected, whatever the coverage", () => {
    const isAmbiguous = expect.objectContaining({ reason: "INVALID_PARAMETER", field: "transferId" });
    for (const coverage of [{}, { polygon: null }]) {
      const { byId, byHash, findFinalizedSend } = setup({ transfers: [first, second], coverage });
      expect(() => byId("77")).toThrow(isAmbiguous);
      expect(() => findFinalizedSend({ transferId: "77" })).toThrow(isAmbiguous);
      expect(byHash(repeatedByteHash("4d"), "77")).toMatchObject({ sent: { source: { slug: "base" } } });
    }
  });
});

describe("a finalized send", () => {
  test("is returned for a transfer without a delivery, however far behind the destination is", () => {
    const other = { ...bonded, sent: { ...sent, id: repeatedByteHash("05"), logIndex: 10 } };
    const { findFinalizedSend, byId } = setup({ transfers: [pending, other], coverage: { arbitrum: null } });
    expect(byId()).toBeUndefined();
    const expected = { transfer: sent, otherTransferIds: [repeatedByteHash("05")] };
    expect(findFinalizedSend()).toEqual(expected);
    expect(findFinalizedSend({ transactionHash: sent.transactionHash })).toEqual(expected);
  });

  test("is returned for a transfer whose delivery is ambiguous", () => {
    expect(setup({ transfers: [ambiguous] }).findFinalizedSend()).toEqual({ transfer: sent, otherTransferIds: [] });
  });

  test.each<[string, Setup]>([
    ["a delivered transfer", { transfers: [bonded] }],
    ["a send that is not final", { transfers: [{ ...pending, isFinal: false }] }],
    ["a transfer that is not indexed", {}],
    ["any transfer before the index is open", { transfers: [pending], isOpen: false }],
  ])("is not returned for %s", (_, parts) => {
    expect(setup(parts).findFinalizedSend()).toBeUndefined();
  });
});

describe("the index does not apply to", () => {
  test.each<[string, Partial<LookupContext>]>([
    ["another network", { network: getNetwork("goerli") }],
    ["a lookup over a custom endpoint", { chains: createChainAccess([], ["gnosis"]) }],
  ])("%s", (_, more) => {
    const { byId, findFinalizedSend } = setup({ transfers: [pending] });
    expect(byId(sent.id, more)).toBeUndefined();
    expect(findFinalizedSend({ transferId: sent.id }, more)).toBeUndefined();
  });

  test("any lookup before it is open", () => {
    const { byId, byHash } = setup({ transfers: [bonded], isOpen: false });
    expect(byId()).toBeUndefined();
    expect(byHash()).toBeUndefined();
  });
});

test("an index whose file cannot be read answers as if it knew nothing", () => {
  const fail = (): never => {
    throw new Error("disk I/O error");
  };
  const broken: TransferIndexReader = {
    findByTransactionHash: fail,
    findByTransferId: fail,
    readPage: fail,
    getCoverage: fail,
    close: () => {},
  };
  const source = createIndexLookup({
    getIndex: () => broken,
    network: mainnet,
    getPollIntervalMs: () => 2_000,
    now: () => now,
  });
  const byId = { transferId: sent.id, transactionHash: undefined };
  const byHash = { transferId: undefined, transactionHash: sent.transactionHash };
  expect(source.findKnownStatus(byId, createLookupContext())).toBeUndefined();
  expect(source.findKnownStatus(byHash, createLookupContext())).toBeUndefined();
  expect(source.findFinalizedSend(byId, createLookupContext())).toBeUndefined();
  expect(source.getLastSearchedBlock(createLookupContext())?.(getChain("optimism"))).toBe(-1);
});
