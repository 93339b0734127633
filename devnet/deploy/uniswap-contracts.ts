import { createRequire } from "node:module";
import { utils } from "ethers";
import type { JsonRpc } from "../chain/json-rpc.js";
import { uniswapLiquidityProvider } from "./accounts.js";
import { getTokenContracts } from "./address-book.js";
import type { ContractCall, ContractPlacement } from "./contract-placement.js";
import type { InitialBalance } from "./token-contracts.js";

const require = createRequire(import.meta.url);

interface UniswapArtifact {
  readonly abi: string[];
  readonly bytecode: string;
}

// Resolved lazily and by literal names, so that the check for unused dependencies finds the packages.
const readFactory = (): UniswapArtifact =>
  require("@uniswap/v3-core/artifacts/contracts/UniswapV3Factory.sol/UniswapV3Factory.json");
const readQuoter1 = (): UniswapArtifact =>
  require("@uniswap/v3-periphery/artifacts/contracts/lens/Quoter.sol/Quoter.json");
const readQuoter2 = (): UniswapArtifact =>
  require("@uniswap/v3-periphery/artifacts/contracts/lens/QuoterV2.sol/QuoterV2.json");

/** Uniswap v3 on one chain: Uniswap's own contracts at the addresses that the SDK hard-codes. */
interface UniswapContracts {
  /** Address of the factory; pool addresses derive from it. */
  readonly factory: string;
  readonly quoter: string;
  readonly readQuoter: () => UniswapArtifact;
  readonly router: string;
}

const defaultContracts: UniswapContracts = {
  factory: "0x1F98431c8aD98523631AE4a59f267346ea31F984",
  quoter: "0xb27308f9F90D607463bb33eA1BeBb41C27CE5AB6",
  readQuoter: readQuoter1,
  router: "0x68b3465833fb72A70ecDF485E0e4C7bD8665Fc45",
};

const contractsByChain: Readonly<Record<string, UniswapContracts>> = {
  polygon: defaultContracts,
  optimism: defaultContracts,
  arbitrum: defaultContracts,
  base: {
    factory: "0x33128a8fC17869897dcE68Ed026d694621f6FDfD",
    quoter: "0x3d4e44Eb1374240CE5F1B871ab261CD16335B76a",
    readQuoter: readQuoter2,
    router: "0x2626664c2603336E57B271c5C0b26F421741e481",
  },
};

const POOL_FEE = 100;
const TICK_SPACING = 1;

/** Initial sqrtPriceX96 of the pair: a few hundredths of a percent off 1. */
const SQRT_PRICES: Readonly<Record<string, bigint>> = { polygon: 79_216_277_398_436_411_886_513_684_480n };
const DEFAULT_SQRT_PRICE = 79_240_049_413_260_447_610_577_092_608n;

/** Positions: full range, around the price, at the price, and away from it, so that swaps cross ticks. */
const POSITIONS: readonly (readonly [lower: number, upper: number, liquidity: bigint])[] = [
  [-887_272, 887_272, 50_000_000_000n],
  [-100, 100, 1_000_000_000_000_000n],
  [-40, -10, 1_500_000_000_000_000n],
  [10, 40, 1_500_000_000_000_000n],
];
const NARROW_RANGE_TICKS = 8;
const NARROW_LIQUIDITY: Readonly<Record<string, bigint>> = { polygon: 3_900_000_000_000_000n };
const DEFAULT_NARROW_LIQUIDITY = 2_400_000_000_000_000n;
/** Raw units of each token of the liquidity provider: more than the positions need. */
const PROVIDER_FUNDS = 20_000_000_000_000n;

export function findUniswapContracts(slug: string): UniswapContracts | undefined {
  return contractsByChain[slug];
}

/** Returns the placements of our helper contracts for Uniswap. */
export function placeUniswapContracts(slug: string): readonly ContractPlacement[] {
  const uniswap = contractsByChain[slug];
  if (uniswap === undefined) return [];
  return [
    {
      contract: "ExactInputRouter",
      address: uniswap.router,
      initializer: { method: "initialize", values: [uniswap.factory] },
    },
    { contract: "LiquidityProvider", address: uniswapLiquidityProvider },
  ];
}

export function listUniswapBalances(slug: string): readonly InitialBalance[] {
  if (contractsByChain[slug] === undefined) return [];
  return getTokenPair(slug).map((token) => ({ token, holder: uniswapLiquidityProvider, amount: PROVIDER_FUNDS }));
}

/**
 * Places Uniswap's factory and quoter at their addresses and creates the pool of native and bridged USDC with liquidity.
 * @param makeCalls makes calls in a transaction and waits for it
 */
export async function deployUniswap(
  rpc: JsonRpc,
  slug: string,
  makeCalls: (calls: readonly ContractCall[]) => Promise<void>,
): Promise<void> {
  const uniswap = contractsByChain[slug];
  if (uniswap === undefined) return;
  const factoryArtifact = readFactory();
  const quoterArtifact = uniswap.readQuoter();
  const wrappedNative = getTokenContracts("ETH", slug).get("l2CanonicalToken");
  const quoterArguments = utils.defaultAbiCoder.encode(["address", "address"], [uniswap.factory, wrappedNative]);

  await rpc("anvil_setCode", [uniswap.factory, factoryArtifact.bytecode]);
  await rpc("anvil_setCode", [uniswap.quoter, utils.hexConcat([quoterArtifact.bytecode, quoterArguments])]);
  // The factory's constructor stores its owner (the sender of this call) and the default fee tiers.
  await makeCalls([{ to: uniswap.factory, data: "0x" }]);
  await Promise.all([uniswap.factory, uniswap.quoter].map((address) => replaceCodeByReturnData(rpc, address)));

  const factory = new utils.Interface(factoryArtifact.abi);
  await makeCalls([
    { to: uniswap.factory, data: factory.encodeFunctionData("enableFeeAmount", [POOL_FEE, TICK_SPACING]) },
    { to: uniswap.factory, data: factory.encodeFunctionData("createPool", [...getTokenPair(slug), POOL_FEE]) },
  ]);
  const getPool = {
    to: uniswap.factory,
    data: factory.encodeFunctionData("getPool", [...getTokenPair(slug), POOL_FEE]),
  };
  const [pool] = factory.decodeFunctionResult("getPool", (await rpc("eth_call", [getPool, "latest"])) as string);
  await makeCalls(buildPoolInitialization(slug, pool as string));
}

/**
 * Executes the creation code at an address and replaces it by the runtime code that it returns, so that immutables, such as
 * the contract's own address, are correct.
 */
async function replaceCodeByReturnData(rpc: JsonRpc, address: string): Promise<void> {
  await rpc("anvil_setCode", [address, await rpc("eth_call", [{ to: address, data: "0x" }, "latest"])]);
}

function buildPoolInitialization(slug: string, pool: string): readonly ContractCall[] {
  const poolAbi = new utils.Interface(["function initialize(uint160 sqrtPriceX96)"]);
  const providerAbi = new utils.Interface([
    "function provide(address pool, int24 lower, int24 upper, uint128 liquidity)",
  ]);
  const narrow = [-NARROW_RANGE_TICKS, NARROW_RANGE_TICKS, NARROW_LIQUIDITY[slug] ?? DEFAULT_NARROW_LIQUIDITY] as const;
  return [
    { to: pool, data: poolAbi.encodeFunctionData("initialize", [SQRT_PRICES[slug] ?? DEFAULT_SQRT_PRICE]) },
    ...[...POSITIONS, narrow].map(([lower, upper, liquidity]) => ({
      to: uniswapLiquidityProvider,
      data: providerAbi.encodeFunctionData("provide", [pool, lower, upper, liquidity]),
    })),
  ];
}

function getTokenPair(slug: string): readonly [string, string] {
  return [
    getTokenContracts("USDC", slug).get("l2CanonicalToken"),
    getTokenContracts("USDC.e", slug).get("l2CanonicalToken"),
  ];
}
