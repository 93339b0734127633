/** The Uniswap v3 pool that swaps USDC.e for USDC on an L2 before a CCTP transfer. */
export interface UsdcSwapPool {
  readonly address: string;
  readonly quoterAddress: string;
  /** USDC.e. */
  readonly bridgedUsdc: string;
  /** USDC. */
  readonly nativeUsdc: string;
  /** The pool's fee in millionths. It never changes: the pool's address is derived from it. */
  readonly feePips: bigint;
}

const DEFAULT_QUOTER_ADDRESS = "0xb27308f9F90D607463bb33eA1BeBb41C27CE5AB6";

/** Pools of mainnet by slug. The SDK contains the same addresses; a test compares the quotes. */
const USDC_SWAP_POOLS: Readonly<Record<string, UsdcSwapPool>> = {
  optimism: {
    address: "0x2aB22ac86b25BD448A4D9dC041Bd2384655299c4",
    quoterAddress: DEFAULT_QUOTER_ADDRESS,
    bridgedUsdc: "0x7F5c764cBc14f9669B88837ca1490cCa17c31607",
    nativeUsdc: "0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85",
    feePips: 100n,
  },
  arbitrum: {
    address: "0x8e295789c9465487074a65b1ae9Ce0351172393f",
    quoterAddress: DEFAULT_QUOTER_ADDRESS,
    bridgedUsdc: "0xFF970A61A04b1cA14834A43f5dE4533eBDDB5CC8",
    nativeUsdc: "0xaf88d065e77c8cC2239327C5EDb3A432268e5831",
    feePips: 100n,
  },
  polygon: {
    address: "0xD36ec33c8bed5a9F7B6630855f1533455b98a418",
    quoterAddress: DEFAULT_QUOTER_ADDRESS,
    bridgedUsdc: "0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174",
    nativeUsdc: "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359",
    feePips: 100n,
  },
  base: {
    address: "0x06959273E9A65433De71F5A452D529544E07dDD0",
    quoterAddress: "0x3d4e44Eb1374240CE5F1B871ab261CD16335B76a",
    bridgedUsdc: "0xd9aAEc86B65D86f6A7B5B1b0c42FFA531710b6CA",
    nativeUsdc: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
    feePips: 100n,
  },
};

/** Returns the pool on a chain; undefined where USDC.e is not swapped. */
export function findUsdcSwapPool(slug: string): UsdcSwapPool | undefined {
  return USDC_SWAP_POOLS[slug];
}
