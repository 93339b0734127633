import { decodeUintAt, encodeBytes, encodeWithOffsets, encodeWord } from "./abi-encoding.js";

/** A read-only contract call. */
export interface ContractCall {
  /** Contract address, 0x-prefixed. */
  readonly to: string;
  /** Calldata as 0x-prefixed hex. */
  readonly data: string;
}

/** Selector of Multicall3's `aggregate3((address target, bool allowFailure, bytes callData)[])`. */
const AGGREGATE3_SELECTOR = "0x82ad56cb";

/** Maximum size of one call's return data: far above what Hop's contracts return. */
const MAX_RETURN_DATA_BYTES = 1024n;
const MAX_OFFSET_BYTES = 1_000_000n;

/** Encodes the calldata for Multicall3 that runs all calls. A call that reverts does not fail the others. */
export function encodeMulticall(calls: readonly ContractCall[]): string {
  const tuples = calls.map(({ to, data }) => encodeWord(to) + encodeWord(1n) + encodeWord(96n) + encodeBytes(data));
  return AGGREGATE3_SELECTOR + encodeWord(32n) + encodeWord(BigInt(calls.length)) + encodeWithOffsets(tuples);
}

/**
 * Decodes the result of Multicall3 into the return data of each call, in order: 0x-prefixed hex, or undefined for a call
 * that reverted.
 * @returns undefined for a result that Multicall3 cannot have returned
 */
export function decodeMulticall(result: string, count: number): readonly (string | undefined)[] | undefined {
  if (decodeUintAt(result, 0) !== 32n || decodeUintAt(result, 1) !== BigInt(count)) return undefined;
  // Offsets count from the word after the number of results.
  const results = `0x${result.slice(2 + 2 * 64)}`;
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

/** Converts an offset in bytes to a word index; undefined: not a multiple of a word, or too large to be real. */
function toWordIndex(offset: bigint | undefined): number | undefined {
  if (offset === undefined || offset % 32n !== 0n || offset > MAX_OFFSET_BYTES) return undefined;
  return Number(offset / 32n);
}
