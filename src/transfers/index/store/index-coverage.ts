import type { CursorRow } from "./schema.js";

/** The contiguous range of a chain's blocks whose events are indexed. */
export interface IndexCoverage {
  /** The first block; 0 for the chain's beginning. */
  readonly fromBlock: number;
  /** Time of that block, Unix seconds; 0 for the chain's beginning. All later deliveries are indexed. */
  readonly fromTimestamp: number;
  /** The last block. */
  readonly toBlock: number;
  /** When that block was observed as the chain's latest, in milliseconds since 1970. */
  readonly observedAtMs: number;
  /** The last block that was read when it was final. */
  readonly finalizedBlock: number;
}

/** The part of a chain's coverage that statuses need. */
export type CoverageTimes = Pick<IndexCoverage, "fromTimestamp" | "observedAtMs">;

export function toCoverageTimes(fromTimestamp: number | null, observedAtMs: number | null): CoverageTimes | undefined {
  return fromTimestamp === null || observedAtMs === null ? undefined : { fromTimestamp, observedAtMs };
}

export function toCoverage(cursor: CursorRow | undefined): IndexCoverage | undefined {
  return cursor === undefined
    ? undefined
    : {
        fromBlock: cursor.from_block,
        fromTimestamp: cursor.from_timestamp,
        toBlock: cursor.to_block,
        observedAtMs: cursor.observed_at,
        finalizedBlock: cursor.final_to,
      };
}
