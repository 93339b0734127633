import { decodeUintAt, encodeBytes, encodeWithOffsets, encodeWord } from "./abi-encoding.js";

/** A call of a contract that changes nothing. */
export interface ContractCall {
  /** Contract, 0x-prefixed. */
  readonly to: string;
  /** Calldata as 0x-prefixed hex. */
  readonly data: string;
}

/** Selector of Multicall3's `aggregate3((address target, bool allowFailure, bytes callData)[])`. */
const AGGREGATE3_SELECTOR = "0x82ad56cb";

/** Longest answer to a single view that is looked at, in bytes: far above what Hop's contracts give. */
const MAX_RETURN_DATA_BYTES = 1024n;

/** Calldata by which Multicall3 makes all views in one call; one that reverts does not fail the others. */
export function encodeMulticall(views: readonly ContractCall[]): string {
  const tuples = views.map(({ to, data }) => encodeWord(to) + encodeWord(1n) + encodeWord(96n) + encodeBytes(data));
  return AGGREGATE3_SELECTOR + encodeWord(32n) + encodeWord(BigInt(views.length)) + encodeWithOffsets(tuples);
}

/**
 * What the views returned, in their order: 0x-prefixed hex, or undefined where one reverted.
 * @returns undefined for an answer that Multicall3 cannot have given
 */
export function decodeMulticall(answer: string, count: number): readonly (string | undefined)[] | undefined {
  if (decodeUintAt(answer, 0) !== 32n || decodeUintAt(answer, 1) !== BigInt(count)) return undefined;
  // Offsets count from behind the number of results.
  const results = `0x${answer.slice(2 + 2 * 64)}`;
  const decoded: (string | undefined)[] = [];
  for (let index = 0; index < count; index++) {
    const start = toWordIndex(decodeUintAt(results, index));
    const success = start === undefined ? undefined : decodeUintAt(results, start);
    const data = start === undefined ? undefined : toWordIndex(decodeUintAt(results, start + 1));
    if (start === undefined || data === undefined || success === undefined || success > 1n) return undefined;
    const length = decodeUintAt(results, start + data);
    if (length === undefined || length > MAX_RETURN_DATA_BYTES) return undefined;
    const from = 2 + (start + data + 1) * 64;
    const to = from + Number(length) * 2;
    if (results.length < to) return undefined;
    decoded.push(success === 1n ? `0x${results.slice(from, to)}` : undefined);
  }
  return decoded;
}

/** The word at which an offset in bytes points, if it is the start of one and small enough to be real. */
function toWordIndex(offset: bigint | undefined): number | undefined {
  if (offset === undefined || offset % 32n !== 0n || offset > 1_000_000n) return undefined;
  return Number(offset / 32n);
}
