import { readFileSync } from "node:fs";
import { HopBridge } from "@hop-protocol/sdk";
import { sdkConfig } from "@hop-protocol/sdk/config";
import * as sdk from "@hop-protocol/sdk/contracts";
import { BigNumber, Contract, constants, providers } from "ethers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hopChains, isNativeCoin } from "../../../../devnet/chain/local-chains.js";
import { signAttestation } from "../../../../devnet/deploy/attestation.js";
import { GAS_PRICE_ORACLE_ADDRESS } from "../../../../devnet/deploy/system-contracts.js";
import { getTokenDecimals } from "../../../../src/hop/tokens.js";
import { createTestChains } from "./contract-chains.js";

interface Golden {
  readonly inputs: {
    readonly pools: Record<
      string,
      { balances: string[]; aPrecise: string; swapFee: string; virtualPrice: string; lpTotalSupply: string }
    >;
    readonly bridges: Record<string, { minBonderFeeAbsolute: string; minBonderBps: string }>;
    readonly cctp: Record<string, { minBonderFee: string; burnLimit: string }>;
  };
  readonly cases: readonly {
    readonly query: { readonly amount: string; readonly token: string; readonly fromChain: string };
    readonly destination: { readonly uniswapOut: readonly string[] };
  }[];
}

const golden = JSON.parse(readFileSync("test/golden/quotes.json", "utf8")) as Golden;
const addressBook: Record<string, Record<string, Record<string, string | number>>> = sdkConfig.mainnet.addresses;
const bonders: Record<string, Record<string, Record<string, string>>> = sdkConfig.mainnet.bonders;
const stranger = "0x00000000000000000000000000000000000A0001";
const slugs = [...hopChains.keys()];
const cctpSlugs = Object.keys(golden.inputs.cctp);

/** The kinds of contract that quotes, sends and statuses use. The SDK's other addresses are canonical bridges. */
const DEPLOYED =
  /^(l1CanonicalToken|l1Bridge|l2CanonicalToken|l2Bridge|l2HopBridgeToken|l2AmmWrapper|l2Saddle.*|cctp(L1|L2)Bridge|cctpMessageTransmitter)$/;

/** Replaces attestations from Circle by those of the local attesters. */
class LocalBridge extends HopBridge {
  attestation = signAttestation;

  override async getCctpMessageAttestation(messageHash: string): Promise<string> {
    return this.attestation(messageHash);
  }

  // One of the SDK's addresses ends in a space, on which the SDK itself fails.
  override async getBonderAddress(source: string, destination: string): Promise<string> {
    return (await super.getBonderAddress(source, destination)).trim();
  }
}

describe.each(slugs)("%s", (slug) => {
  const chains = createTestChains([slug]);
  let provider: providers.StaticJsonRpcProvider;

  beforeAll(async () => {
    await chains.start();
    const { url, chainId } = chains.on(slug);
    provider = new providers.StaticJsonRpcProvider(url, chainId);
  });

  afterAll(() => chains.stop());

  const createBridge = (token: string): LocalBridge =>
    new LocalBridge({
      network: "mainnet",
      token,
      configFileFetchEnabled: false,
      // Without a provider for every chain, the SDK would use public endpoints.
      chainProviders: Object.fromEntries(slugs.map((other) => [other, provider])),
    });

  const tokens = Object.keys(addressBook).filter((token) => addressBook[token]?.[slug] !== undefined);
  const addressOf = (token: string, name: string): string => String(addressBook[token]?.[slug]?.[name]);
  const withPool = tokens.filter(
    (token) => !["undefined", constants.AddressZero].includes(addressOf(token, "l2SaddleSwap")),
  );

  test("has code at every address of the SDK", async () => {
    const entries = tokens.flatMap((token) => Object.entries(addressBook[token]?.[slug] ?? {}));
    const addresses = entries.filter(([name, address]) => DEPLOYED.test(name) && address !== constants.AddressZero);
    const all = [
      String(sdkConfig.mainnet.chains[slug as "base"].multicall),
      ...addresses.map(([, address]) => address),
    ];
    expect(all.length).toBeGreaterThan(tokens.length);
    const codes = await Promise.all(all.map(async (address) => [address, await provider.getCode(String(address))]));
    expect(codes.filter(([, code]) => code === "0x")).toEqual([]);
  });

  test("tokens have the SDK's decimals and symbols", async () => {
    for (const token of tokens) {
      const decimals = getTokenDecimals(token);
      const canonical =
        slug === "ethereum" ? addressOf(token, "l1CanonicalToken") : addressOf(token, "l2CanonicalToken");
      if (canonical !== constants.AddressZero) {
        const contract = sdk.HopBridgeToken__factory.connect(canonical, provider);
        expect(await contract.decimals()).toBe(decimals);
        const symbol = (await contract.symbol()).replace(/^W(?=ETH|MATIC|XDAI)/, "").replace("XDAI", "DAI");
        expect([token, ...(slug === "ethereum" ? ["USDC"] : [])]).toContain(symbol);
      }
      if (!withPool.includes(token)) continue;
      const hToken = sdk.HopBridgeToken__factory.connect(addressOf(token, "l2HopBridgeToken"), provider);
      expect([await hToken.symbol(), await hToken.decimals()]).toEqual([`h${token}`, decimals]);
      expect(await hToken.owner()).toBe(addressOf(token, "l2Bridge"));
    }
  });

  test("pools start with the recorded state and hold their balances", async () => {
    for (const token of withPool) {
      const expected = golden.inputs.pools[`${token}.${slug}`];
      const pool = sdk.Swap__factory.connect(addressOf(token, "l2SaddleSwap"), provider);
      const { swapFee, lpToken } = await pool.swapStorage();
      const supply = await sdk.HopBridgeToken__factory.connect(lpToken, provider).totalSupply();
      const balances = [await pool.getTokenBalance(0), await pool.getTokenBalance(1)].map(String);
      expect({
        balances,
        aPrecise: (await pool.getAPrecise()).toString(),
        swapFee: swapFee.toString(),
        virtualPrice: (await pool.getVirtualPrice()).toString(),
        lpTotalSupply: supply.toString(),
      }).toEqual(pick(expected, ["balances", "aPrecise", "swapFee", "virtualPrice", "lpTotalSupply"]));
      for (const index of [0, 1]) {
        const pooledToken = sdk.HopBridgeToken__factory.connect(await pool.getToken(index), provider);
        expect((await pooledToken.balanceOf(pool.address)).toString()).toBe(balances[index]);
        expect((await pooledToken.totalSupply()).gte(balances[index] ?? "0")).toBe(true);
      }
      const [out] = await createBridge(token).calcFromHTokenAmountMulticall(slug, ["1000000"]);
      expect(out?.toString()).toBe((await pool.calculateSwap(1, 0, 1_000_000)).toString());
    }
  });

  test("bridges require the recorded fees, and wrappers accept the native coin of the chain", async () => {
    for (const token of tokens.filter((name) => golden.inputs.bridges[`${name}.${slug}`] !== undefined)) {
      const bridge = sdk.L2_Bridge__factory.connect(addressOf(token, "l2Bridge"), provider);
      expect({
        minBonderFeeAbsolute: (await bridge.minBonderFeeAbsolute()).toString(),
        minBonderBps: (await bridge.minBonderBps()).toString(),
      }).toEqual(pick(golden.inputs.bridges[`${token}.${slug}`], ["minBonderFeeAbsolute", "minBonderBps"]));
      if (!withPool.includes(token)) continue;
      const wrapper = sdk.L2_AmmWrapper__factory.connect(addressOf(token, "l2AmmWrapper"), provider);
      expect(await wrapper.l2CanonicalTokenIsEth()).toBe(isNativeCoin(token, slug));
    }
  });

  test("the SDK's bond estimates succeed for every route to the chain, only from its bonder", async () => {
    const routes = tokens.flatMap((token) =>
      Object.entries(bonders[token] ?? {}).flatMap(([source, to]) =>
        to[slug] && token !== "USDC" ? [{ token, source }] : [],
      ),
    );
    expect(routes.length).toBeGreaterThan(0);
    for (const { token, source } of routes) {
      const bridge = createBridge(token);
      if (bridge.getShouldUseCctpBridge()) continue;
      const transaction = await bridge.populateBondWithdrawalTx(source, slug);
      expect((await provider.estimateGas(transaction)).gt(50_000)).toBe(true);
      await expect(provider.estimateGas({ ...transaction, from: stranger })).rejects.toThrow(/not a bonder/);
    }
  });

  if (cctpSlugs.includes(slug)) {
    test("CCTP has the recorded fees and limits and passes the SDK's message estimate", async () => {
      const l1 = addressBook.USDC?.[slug]?.cctpL1Bridge;
      const bridge = sdk.L1_HopCCTPImplementation__factory.connect(
        String(l1 ?? addressOf("USDC", "cctpL2Bridge")),
        provider,
      );
      const messenger = sdk.CCTPTokenMessenger__factory.connect(await bridge.cctp(), provider);
      const minter = sdk.CCTPTokenMinter__factory.connect(await messenger.localMinter(), provider);
      expect({
        minBonderFee: (await bridge.minBonderFee()).toString(),
        burnLimit: (await minter.burnLimitsPerMessage(await bridge.nativeToken())).toString(),
      }).toEqual(pick(golden.inputs.cctp[slug], ["minBonderFee", "burnLimit"]));

      const quoter = createBridge("USDC");
      const source = slug === "polygon" ? "arbitrum" : "polygon";
      const fallback = 500_000;
      const gas = await quoter.getCctpReceiveMessageEstimateGasLimit(source, slug);
      expect(gas.gt(100_000) && gas.lt(fallback)).toBe(true);
      quoter.attestation = (hash) => signAttestation(hash.replace(/..$/, "00"));
      expect((await quoter.getCctpReceiveMessageEstimateGasLimit(source, slug)).toNumber()).toBe(fallback);
    });
  }

  if (recordedSwaps(slug).length > 0) {
    test("the SDK's Uniswap quotes equal the recorded ones", async () => {
      for (const { amount, out } of recordedSwaps(slug)) {
        const quoted = await createBridge("USDC.e").calcUniswapSwapAmountOut(slug, BigNumber.from(amount));
        expect(String(quoted)).toBe(out);
      }
    });
  }

  if (["optimism", "base"].includes(slug)) {
    test("the L1 fee depends on the bytes of the transaction", async () => {
      const oracle = new Contract(
        GAS_PRICE_ORACLE_ADDRESS,
        ["function getL1Fee(bytes) view returns (uint256)", "function setL1BaseFee(uint256)"],
        provider,
      );
      const fee = async (data: string): Promise<bigint> => BigNumber.from(await oracle.getL1Fee?.(data)).toBigInt();
      const [none, zero, one] = [await fee("0x"), await fee("0x00"), await fee("0x01")];
      expect(one - none).toBe(4n * (zero - none));
      expect(zero - none).toBe((4n * 10_000_000_000n * 684_000n) / 1_000_000n);
      const bondFee = (await createBridge("ETH").getOptimismL1Fee("arbitrum", slug)).toBigInt();
      expect(bondFee).toBeGreaterThan(one);

      const double = oracle.interface.encodeFunctionData("setL1BaseFee", [20_000_000_000]);
      await chains.send(slug, { from: stranger, to: oracle.address, data: double });
      expect(await fee("0x01")).toBe(2n * one);
    });
  }
});

/** Returns swaps of USDC.e that stay within one tick range: the recorded pools have no liquidity data beyond it. */
function recordedSwaps(slug: string): { amount: string; out: string }[] {
  return golden.cases.flatMap(({ query, destination }) => {
    const [out] = destination.uniswapOut;
    const isSwap = query.token === "USDC.e" && query.fromChain === slug && BigInt(query.amount) <= 10_000_000_000n;
    return isSwap && out !== undefined ? [{ amount: query.amount, out }] : [];
  });
}

function pick<T extends object, K extends keyof T>(from: T | undefined, keys: readonly K[]): Partial<T> {
  return Object.fromEntries(keys.map((key) => [key, from?.[key]])) as Partial<T>;
}
