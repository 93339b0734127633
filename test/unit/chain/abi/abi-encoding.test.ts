import { BigNumber, utils } from "ethers";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeUintAt, isAddress, toFunctionSelector } from "../../../../src/chain/abi/abi-encoding.js";
import { decodeMulticall, encodeMulticall } from "../../../../src/chain/abi/multicall.js";
import { encodeRlpList } from "../../../../src/chain/abi/rlp.js";

// ethers is the reference.

const multicall = new utils.Interface([
  "function aggregate3((address target, bool allowFailure, bytes callData)[] calls) view returns ((bool success, bytes returnData)[])",
]);
const anyHex = (maxBytes: number): fc.Arbitrary<string> =>
  fc.uint8Array({ maxLength: maxBytes }).map((bytes) => utils.hexlify(bytes));
const anyAddress = fc.uint8Array({ minLength: 20, maxLength: 20 }).map((bytes) => utils.hexlify(bytes));

test.each(["transfer(address,uint256)", "aggregate3((address,bool,bytes)[])", "fee()"])(
  "the selector of %s",
  (signature) => {
    expect(toFunctionSelector(signature)).toBe(utils.id(signature).slice(0, 10));
  },
);

test("encodeMulticall agrees with ethers", () => {
  fc.assert(
    fc.property(fc.array(fc.record({ to: anyAddress, data: anyHex(100) }), { maxLength: 20 }), (views) => {
      const calls = views.map(({ to, data }) => ({ target: to, allowFailure: true, callData: data }));
      expect(encodeMulticall(views)).toBe(multicall.encodeFunctionData("aggregate3", [calls]));
    }),
  );
});

describe("a result of Multicall3", () => {
  const anyResults = fc.array(fc.tuple(fc.boolean(), anyHex(300)), { maxLength: 20 });

  test("contains the return data of each call, and none for one that reverted", () => {
    fc.assert(
      fc.property(anyResults, (results) => {
        const answer = multicall.encodeFunctionResult("aggregate3", [results]);
        expect(decodeMulticall(answer, results.length)).toEqual(
          results.map(([success, data]) => (success ? data : undefined)),
        );
        expect(decodeMulticall(answer, results.length + 1)).toBeUndefined();
      }),
    );
  });

  test("never causes an error or a long wait when it is damaged", () => {
    fc.assert(
      fc.property(anyResults, fc.nat(), fc.constantFrom("f", "0", "1"), fc.nat(), (results, place, digit, length) => {
        const answer = multicall.encodeFunctionResult("aggregate3", [results]);
        const at = 2 + (place % (answer.length - 2));
        const damaged = answer.slice(0, at) + digit.repeat(32) + answer.slice(at + 32);
        for (const each of [damaged, answer.slice(0, 2 + (length % answer.length))]) {
          const decoded = decodeMulticall(each, results.length);
          expect(decoded === undefined || decoded.length === results.length).toBe(true);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

test("decodeUintAt reads words, and none past the end", () => {
  const answer = utils.defaultAbiCoder.encode(["uint256", "uint256"], [5, BigNumber.from(2).pow(256).sub(1)]);
  expect([decodeUintAt(answer, 0), decodeUintAt(answer, 1), decodeUintAt(answer, 2)]).toEqual([
    5n,
    2n ** 256n - 1n,
    undefined,
  ]);
  expect(decodeUintAt("0x", 0)).toBeUndefined();
});

test("encodeRlpList encodes an unsigned transaction", () => {
  fc.assert(
    fc.property(
      fc.bigInt({ min: 0n, max: 2n ** 80n }),
      fc.bigInt({ min: 0n, max: 2n ** 40n }),
      anyAddress,
      // Around the lengths at which the encoding of the length changes.
      fc.oneof(
        anyHex(3),
        anyHex(70),
        fc.integer({ min: 53, max: 58 }).map((bytes) => `0x${"5a".repeat(bytes)}`),
        fc.integer({ min: 180, max: 300 }).map((bytes) => `0x${"5a".repeat(bytes)}`),
      ),
      (gasPrice, gasLimit, to, data) => {
        const transaction = {
          gasPrice: BigNumber.from(gasPrice),
          gasLimit: BigNumber.from(gasLimit),
          to,
          data,
          value: 0,
        };
        expect(encodeRlpList([0n, gasPrice, gasLimit, to, 0n, data])).toBe(utils.serializeTransaction(transaction));
      },
    ),
    { numRuns: 1_000 },
  );
});

test("isAddress agrees with ethers", () => {
  const mixedCase = fc.tuple(anyAddress, fc.nat()).map(([address, seed]) => {
    const flip = (digit: string, place: number): string => ((seed >> (place % 30)) & 1 ? digit.toUpperCase() : digit);
    return `0x${[...address.slice(2)].map(flip).join("")}`;
  });
  const any = fc.oneof(
    anyAddress,
    anyAddress.map((address) => `0x${address.slice(2).toUpperCase()}`),
    anyAddress.map((address) => utils.getAddress(address)),
    anyAddress.map((address) => `${address} `),
    anyAddress.map((address) => address.replace("0x", "0X")),
    anyHex(21),
    mixedCase,
  );
  fc.assert(
    fc.property(any, (text) => {
      expect(isAddress(text), text).toBe(utils.isAddress(text) && text.startsWith("0x"));
    }),
    { numRuns: 1_000 },
  );
});
