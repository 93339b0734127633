/** How often a chain produces blocks. */
export interface BlockTime {
  /** Usual time between blocks, in milliseconds. */
  readonly ms: number;
  /** Whether blocks only come with transactions, so that a healthy chain can be without one for minutes. */
  readonly isOnDemand: boolean;
}

/** The block times of the chains of mainnet, which goerli's chains share. */
const BLOCK_TIMES: Readonly<Record<string, BlockTime>> = {
  // Consensus specification: SECONDS_PER_SLOT is 12.
  ethereum: { ms: 12_000, isOnDemand: false },
  // OP Stack: l2_block_time of the rollup configuration is 2.
  optimism: { ms: 2_000, isOnDemand: false },
  // Arbitrum documentation, "Block numbers and time": about 250 ms under load; the sequencer makes no empty blocks.
  arbitrum: { ms: 250, isOnDemand: true },
  // Bor's genesis: the period is 2.
  polygon: { ms: 2_000, isOnDemand: false },
  // Gnosis chain specification: SECONDS_PER_SLOT is 5.
  gnosis: { ms: 5_000, isOnDemand: false },
  // As arbitrum.
  nova: { ms: 250, isOnDemand: true },
  // As optimism.
  base: { ms: 2_000, isOnDemand: false },
  // Linea documentation, "Block time": 2 s.
  linea: { ms: 2_000, isOnDemand: false },
  // Polygon zkEVM documentation, "Trusted sequencer": batches of transactions, a few seconds apart; none without them.
  polygonzk: { ms: 3_000, isOnDemand: true },
};
/** For chains of the SDK that are not in the table. */
const DEFAULT_BLOCK_TIME: BlockTime = { ms: 2_000, isOnDemand: false };

const MAX_MISSED_BLOCKS = 20;
const MIN_MAX_BLOCK_AGE_MS = 2 * 60_000;
const ON_DEMAND_MAX_BLOCK_AGE_MS = 15 * 60_000;

/** Returns the block time of a chain by slug. */
export function getBlockTime(slug: string): BlockTime {
  return BLOCK_TIMES[slug] ?? DEFAULT_BLOCK_TIME;
}

/** Returns the age of the newest block beyond which a chain with this block time stands still, in milliseconds. */
export function getMaxBlockAgeMs({ ms, isOnDemand }: BlockTime): number {
  return isOnDemand ? ON_DEMAND_MAX_BLOCK_AGE_MS : Math.max(MIN_MAX_BLOCK_AGE_MS, MAX_MISSED_BLOCKS * ms);
}
