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
const book: Record<string, Record<string, Record<string, string | number>>> = sdkConfig.mainnet.addresses;
const bonders: Record<string, Record<string, Record<string, string>>> = sdkConfig.mainnet.bonders;
const stranger = "0x00000000000000000000000000000000000A0001";
const slugs = [...hopChains.keys()];
const cctpSlugs = Object.keys(golden.inputs.cctp);

/** The kinds of contract that quotes, sends and statuses touch. The rest of the book is other people's canonical bridges. */
const placed =
  /^(l1CanonicalToken|l1Bridge|l2CanonicalToken|l2Bridge|l2HopBridgeToken|l2AmmWrapper|l2Saddle.*|cctp(L1|L2)Bridge|cctpMessageTransmitter)$/;

/** What the SDK would fetch from Circle comes from the local attesters. */
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

  const bridgeOf = (token: string): LocalBridge =>
    new LocalBridge({
      network: "mainnet",
      token,
      configFileFetchEnabled: false,
      // Whatever else the SDK asked for would go to a public endpoint.
      chainProviders: Object.fromEntries(slugs.map((other) => [other, provider])),
    });

  const tokens = Object.keys(book).filter((token) => book[token]?.[slug] !== undefined);
  const contractOf = (token: string, name: string): string => String(book[token]?.[slug]?.[name]);
  const withPool = tokens.filter(
    (token) => !["undefined", constants.AddressZero].includes(contractOf(token, "l2SaddleSwap")),
  );

  test("code stands at every address of the SDK", async () => {
    const entries = tokens.flatMap((token) => Object.entries(book[token]?.[slug] ?? {}));
    const addresses = entries.filter(([name, address]) => placed.test(name) && address !== constants.AddressZero);
    const all = [
      String(sdkConfig.mainnet.chains[slug as "base"].multicall),
      ...addresses.map(([, address]) => address),
    ];
    expect(all.length).toBeGreaterThan(tokens.length);
    const codes = await Promise.all(all.map(async (address) => [address, await provider.getCode(String(address))]));
    expect(codes.filter(([, code]) => code === "0x")).toEqual([]);
  });

  test("tokens have the SDK's decimals and say what they are", async () => {
    for (const token of tokens) {
      const decimals = getTokenDecimals(token);
      const canonical =
        slug === "ethereum" ? contractOf(token, "l1CanonicalToken") : contractOf(token, "l2CanonicalToken");
      if (canonical !== constants.AddressZero) {
        const read = sdk.HopBridgeToken__factory.connect(canonical, provider);
        expect(await read.decimals()).toBe(decimals);
        const symbol = (await read.symbol()).replace(/^W(?=ETH|MATIC|XDAI)/, "").replace("XDAI", "DAI");
        expect([token, ...(slug === "ethereum" ? ["USDC"] : [])]).toContain(symbol);
      }
      if (!withPool.includes(token)) continue;
      const hToken = sdk.HopBridgeToken__factory.connect(contractOf(token, "l2HopBridgeToken"), provider);
      expect([await hToken.symbol(), await hToken.decimals()]).toEqual([`h${token}`, decimals]);
      expect(await hToken.owner()).toBe(contractOf(token, "l2Bridge"));
    }
  });

  test("pools start as recorded and own what they would pay out", async () => {
    for (const token of withPool) {
      const expected = golden.inputs.pools[`${token}.${slug}`];
      const pool = sdk.Swap__factory.connect(contractOf(token, "l2SaddleSwap"), provider);
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
        const held = sdk.HopBridgeToken__factory.connect(await pool.getToken(index), provider);
        expect((await held.balanceOf(pool.address)).toString()).toBe(balances[index]);
        expect((await held.totalSupply()).gte(balances[index] ?? "0")).toBe(true);
      }
      const [out] = await bridgeOf(token).calcFromHTokenAmountMulticall(slug, ["1000000"]);
      expect(out?.toString()).toBe((await pool.calculateSwap(1, 0, 1_000_000)).toString());
    }
  });

  test("bridges ask for the recorded fees, and what the wrapper takes is the chain's coin where it should be", async () => {
    for (const token of tokens.filter((name) => golden.inputs.bridges[`${name}.${slug}`] !== undefined)) {
      const bridge = sdk.L2_Bridge__factory.connect(contractOf(token, "l2Bridge"), provider);
      expect({
        minBonderFeeAbsolute: (await bridge.minBonderFeeAbsolute()).toString(),
        minBonderBps: (await bridge.minBonderBps()).toString(),
      }).toEqual(pick(golden.inputs.bridges[`${token}.${slug}`], ["minBonderFeeAbsolute", "minBonderBps"]));
      if (!withPool.includes(token)) continue;
      const wrapper = sdk.L2_AmmWrapper__factory.connect(contractOf(token, "l2AmmWrapper"), provider);
      expect(await wrapper.l2CanonicalTokenIsEth()).toBe(isNativeCoin(token, slug));
    }
  });

  test("the SDK's bond estimates succeed for every route that ends here, from its bonder only", async () => {
    const routes = tokens.flatMap((token) =>
      Object.entries(bonders[token] ?? {}).flatMap(([source, to]) =>
        to[slug] && token !== "USDC" ? [{ token, source }] : [],
      ),
    );
    expect(routes.length).toBeGreaterThan(0);
    for (const { token, source } of routes) {
      const bridge = bridgeOf(token);
      if (bridge.getShouldUseCctpBridge()) continue;
      const transaction = await bridge.populateBondWithdrawalTx(source, slug);
      expect((await provider.estimateGas(transaction)).gt(50_000)).toBe(true);
      await expect(provider.estimateGas({ ...transaction, from: stranger })).rejects.toThrow(/not a bonder/);
    }
  });

  if (cctpSlugs.includes(slug)) {
    test("CCTP: fees, limits, and the SDK's own message estimate", async () => {
      const l1 = book.USDC?.[slug]?.cctpL1Bridge;
      const bridge = sdk.L1_HopCCTPImplementation__factory.connect(
        String(l1 ?? contractOf("USDC", "cctpL2Bridge")),
        provider,
      );
      const messenger = sdk.CCTPTokenMessenger__factory.connect(await bridge.cctp(), provider);
      const minter = sdk.CCTPTokenMinter__factory.connect(await messenger.localMinter(), provider);
      expect({
        minBonderFee: (await bridge.minBonderFee()).toString(),
        burnLimit: (await minter.burnLimitsPerMessage(await bridge.nativeToken())).toString(),
      }).toEqual(pick(golden.inputs.cctp[slug], ["minBonderFee", "burnLimit"]));

      const quoter = bridgeOf("USDC");
      const source = slug === "polygon" ? "arbitrum" : "polygon";
      const failed = 500_000;
      const gas = await quoter.getCctpReceiveMessageEstimateGasLimit(source, slug);
      expect(gas.gt(100_000) && gas.lt(failed)).toBe(true);
      quoter.attestation = (hash) => signAttestation(hash.replace(/..$/, "00"));
      expect((await quoter.getCctpReceiveMessageEstimateGasLimit(source, slug)).toNumber()).toBe(failed);
    });
  }

  if (recordedSwaps(slug).length > 0) {
    test("the SDK's Uniswap quotes are the recorded ones", async () => {
      for (const { amount, out } of recordedSwaps(slug)) {
        const answer = await bridgeOf("USDC.e").calcUniswapSwapAmountOut(slug, BigNumber.from(amount));
        expect(String(answer)).toBe(out);
      }
    });
  }

  if (["optimism", "base"].includes(slug)) {
    test("the L1 fee follows the bytes of the transaction", async () => {
      const oracle = new Contract(
        GAS_PRICE_ORACLE_ADDRESS,
        ["function getL1Fee(bytes) view returns (uint256)", "function setL1BaseFee(uint256)"],
        provider,
      );
      const fee = async (data: string): Promise<bigint> => BigNumber.from(await oracle.getL1Fee?.(data)).toBigInt();
      const [none, zero, one] = [await fee("0x"), await fee("0x00"), await fee("0x01")];
      expect(one - none).toBe(4n * (zero - none));
      expect(zero - none).toBe((4n * 10_000_000_000n * 684_000n) / 1_000_000n);
      const bondFee = (await bridgeOf("ETH").getOptimismL1Fee("arbitrum", slug)).toBigInt();
      expect(bondFee).toBeGreaterThan(one);

      const double = oracle.interface.encodeFunctionData("setL1BaseFee", [20_000_000_000]);
      await chains.send(slug, { from: stranger, to: oracle.address, data: double });
      expect(await fee("0x01")).toBe(2n * one);
    });
  }
});

/** Swaps of USDC.e that leave the price where it is: what the recorded pools hold further out is not known. */
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
