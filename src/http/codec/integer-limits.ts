/** The largest integer that a double holds exactly. */
export const MAX_SAFE_BIGINT = BigInt(Number.MAX_SAFE_INTEGER);

/** The first integer above the range of uint32. */
export const UINT32_LIMIT = 2 ** 32;
