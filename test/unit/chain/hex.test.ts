import { expect, test } from "vitest";
import { isAddressHex, isBytes32, isHexData, isQuantity, toQuantity } from "../../../src/chain/hex.js";

const bytes32 = `0x${"aB".repeat(32)}`;
const address = `0x${"aB".repeat(20)}`;

test.each<[unknown, boolean[]]>([
  [bytes32, [true, false, true, false]],
  [address, [false, true, true, false]],
  ["0x", [false, false, true, false]],
  ["0x0", [false, false, true, true]],
  [`0x${"f".repeat(32)}`, [false, false, true, true]],
  [`${bytes32}0`, [false, false, true, false]],
  [`${bytes32}\n`, [false, false, false, false]],
  [bytes32.slice(2), [false, false, false, false]],
  [bytes32.replace("0x", "0X"), [true, false, true, false]],
  [bytes32.replace("a", "g"), [false, false, false, false]],
  [7, [false, false, false, false]],
  [null, [false, false, false, false]],
  [[bytes32], [false, false, false, false]],
])("recognizes %j as bytes32, address, data, quantity: %j", (value, expected) => {
  expect([isBytes32(value), isAddressHex(value), isHexData(value), isQuantity(value)]).toEqual(expected);
});

test("encodes a quantity without leading zeros", () => {
  expect([0, 10, 4096].map(toQuantity)).toEqual(["0x0", "0xa", "0x1000"]);
});
