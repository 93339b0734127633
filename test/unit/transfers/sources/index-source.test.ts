import { describe, expect, test } from "vitest";
import { getNetwork } from "../../../../src/hop/networks.js";
import type {
  IndexCoverage,
  IndexedTransfer,
  TransferIndex,
} from "../../../../src/transfers/index/store/transfer-index.js";
import { createIndexSource } from "../../../../src/transfers/sources/index-source.js";
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
const isUnknown = expect.objectContaining({ reason: "UPSTREAM_UNAVAILABLE" });
const sent = createSentTransfer();
/** What the index adds to it depends on the rest. */
type Kept = Omit<IndexedTransfer, "otherTransferIds" | "sourceCoverage" | "destinationCoverage">;
const bonded: Kept = { sent, delivery: defaultDelivery, isFinal: true, isUnambiguous: true };
const waiting: Kept = { ...bonded, delivery: undefined };
const recent: Kept = { ...waiting, isFinal: false };
const untold: Kept = { ...waiting, isUnambiguous: false };
const whole: IndexCoverage = {
  fromBlock: 0,
  toBlock: 1_000,
  fromTimestamp: 0,
  observedAtMs: now - 1,
  finalizedBlock: 9,
};
const sinceThen = { fromBlock: 5, fromTimestamp: sent.timestamp };
/** What a chain polls every 2 seconds may be behind. */
const late = { observedAtMs: now - 6_001 };
const isByNonce = { ...sent, kind: "cctp", id: "77", token: "USDC" } as const;

interface Setup {
  readonly transfers?: readonly Kept[];
  /** What is known of each chain, where it is not everything. */
  readonly coverage?: Readonly<Record<string, Partial<IndexCoverage> | null>>;
  readonly isOpen?: boolean;
}

function setup({ transfers = [], coverage = {}, isOpen = true }: Setup) {
  const of = (slug: string) => (coverage[slug] === null ? undefined : { ...whole, ...coverage[slug] });
  const all: readonly IndexedTransfer[] = transfers.map((each) => ({
    ...each,
    otherTransferIds: transfers
      .filter((other) => other !== each && other.sent.transactionHash === each.sent.transactionHash)
      .map((other) => other.sent.id),
    sourceCoverage: of(each.sent.source.slug),
    destinationCoverage: of(each.sent.destination.slug),
  }));
  const index: TransferIndex = {
    findByTransactionHash: (hash) =>
      all.filter((each) => [each.sent.transactionHash, each.delivery?.transactionHash].includes(hash)),
    findByTransferId: (id) => all.filter((each) => each.sent.id === id),
    getCoverage: of,
    close: () => {},
  };
  const source = createIndexSource({
    getIndex: () => (isOpen ? index : undefined),
    network: mainnet,
    getPollIntervalMs: () => 2_000,
    now: () => now,
  });
  return {
    byId: (id: string = sent.id, more: Partial<LookupContext> = {}) =>
      source.findByTransferId(id, createLookupContext(more)),
    byHash: (transactionHash = sent.transactionHash, id?: string) =>
      source.findByTransactionHash(transactionHash, id, createLookupContext()),
    sentOnly: (query: object = { transferId: sent.id }, more: Partial<LookupContext> = {}) =>
      source.findFinalizedSend(
        { transferId: undefined, transactionHash: undefined, ...query },
        createLookupContext(more),
      ),
    getLastSearchedBlock: (more: Partial<LookupContext> = {}) => source.getLastSearchedBlock(createLookupContext(more)),
  };
}

describe("what the index says of a transfer that it has", () => {
  test("is all that it knows", () => {
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

  test.each<[string, Kept, Setup["coverage"], string | undefined]>([
    ["not arrived, in all there is", waiting, {}, "PENDING"],
    ["not arrived, in all since it was sent", waiting, { arbitrum: sinceThen }, "PENDING"],
    ["not arrived, as of the last three polls", waiting, { arbitrum: { observedAtMs: now - 6_000 } }, "PENDING"],
    ["not arrived, with a source that is behind", waiting, { optimism: late }, "PENDING"],
    ["not arrived, sent in a block that may be undone", recent, {}, "PENDING"],
    ["not arrived, sent in a block that may have been undone since", recent, { optimism: late }, undefined],
    ["not arrived, by a clock that was put back", waiting, { arbitrum: { observedAtMs: now + 6_001 } }, undefined],
    ["perhaps arrived, or another like it", untold, {}, undefined],
    ["not arrived since later", waiting, { arbitrum: { fromBlock: 6, fromTimestamp: sent.timestamp + 1 } }, undefined],
    ["not arrived, as of long ago", waiting, { arbitrum: late }, undefined],
    ["not arrived where nothing is known", waiting, { arbitrum: null }, undefined],
    ["arrived, as of long ago", bonded, { arbitrum: late }, "BONDED"],
    ["arrived, in a part of all", bonded, { arbitrum: { fromBlock: 6, fromTimestamp: sent.timestamp + 1 } }, "BONDED"],
    ["arrived, where nothing is known", bonded, { arbitrum: null }, undefined],
  ])("%s", (_, transfer, coverage, state) => {
    const { byId, byHash } = setup({ transfers: [transfer], ...(coverage && { coverage }) });
    for (const find of [byId, byHash]) {
      if (state === undefined) expect(() => find()).toThrow(isUnknown);
      else expect(find()).toMatchObject({ state, source: "index", isFinal: transfer.isFinal });
    }
  });

  test("is not final where that is not", () => {
    expect(setup({ transfers: [{ ...bonded, isFinal: false }] }).byId()).toMatchObject({ isFinal: false });
  });

  test("names the others of its transaction, and chooses the one that is meant", () => {
    const others = ["05", "06"].map((id, index) => ({
      ...bonded,
      sent: { ...sent, id: repeatedByteHash(id), logIndex: 10 + index },
    }));
    const { byId, byHash } = setup({ transfers: [bonded, ...others] });
    expect(byHash()).toMatchObject({
      sent: { id: sent.id },
      otherTransferIds: [repeatedByteHash("05"), repeatedByteHash("06")],
    });
    expect(byHash(sent.transactionHash, repeatedByteHash("06"))).toMatchObject({
      sent: { id: repeatedByteHash("06") },
      otherTransferIds: [sent.id, repeatedByteHash("05")],
    });
    expect(byId(repeatedByteHash("05"))).toMatchObject({ otherTransferIds: [sent.id, repeatedByteHash("06")] });
    expect(() => byHash(sent.transactionHash, repeatedByteHash("99"))).toThrow(isUnknown);
  });

  test("from L1 is told apart from one with the same id by its log", () => {
    const fromL1 = { ...sent, kind: "l1", id: sent.transactionHash } as const;
    const both = [fromL1, { ...fromL1, logIndex: 9 }].map((each) => ({ ...bonded, sent: each }));
    expect(setup({ transfers: both }).byId(fromL1.id)).toMatchObject({
      sent: { logIndex: fromL1.logIndex },
      otherTransferIds: [fromL1.id],
    });
  });
});

describe("a transfer that it does not have", () => {
  test("may have been sent since", () => {
    const { byId, byHash } = setup({});
    for (const find of [byId, byHash]) expect(() => find()).toThrow(isUnknown);
  });

  test("has not been sent in blocks that stay, where all are there from the chain's beginning", () => {
    const { getLastSearchedBlock } = setup({ coverage: { gnosis: { fromBlock: 1 }, base: null } });
    const searched = getLastSearchedBlock();
    expect(["optimism", "gnosis", "base"].map((slug) => searched?.(getChain(slug)))).toEqual([
      whole.finalizedBlock,
      -1,
      -1,
    ]);
    expect(getLastSearchedBlock({ network: getNetwork("goerli") })).toBeUndefined();
    expect(getLastSearchedBlock({ chains: createChainAccess([], ["base"]) })).toBeUndefined();
  });
});

describe("a CCTP nonce", () => {
  const one = { ...bonded, sent: isByNonce };
  const another = {
    ...bonded,
    sent: { ...isByNonce, source: getChain("base"), transactionHash: repeatedByteHash("4d") },
  };

  test("names a transfer where all chains with CCTP are known from their beginning", () => {
    expect(setup({ transfers: [one] }).byId("77")).toMatchObject({ sent: { id: "77" }, source: "index" });
    const withoutGnosis = setup({ transfers: [one], coverage: { gnosis: null } });
    expect(withoutGnosis.byId("77")).toMatchObject({ sent: { id: "77" } });
    for (const coverage of [{ polygon: { fromBlock: 1 } }, { polygon: late }, { polygon: null }]) {
      const { byId, byHash, sentOnly } = setup({ transfers: [one], coverage });
      expect(() => byId("77")).toThrow(isUnknown);
      expect(byHash(sent.transactionHash, "77")).toMatchObject({ sent: { id: "77" } });
      expect(sentOnly({ transferId: "77" })).toBeUndefined();
    }
  });

  test("of several chains names none, whatever is known", () => {
    const isAmbiguous = expect.objectContaining({ reason: "INVALID_PARAMETER", field: "transferId" });
    for (const coverage of [{}, { polygon: null }]) {
      const { byId, byHash, sentOnly } = setup({ transfers: [one, another], coverage });
      expect(() => byId("77")).toThrow(isAmbiguous);
      expect(() => sentOnly({ transferId: "77" })).toThrow(isAmbiguous);
      expect(byHash(repeatedByteHash("4d"), "77")).toMatchObject({ sent: { source: { slug: "base" } } });
    }
  });
});

describe("a transfer that was sent for sure", () => {
  test("is one that has not arrived, however far behind the destination is", () => {
    const other = { ...bonded, sent: { ...sent, id: repeatedByteHash("05"), logIndex: 10 } };
    const { sentOnly, byId } = setup({ transfers: [waiting, other], coverage: { arbitrum: null } });
    expect(() => byId()).toThrow(isUnknown);
    const expected = { transfer: sent, otherTransferIds: [repeatedByteHash("05")] };
    expect(sentOnly()).toEqual(expected);
    expect(sentOnly({ transactionHash: sent.transactionHash })).toEqual(expected);
  });

  test("is one of which cannot be told whether it has arrived", () => {
    expect(setup({ transfers: [untold] }).sentOnly()).toEqual({ transfer: sent, otherTransferIds: [] });
  });

  test.each<[string, Setup]>([
    ["what has arrived", { transfers: [bonded] }],
    ["what may be undone", { transfers: [{ ...waiting, isFinal: false }] }],
    ["what is not there", {}],
    ["anything before it is open", { transfers: [waiting], isOpen: false }],
  ])("is not %s", (_, parts) => {
    expect(setup(parts).sentOnly()).toBeUndefined();
  });
});

describe("the index cannot know", () => {
  test.each<[string, Partial<LookupContext>]>([
    ["of another network", { network: getNetwork("goerli") }],
    ["what a caller's own endpoint says", { chains: createChainAccess([], ["gnosis"]) }],
  ])("%s", (_, more) => {
    const { byId, sentOnly } = setup({ transfers: [waiting] });
    expect(() => byId(sent.id, more)).toThrow(isUnknown);
    expect(sentOnly({ transferId: sent.id }, more)).toBeUndefined();
  });

  test("anything before it is open", () => {
    const { byId, byHash } = setup({ transfers: [bonded], isOpen: false });
    expect(() => byId()).toThrow(isUnknown);
    expect(() => byHash()).toThrow(isUnknown);
  });
});

test("an index whose file cannot be read knows nothing, and fails nobody", () => {
  const fails = (): never => {
    throw new Error("disk I/O error");
  };
  const broken: TransferIndex = {
    findByTransactionHash: fails,
    findByTransferId: fails,
    getCoverage: fails,
    close: () => {},
  };
  const source = createIndexSource({
    getIndex: () => broken,
    network: mainnet,
    getPollIntervalMs: () => 2_000,
    now: () => now,
  });
  expect(() => source.findByTransferId(sent.id, createLookupContext())).toThrow(isUnknown);
  expect(() => source.findByTransactionHash(sent.transactionHash, undefined, createLookupContext())).toThrow(isUnknown);
  expect(
    source.findFinalizedSend({ transferId: sent.id, transactionHash: undefined }, createLookupContext()),
  ).toBeUndefined();
  expect(source.getLastSearchedBlock(createLookupContext())?.(getChain("optimism"))).toBe(-1);
});
