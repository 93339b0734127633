import assert from "node:assert/strict";
import { utils } from "ethers";
import { decodeMulticall, encodeMulticall } from "../../../src/chain/abi/multicall.js";
import { createByteSource } from "./byte-source.js";

const abi = new utils.Interface([
  "function aggregate3((address target, bool allowFailure, bytes callData)[] calls) view returns ((bool success, bytes returnData)[])",
]);
const MAX_RETURN_DATA_BYTES = 1024;

type Results = readonly (readonly [success: boolean, returnData: string])[];

/** Results of Multicall3, well formed or not: what is decoded is what ethers decodes. */
export function fuzz(data: Buffer): void {
  const source = createByteSource(data);
  const mode = source.takeByte();
  const count = mode & 15;
  if (mode < 0x80) checkAnyResult(`0x${source.takeRest().toString("hex")}`, count);
  else {
    const parts = Array.from({ length: count }, () => {
      const head = source.takeByte();
      return { success: (head & 1) === 1, bytes: source.takeBytes((head >> 1) * ((mode & 16) === 0 ? 1 : 10)) };
    });
    checkEncodedCalls(parts.map(({ bytes }) => bytes));
    checkEncodedResult(parts.map(({ success, bytes }) => [success, utils.hexlify(bytes)]));
  }
}

function checkEncodedCalls(payloads: readonly Buffer[]): void {
  const calls = payloads.map((bytes) => ({
    to: `0x${bytes.subarray(0, 20).toString("hex").padEnd(40, "7")}`,
    data: utils.hexlify(bytes),
  }));
  const tuples = calls.map(({ to, data }) => ({ target: to, allowFailure: true, callData: data }));
  assert.equal(encodeMulticall(calls), abi.encodeFunctionData("aggregate3", [tuples]));
}

function checkEncodedResult(results: Results): void {
  const decoded = decodeMulticall(abi.encodeFunctionResult("aggregate3", [results]), results.length);
  const isTooLarge = results.some(([, data]) => data.length > 2 + 2 * MAX_RETURN_DATA_BYTES);
  const expected = results.map(([success, returnData]) => (success ? returnData : undefined));
  assert.deepEqual(decoded, isTooLarge ? undefined : expected);
}

function checkAnyResult(result: string, count: number): void {
  const decoded = decodeMulticall(result, count);
  if (decoded === undefined) return;
  assert.equal(decoded.length, count);
  // Multicall3 pads return data to whole words, which ethers insists on.
  const padded = result + "0".repeat((64 - ((result.length - 2) % 64)) % 64);
  const [expected] = abi.decodeFunctionResult("aggregate3", padded) as unknown as [Results];
  assert.deepEqual(
    decoded,
    expected.map(([success, returnData]) => (success ? returnData : undefined)),
  );
}
