import { expect, test } from "vitest";
import {
  assertChainId,
  INITIAL_CHAIN_ID_VERIFICATION,
  invalidateChainIdVerification,
  isChainIdVerified,
  onChainIdVerified,
  shouldBatchChainId,
} from "../../../../src/chain/endpoints/chain-id-verification.js";
import { CHAIN_ID_CALL } from "../../../../src/chain/json-rpc/common-calls.js";

const search = { method: "eth_getLogs", params: [] };
const call = { method: "eth_call", params: [] };
const verified = onChainIdVerified(1_000);

test("a verified chain id is valid for 250 ms", () => {
  expect(isChainIdVerified(INITIAL_CHAIN_ID_VERIFICATION, 0)).toBe(false);
  expect([1_000, 1_249, 1_250].map((now) => isChainIdVerified(verified, now))).toEqual([true, true, false]);
});

test("a failed request ends the verification, but not the knowledge that there was one", () => {
  const failed = invalidateChainIdVerification(verified);
  expect(isChainIdVerified(failed, 1_000)).toBe(false);
  expect(failed.wasVerified).toBe(true);
  expect(invalidateChainIdVerification(INITIAL_CHAIN_ID_VERIFICATION).wasVerified).toBe(false);
});

test("the chain id shares a batch with all but a single log search of a verified endpoint", () => {
  const batches = [[call], [search], [search, call], []];
  expect(batches.map((calls) => shouldBatchChainId(INITIAL_CHAIN_ID_VERIFICATION, calls))).toEqual(Array(4).fill(true));
  expect(batches.map((calls) => shouldBatchChainId(verified, calls))).toEqual([true, false, true, true]);
});

test("only the result of the chain id call is compared", () => {
  expect(() => assertChainId(10, [CHAIN_ID_CALL, call], [{ result: "0xa" }, { result: "0x1" }])).not.toThrow();
  expect(() => assertChainId(10, [call], [{ result: "0x1" }])).not.toThrow();
  for (const outcome of [{ result: "0x1" }, undefined])
    expect(() => assertChainId(10, [CHAIN_ID_CALL], [outcome])).toThrow(
      expect.objectContaining({ kind: "wrong_chain", retryAfterMs: 30_000 }),
    );
});
