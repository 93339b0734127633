import { expect, test } from "vitest";
import { getBuiltInFeeSettings } from "../../../src/hop/fee-settings.js";
import { getNetwork } from "../../../src/hop/networks.js";
import { findToken } from "../../../src/hop/tokens.js";
import { createTokenPrices } from "../../../src/prices/token-prices.js";
import { createSnapshotEngine } from "../../../src/quotes/snapshot-engine.js";
import { createQuoteChainStub } from "../../support/stubs/quote-chain-stub.js";

const mainnet = getNetwork("mainnet");
const token = findToken(mainnet, "USDC");
const source = mainnet.chains.get("arbitrum");
const destination = mainnet.chains.get("polygon");
if (!token || !source || !destination) throw new Error("no such route");
const request = { network: "mainnet", token, source, destination, amountIn: 10n ** 9n, slippagePercent: 0.5 } as const;

test("plans a route again within a minute when it was planned without an attestation", async () => {
  let time = 1_000_000;
  let attestation: string | undefined;
  const settings = getBuiltInFeeSettings("mainnet");
  const engine = createSnapshotEngine({
    settings: { getCurrent: async () => settings, peek: () => settings, getCurrentOrBuiltIn: async () => settings },
    prices: createTokenPrices({
      fixedPricesUsd: new Map([
        ["USDC", 1],
        ["MATIC", 1],
      ]),
      document: undefined,
      now: () => time,
    }),
    attestations: { find: async () => attestation },
    chains: () => ({
      hasCustomEndpoint: () => false,
      getClient: (slug) =>
        createQuoteChainStub({
          slug,
          pools: new Map(),
          gasPrice: 10n ** 12n,
          estimateGas: () => 100_000n,
          l1Fee: () => 0n,
          minBonderFeeAbsolute: () => 0n,
          minBonderFee: 0n,
        }),
    }),
    maxAgeMs: undefined,
    maxStaleMs: 30_000,
    clocks: { now: () => time, monotonicNow: () => time },
  });
  const getFee = async (): Promise<bigint> =>
    (await engine.quote(request, { caller: "a", signal: new AbortController().signal })).quote.bonderFee;

  // Gas: the SDK's constant of 500,000 without an attestation; an estimate of 100,000 plus a margin of 50,000 with one.
  expect(await getFee()).toBe(500_000n);
  attestation = "0x5a";
  time += 30_000;
  expect(await getFee()).toBe(500_000n);
  time += 31_000;
  expect(await getFee()).toBe(150_000n);
  engine.close();
});
