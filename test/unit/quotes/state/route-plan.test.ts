import { describe, expect, test } from "vitest";
import { findUsdcSwapPool, TOKEN_MINTERS } from "../../../../src/hop/cctp.js";
import { type FeeSettings, getBuiltInFeeSettings } from "../../../../src/hop/fee-settings.js";
import { ComparedTokenPrices } from "../../../../src/prices/token-prices.js";
import type { BridgeSnapshot, CctpSnapshot } from "../../../../src/quotes/math/route-snapshot.js";
import type { ChainState } from "../../../../src/quotes/state/chain-state.js";
import { type ContractRead, EMPTY_READ_SET, type ReadSet } from "../../../../src/quotes/state/read-set.js";
import { planRoute, type RoutePlan } from "../../../../src/quotes/state/route-plan.js";
import { addressOf, createChainState, findQuoteRoute, UNISWAP_STATE } from "../../../support/stubs/quote-routes.js";

const prices = await new ComparedTokenPrices({
  fixedPricesUsd: new Map([
    ["ETH", 3_000],
    ["MATIC", 0.5],
    ["USDC", 1],
    ["DAI", 0.99],
    ["HOP", 0.05],
  ]),
  sources: [],
}).getTable([]);

function plan(token: string, from: string, to: string, more: Partial<FeeSettings> = {}, attestation?: string) {
  const settings = { ...getBuiltInFeeSettings("mainnet"), ...more };
  return planRoute(findQuoteRoute(token, from, to), settings, attestation);
}

type Values = readonly (readonly [key: string, value: unknown])[];

/** What a chain responds to all reads of a read set: each uint, gas of a delivery and balance has this value. */
function respond(readSet: ReadSet | undefined, value: bigint, others: Values = []): ChainState {
  const pool = { decimals: 6, balances: [value, value] as const, aPrecise: 20_000n, swapFee: 0n };
  const { contractReads, deliveries, includesGasPrice } = readSet ?? EMPTY_READ_SET;
  const reads = [...contractReads.values()].map((read) => [read.key, isPoolRead(read) ? pool : value] as const);
  const costs = [...deliveries.keys()].map((key) => [key, { gas: value, l1Fee: 3n }] as const);
  return createChainState([...reads, ...costs, ...others], { gasPrice: includesGasPrice ? 7n : undefined });
}

const isPoolRead = (read: ContractRead): boolean => read.plan().calls.length === 4;

/** Returns the contracts of which pools are read, of which uints are read, and of which optional ones are. */
function listReads(readSet: ReadSet | undefined) {
  const reads = [...(readSet?.contractReads.values() ?? [])];
  const list = (included: readonly ContractRead[]) => included.map((read) => read.plan().calls[0]?.to);
  return {
    pools: list(reads.filter(isPoolRead)),
    uints: list(reads.filter((read) => !read.isOptional && !isPoolRead(read))),
    optional: list(reads.filter(({ isOptional }) => isOptional)),
    deliveries: [...(readSet?.deliveries.values() ?? [])].map(({ to }) => to),
    includesGasPrice: readSet?.includesGasPrice,
  };
}

/** Returns the snapshot of a route whose chains respond with these values. */
function snapshotOf({ sourceReadSet, destinationReadSet, buildSnapshot }: RoutePlan, source = 9n, destination = 9n) {
  return buildSnapshot(respond(sourceReadSet, source), respond(destinationReadSet, destination), prices);
}

const bonderOf = (...parameters: Parameters<typeof snapshotOf>) => (snapshotOf(...parameters) as BridgeSnapshot).bonder;

const NO_READS = { pools: [], uints: [], optional: [], deliveries: [], includesGasPrice: false };
const eth = plan("ETH", "polygon", "optimism");

describe("a route between two L2s", () => {
  test("reads the pool of each chain, the source's minimum fee and what the bond costs", () => {
    expect(listReads(eth.sourceReadSet)).toEqual({
      ...NO_READS,
      pools: [addressOf("ETH", "polygon", "l2SaddleSwap")],
      uints: [addressOf("ETH", "polygon", "l2Bridge")],
    });
    expect(listReads(eth.destinationReadSet)).toEqual({
      ...NO_READS,
      pools: [addressOf("ETH", "optimism", "l2SaddleSwap")],
      deliveries: [addressOf("ETH", "optimism", "l2Bridge")],
      includesGasPrice: true,
    });
    expect(eth).toMatchObject({ pricedTokens: ["ETH", "ETH"], usdcSwapPool: undefined });
    expect(plan("USDC.e", "optimism", "polygon").pricedTokens).toEqual(["USDC", "MATIC"]);
  });

  test("reads the bonder's liquidity for details, and all else alike", () => {
    const { sourceReadSet, destinationReadSet, getLiquidity } = eth.full;
    expect(sourceReadSet).toEqual(eth.sourceReadSet);
    const { optional, ...others } = listReads(destinationReadSet);
    expect(optional).toHaveLength(2);
    expect({ ...others, optional: [] }).toEqual(listReads(eth.destinationReadSet));
    const liquidity = getLiquidity(respond(sourceReadSet, 5n), respond(destinationReadSet, 5n));
    expect(liquidity).toEqual({ basis: "BONDER_CREDIT", available: 0n });
  });

  test("has a snapshot of what was read", () => {
    const { destinationFeeGasPriceMultiplier, bonderFeeBps } = getBuiltInFeeSettings("mainnet");
    expect(snapshotOf(eth, 10n ** 17n)).toEqual({
      kind: "bridge",
      decimals: 18,
      sourceSlug: "polygon",
      sourceIsL1: false,
      destinationSlug: "optimism",
      destinationIsL1: false,
      feeMultiplier: destinationFeeGasPriceMultiplier,
      feeBps: bonderFeeBps.ETH?.optimism,
      sourcePool: { decimals: 6, balances: [10n ** 17n, 10n ** 17n], aPrecise: 20_000n, swapFee: 0n },
      destinationPool: { decimals: 6, balances: [9n, 9n], aPrecise: 20_000n, swapFee: 0n },
      bonder: { minFee: 10n ** 17n, delivery: { gasPrice: 7n, gas: 9n, l1Fee: 3n }, nativeUsd: 3_000, tokenUsd: 3_000 },
      relayerFee: undefined,
    });
  });

  test("reads the minimum fee of a bridge on mainnet for ETH from polygon and gnosis alone", () => {
    const l2Slugs = ["polygon", "gnosis", "optimism", "arbitrum", "nova", "base", "linea", "polygonzk"];
    const listUints = (token: string, from: string) => listReads(plan(token, from, "ethereum").sourceReadSet).uints;
    expect(l2Slugs.filter((from) => listUints("ETH", from).length > 0)).toEqual(["polygon", "gnosis"]);
    expect([listUints("DAI", "polygon"), listUints("HOP", "gnosis")]).toEqual([[], []]);
  });

  test("has the larger of the contract's minimum fee and 25 cents", () => {
    const cents = 83_333_333_333_333n;
    const minFees = [cents - 1n, cents, cents + 1n].map((contractFee) => bonderOf(eth, contractFee)?.minFee);
    expect(minFees).toEqual([cents, cents, cents + 1n]);
  });

  test("has the 25 cents alone where the contract has no minimum, and nothing from the source is needed", () => {
    const hop = plan("HOP", "polygon", "optimism");
    expect(hop.sourceReadSet).toBeUndefined();
    const [ofOtherRoutes, destination] = [respond(eth.sourceReadSet, 9n), respond(hop.destinationReadSet, 9n)];
    const bonder = { minFee: 5n * 10n ** 18n, tokenUsd: 0.05 };
    expect(hop.buildSnapshot(undefined, destination, prices)).toMatchObject({ bonder });
    const pools = { sourcePool: undefined, destinationPool: undefined };
    expect(hop.buildSnapshot(ofOtherRoutes, destination, prices)).toMatchObject(pools);
  });

  test("has no minimum fee for DAI to gnosis that is called DAI", () => {
    expect(bonderOf(plan("DAI", "optimism", "gnosis"))?.minFee).toBe(0n);
    expect(bonderOf(plan("XDAI", "optimism", "gnosis"))?.minFee).toBeGreaterThan(0n);
  });

  test("estimates no bond whose bonder is no address, and has the SDK's gas", () => {
    const bonders = { ETH: { polygon: { optimism: "0xnone" } } };
    const unknown = plan("ETH", "polygon", "optimism", { bonders });
    expect(unknown.destinationReadSet?.deliveries.size).toBe(0);
    expect(bonderOf(unknown)?.delivery).toEqual({ gasPrice: 7n, gas: 350_000n, l1Fee: 0n });
  });

  test.each([
    ["of gnosis, for DAI that leaves gnosis as XDAI", { polygon: 4, gnosis: 30 }, 30],
    ["of the destination, where gnosis has none", { polygon: 4 }, 4],
    ["0 for a destination without a fee", {}, 0],
  ])("has the relative fee %s", (_, DAI, expected) => {
    expect(snapshotOf(plan("XDAI", "gnosis", "polygon", { bonderFeeBps: { DAI } })).feeBps).toBe(expected);
  });

  test("needs the state of its destination", () => {
    expect(() => eth.buildSnapshot(respond(eth.sourceReadSet, 1n), undefined, prices)).toThrow(
      "a bonded transfer needs the state of its destination",
    );
  });
});

describe("a route from or to ethereum", () => {
  test("from there needs neither prices nor a bond, and reads the destination's pool alone", () => {
    const fees = { relayerFeeEnabled: { polygon: true }, relayerFeeWei: { polygon: "77" } };
    const deposit = plan("ETH", "ethereum", "polygon", fees);
    expect(deposit).toMatchObject({ sourceReadSet: undefined, pricedTokens: [] });
    const pools = [addressOf("ETH", "polygon", "l2SaddleSwap")];
    expect(listReads(deposit.destinationReadSet)).toEqual({ ...NO_READS, pools });
    expect(deposit.buildSnapshot(undefined, respond(deposit.destinationReadSet, 9n), prices)).toMatchObject({
      sourceIsL1: true,
      sourcePool: undefined,
      bonder: undefined,
      relayerFee: 77n,
      destinationPool: { balances: [9n, 9n] },
    });
  });

  test("to there has a pool on its source alone", () => {
    const withdrawal = plan("DAI", "polygon", "ethereum");
    expect(listReads(withdrawal.sourceReadSet).pools).toHaveLength(1);
    expect(listReads(withdrawal.destinationReadSet).pools).toEqual([]);
    const pools = { sourcePool: { balances: [9n, 9n] }, destinationPool: undefined };
    expect(snapshotOf(withdrawal)).toMatchObject({ destinationIsL1: true, ...pools });
  });
});

test("HOP is never swapped: it has no pool, and is delivered without a distribution", () => {
  const hop = plan("HOP", "polygon", "optimism");
  expect([hop.sourceReadSet, hop.destinationReadSet].flatMap((readSet) => listReads(readSet).pools)).toEqual([]);
  const deadlineOf = ({ destinationReadSet }: RoutePlan) =>
    [...(destinationReadSet?.deliveries.values() ?? [])][0]?.deadlineSeconds;
  expect(deadlineOf(hop)).toBeUndefined();
  expect(deadlineOf(eth)).toBeGreaterThan(0);
});

describe("a route by CCTP", () => {
  const usdc = plan("USDC", "polygon", "optimism", {}, "0x5a");

  test("reads the source's minimum fee and what the delivery costs", () => {
    expect(listReads(usdc.sourceReadSet).uints).toEqual([addressOf("USDC", "polygon", "cctpL2Bridge")]);
    const deliveries = [addressOf("USDC", "optimism", "cctpMessageTransmitter")];
    expect(listReads(usdc.destinationReadSet)).toEqual({ ...NO_READS, deliveries, includesGasPrice: true });
    expect(usdc).toMatchObject({ pricedTokens: ["USDC", "ETH"], usdcSwapPool: undefined });
    expect(plan("USDC", "optimism", "polygon").pricedTokens).toEqual(["USDC", "MATIC"]);
  });

  test("has a snapshot of what was read", () => {
    expect(snapshotOf(usdc, 300n)).toMatchObject({
      ...{ kind: "cctp", minBonderFee: 300n, sourceSwap: undefined, delivery: { gasPrice: 7n, gas: 9n, l1Fee: 3n } },
      ...{ nativeUsd: 3_000, tokenUsd: 1, decimals: 6, sourceSlug: "polygon", destinationSlug: "optimism" },
    });
  });

  test("swaps USDC.e before, as far as the pool's ticks are known, but not from ethereum", () => {
    const bridged = plan("USDC.e", "polygon", "optimism", {}, "0x5a");
    const pool = findUsdcSwapPool("polygon");
    if (pool === undefined) throw new Error("no pool");
    expect(bridged.usdcSwapPool).toEqual(pool);
    expect(plan("USDC.e", "ethereum", "polygon", {}, "0x5a").usdcSwapPool).toBeUndefined();
    const swapOf = (values: Values) => {
      const states = [respond(bridged.sourceReadSet, 1n, values), respond(bridged.destinationReadSet, 9n)] as const;
      return (bridged.buildSnapshot(...states, prices) as CctpSnapshot).sourceSwap;
    };
    expect(swapOf([])?.(1_000n)).toBeUndefined();
    expect(swapOf([[pool.address, UNISWAP_STATE]])?.(1_000_000n)).toBe(999_899n);
  });

  test("has the SDK's gas without an attestation", () => {
    const plain = plan("USDC", "polygon", "optimism");
    expect(plain.destinationReadSet?.deliveries.size).toBe(0);
    expect(snapshotOf(plain, 300n)).toMatchObject({ delivery: { gas: 500_000n, l1Fee: 0n } });
  });

  test("reads the burn limit for quotes without details too", () => {
    expect(listReads(usdc.sourceReadSet).optional).toHaveLength(2);
    expect(usdc.full).toMatchObject({
      sourceReadSet: usdc.sourceReadSet,
      destinationReadSet: usdc.destinationReadSet,
    });
  });

  const MINTER = BigInt(TOKEN_MINTERS.polygon ?? 0);
  const snapshotWith = (minter: bigint | undefined, burnLimit: bigint | undefined) => {
    const reads = [...(usdc.sourceReadSet?.contractReads.values() ?? [])].filter(({ isOptional }) => isOptional);
    const values = reads.map(({ key }, index) => [key, [minter, burnLimit][index]] as const);
    const source = respond(usdc.sourceReadSet, 300n, values);
    return usdc.buildSnapshot(source, respond(usdc.destinationReadSet, 9n), prices);
  };

  test("is closed while nothing can be burnt on the source", () => {
    const message = "Circle's CCTP V1 accepts no new transfers from polygon";
    const closed = expect.objectContaining({ reason: "UNSUPPORTED_ROUTE", message });
    expect(() => snapshotWith(MINTER, 0n)).toThrow(closed);
  });

  test.each([
    ["the limit", MINTER, 5n, 5n],
    ["unknown where the limit cannot be read", MINTER, undefined, undefined],
    ["unknown where the minter cannot be read", undefined, 0n, undefined],
    ["unknown where the minter was replaced", MINTER + 1n, 0n, undefined],
  ])("has a burn limit: %s", (_, minter, limit, expected) => {
    expect(snapshotWith(minter, limit)).toMatchObject({ burnLimit: expected });
  });

  test("needs the state of both chains", () => {
    const [source, destination] = [respond(usdc.sourceReadSet, 1n), respond(usdc.destinationReadSet, 1n)];
    const message = "a CCTP transfer needs the state of both chains";
    expect(() => usdc.buildSnapshot(undefined, destination, prices)).toThrow(message);
    expect(() => usdc.buildSnapshot(source, undefined, prices)).toThrow(message);
  });
});

test("settings without a fee for the token cannot be quoted with", () => {
  const message = "the fee settings have no fee for HOP";
  expect(() => plan("HOP", "polygon", "optimism", { bonderFeeBps: { ETH: {} } })).toThrow(
    expect.objectContaining({ reason: "UPSTREAM_UNAVAILABLE", message }),
  );
});
