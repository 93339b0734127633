import { prepareQuotes } from "../src/quotes/math/quote.js";
import type { BridgeSnapshot, CctpSnapshot, Snapshot } from "../src/quotes/math/route-snapshot.js";
import type { Pool } from "../src/quotes/math/stable-swap.js";

// How long the arithmetic of one quote takes, on each kind of route: another amount each time, from a snapshot that is
// prepared already; and how long it takes to prepare one.

const rounds = 5;
const quotesPerRound = 100_000;
const preparationsPerRound = 10_000;
const slippage = 0.5;
const nowSeconds = 1_800_000_000;

const gwei = 1_000_000_000n;
const oneEther = 10n ** 18n;

const optimismPool: Pool = {
  decimals: 18,
  balances: [1_234n * oneEther + 987_654_321n, 1_100n * oneEther + 123_456_789n],
  aPrecise: 20_000n,
  swapFee: 4_000_000n,
};
const arbitrumPool: Pool = { ...optimismPool, balances: [2_345n * oneEther + 55n, 2_600n * oneEther + 77n] };

const l2ToL2: BridgeSnapshot = {
  kind: "bridge",
  decimals: 18,
  sourceIsL1: false,
  destinationSlug: "optimism",
  destinationIsL1: false,
  multiplier: 1.9,
  sourcePool: arbitrumPool,
  destinationPool: optimismPool,
  bonder: {
    feeBps: 12,
    leastFee: 83_333_333_333_333n,
    delivery: { gasPrice: gwei / 20n, gas: 190_000n, l1Fee: 12_345_678_901_234n },
    nativeUsd: 3000,
    tokenUsd: 3000,
  },
  relayerFee: undefined,
};

const cctp: CctpSnapshot = {
  kind: "cctp",
  decimals: 6,
  sourceIsL1: false,
  destinationSlug: "arbitrum",
  destinationIsL1: false,
  multiplier: 1.9,
  minBonderFee: 100_000n,
  delivery: { gasPrice: gwei / 20n, gas: 210_000n, l1Fee: 0n },
  nativeUsd: 3000,
  tokenUsd: 1,
};

const kinds: Readonly<Record<string, Snapshot>> = {
  "with pools, L2 to L2": l2ToL2,
  "with pools, L2 to L1": { ...l2ToL2, destinationSlug: "ethereum", destinationIsL1: true, destinationPool: undefined },
  "with pools, L1 to L2": { ...l2ToL2, sourceIsL1: true, sourcePool: undefined, bonder: undefined },
  "without pools (HOP)": { ...l2ToL2, sourcePool: undefined, destinationPool: undefined },
  "native USDC by CCTP": cctp,
};

const width = Math.max(...Object.keys(kinds).map((name) => name.length));
console.log(`the core alone: median of ${rounds} rounds of ${quotesPerRound} quotes`);
for (const [name, snapshot] of Object.entries(kinds)) {
  const quote = nanosecondsEach(quotesPerRound, quotes(snapshot));
  const preparation = nanosecondsEach(preparationsPerRound, preparations(snapshot));
  console.log(
    `  ${name.padEnd(width)} ${quote.toFixed(0).padStart(7)} ns a quote ${preparation.toFixed(0).padStart(7)} ns for a snapshot and its first`,
  );
}

/** Amounts of the size of one token, none twice. */
function amountOf(snapshot: Snapshot, index: number): bigint {
  return 10n ** BigInt(snapshot.decimals) + BigInt(index) * 1_000_003n;
}

function quotes(snapshot: Snapshot): (count: number) => bigint {
  const price = prepareQuotes(snapshot);
  let index = 0;
  return (count) => {
    let sum = 0n;
    for (const end = index + count; index < end; index++) {
      sum += price(amountOf(snapshot, index), slippage, nowSeconds).estimatedReceived;
    }
    return sum;
  };
}

function preparations(snapshot: Snapshot): (count: number) => bigint {
  return (count) => {
    let sum = 0n;
    for (let index = 0; index < count; index++) {
      sum += prepareQuotes(snapshot)(amountOf(snapshot, index), slippage, nowSeconds).estimatedReceived;
    }
    return sum;
  };
}

/** Median of the rounds after one that warms up. What the work gives is used, so that none of it can be left out. */
function nanosecondsEach(count: number, work: (count: number) => bigint): number {
  let sum = work(count);
  const times = Array.from({ length: rounds }, () => {
    const began = process.hrtime.bigint();
    sum += work(count);
    return Number(process.hrtime.bigint() - began) / count;
  });
  if (sum <= 0n) throw new Error("nothing was received");
  return times.sort((a, b) => a - b)[Math.floor(rounds / 2)] ?? Number.NaN;
}
