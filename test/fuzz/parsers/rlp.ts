import assert from "node:assert/strict";
import { utils } from "ethers";
import { encodeRlpList } from "../../../src/chain/abi/rlp.js";
import { createByteSource } from "./byte-source.js";

const MAX_ITEMS = 12;

/** Lists of byte strings and numbers: ethers encodes them to the same bytes. */
export function fuzz(data: Buffer): void {
  const source = createByteSource(data);
  const items: (string | bigint)[] = [];
  while (!source.isAtEnd() && items.length < MAX_ITEMS) {
    const head = source.takeByte();
    if (head < 0x40) items.push(BigInt(`0x0${source.takeBytes(head % 33).toString("hex")}`));
    // Lengths around 55 and beyond 255 bytes change the form of the prefix.
    else if (head < 0xe0) items.push(utils.hexlify(source.takeBytes(head - 0x40)));
    else
      items.push(
        `0x${source
          .takeBytes(1)
          .toString("hex")
          .repeat((head - 0xdf) * 16)}`,
      );
  }
  const expected = utils.RLP.encode(items.map((item) => (typeof item === "bigint" ? toShortest(item) : item)));
  assert.equal(encodeRlpList(items), expected);
}

function toShortest(value: bigint): string {
  return value === 0n ? "0x" : utils.hexlify(value);
}
