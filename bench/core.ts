import { RouteQuoter } from "../src/quotes/math/quote.js";
import type { BridgeSnapshot, CctpSnapshot, RouteSnapshot } from "../src/quotes/math/route-snapshot.js";
import type { StableSwapPool } from "../src/quotes/math/stable-swap.js";

// Measures the arithmetic of one quote for each kind of route: distinct amounts on a prepared snapshot, the preparation of
// a snapshot with its first quote, what the details of view FULL add, and the search for the amount that brings another.

const ROUNDS = 5;
const QUOTES_PER_ROUND = 100_000;
const PREPARATIONS_PER_ROUND = 10_000;
const SEARCHES_PER_ROUND = 2_000;
/** More than any pool holds, and than an amount can bring without pools. */
const UNREACHABLE_AMOUNT = 2n ** 256n - 10n ** 40n;
const SLIPPAGE = 0.5;
const NOW_SECONDS = 1_800_000_000;

const GWEI = 1_000_000_000n;
const ONE_ETHER = 10n ** 18n;

const OPTIMISM_POOL: StableSwapPool = {
  decimals: 18,
  balances: [1_234n * ONE_ETHER + 987_654_321n, 1_100n * ONE_ETHER + 123_456_789n],
  aPrecise: 20_000n,
  swapFee: 4_000_000n,
};
const ARBITRUM_POOL: StableSwapPool = {
  ...OPTIMISM_POOL,
  balances: [2_345n * ONE_ETHER + 55n, 2_600n * ONE_ETHER + 77n],
};

const L2_TO_L2_SNAPSHOT: BridgeSnapshot = {
  kind: "bridge",
  decimals: 18,
  sourceSlug: "arbitrum",
  sourceIsL1: false,
  destinationSlug: "optimism",
  destinationIsL1: false,
  feeMultiplier: 1.9,
  feeBps: 12,
  sourcePool: ARBITRUM_POOL,
  destinationPool: OPTIMISM_POOL,
  bonder: {
    minFee: 83_333_333_333_333n,
    delivery: { gasPrice: GWEI / 20n, gas: 190_000n, l1Fee: 12_345_678_901_234n },
    nativeUsd: 3000,
    tokenUsd: 3000,
  },
  relayerFee: undefined,
};

const CCTP_SNAPSHOT: CctpSnapshot = {
  kind: "cctp",
  decimals: 6,
  sourceSlug: "base",
  sourceIsL1: false,
  destinationSlug: "arbitrum",
  destinationIsL1: false,
  feeMultiplier: 1.9,
  feeBps: 12,
  burnLimit: undefined,
  minBonderFee: 100_000n,
  sourceSwap: undefined,
  delivery: { gasPrice: GWEI / 20n, gas: 210_000n, l1Fee: 0n },
  nativeUsd: 3000,
  tokenUsd: 1,
};

const SNAPSHOTS_BY_KIND: Readonly<Record<string, RouteSnapshot>> = {
  "with pools, L2 to L2": L2_TO_L2_SNAPSHOT,
  "with pools, L2 to L1": {
    ...L2_TO_L2_SNAPSHOT,
    destinationSlug: "ethereum",
    destinationIsL1: true,
    destinationPool: undefined,
  },
  "with pools, L1 to L2": { ...L2_TO_L2_SNAPSHOT, sourceIsL1: true, sourcePool: undefined, bonder: undefined },
  "without pools (HOP)": { ...L2_TO_L2_SNAPSHOT, sourcePool: undefined, destinationPool: undefined },
  "native USDC by CCTP": CCTP_SNAPSHOT,
};

const width = Math.max(...Object.keys(SNAPSHOTS_BY_KIND).map((name) => name.length));
console.log(`quote arithmetic alone: median of ${ROUNDS} rounds of ${QUOTES_PER_ROUND} quotes`);
for (const [name, snapshot] of Object.entries(SNAPSHOTS_BY_KIND)) {
  const quote = medianNanoseconds(QUOTES_PER_ROUND, createQuoteLoop(snapshot));
  const preparation = medianNanoseconds(PREPARATIONS_PER_ROUND, createPreparationLoop(snapshot));
  const explanation = medianNanoseconds(QUOTES_PER_ROUND, createExplanationLoop(snapshot));
  const search = medianNanoseconds(SEARCHES_PER_ROUND, createSearchLoop(snapshot));
  const futileSearch = medianNanoseconds(SEARCHES_PER_ROUND, createSearchLoop(snapshot, UNREACHABLE_AMOUNT));
  const columns = [
    `${quote.toFixed(0).padStart(7)} ns per quote`,
    `${preparation.toFixed(0).padStart(7)} ns to prepare a snapshot and quote once`,
    `${(explanation - quote).toFixed(0).padStart(7)} ns more for view FULL`,
    `${search.toFixed(0).padStart(7)} ns to find the amount for receiveAmount`,
    `${futileSearch.toFixed(0).padStart(7)} ns to find that there is none`,
  ];
  console.log(`  ${name.padEnd(width)} ${columns.join(" ")}`);
}

/** Returns an amount of about one token; no index repeats one. */
function amountAt(snapshot: RouteSnapshot, index: number): bigint {
  return 10n ** BigInt(snapshot.decimals) + BigInt(index) * 1_000_003n;
}

function createQuoteLoop(snapshot: RouteSnapshot): (count: number) => bigint {
  const quoter = new RouteQuoter(snapshot);
  let index = 0;
  return (count) => {
    let sum = 0n;
    for (const end = index + count; index < end; index++) {
      sum += quoter.quote(amountAt(snapshot, index), SLIPPAGE, NOW_SECONDS).estimatedReceived;
    }
    return sum;
  };
}

function createExplanationLoop(snapshot: RouteSnapshot): (count: number) => bigint {
  const quoter = new RouteQuoter(snapshot);
  let index = 0;
  return (count) => {
    let sum = 0n;
    for (const end = index + count; index < end; index++) {
      const { quote, breakdown } = quoter.explain(amountAt(snapshot, index), SLIPPAGE, NOW_SECONDS);
      sum += quote.estimatedReceived + breakdown.totalFee + (quoter.findMinAmount() ?? 0n);
    }
    return sum;
  };
}

function createSearchLoop(snapshot: RouteSnapshot, offset = 0n): (count: number) => bigint {
  const quoter = new RouteQuoter(snapshot);
  let index = 0;
  return (count) => {
    let sum = 1n;
    for (const end = index + count; index < end; index++)
      sum += quoter.findAmountIn(amountAt(snapshot, index) + offset) ?? 0n;
    return sum;
  };
}

function createPreparationLoop(snapshot: RouteSnapshot): (count: number) => bigint {
  return (count) => {
    let sum = 0n;
    for (let index = 0; index < count; index++) {
      sum += new RouteQuoter(snapshot).quote(amountAt(snapshot, index), SLIPPAGE, NOW_SECONDS).estimatedReceived;
    }
    return sum;
  };
}

/** Returns the median time per item after one warm-up round. The results are summed so that the compiler cannot remove the work. */
function medianNanoseconds(count: number, work: (count: number) => bigint): number {
  let sum = work(count);
  const times = Array.from({ length: ROUNDS }, () => {
    const began = process.hrtime.bigint();
    sum += work(count);
    return Number(process.hrtime.bigint() - began) / count;
  });
  if (sum <= 0n) throw new Error("the quotes sum up to nothing");
  return times.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? Number.NaN;
}
