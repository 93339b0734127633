import { utils } from "ethers";
import { describe, expect, test } from "vitest";
import { merkleRoot, merkleSiblings, rootFromSiblings } from "../../../src/hop/merkle-tree.js";

/** Returns the hashes of the 32-byte numbers 1, 2, 3, ... */
const leavesOf = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => utils.keccak256(utils.hexZeroPad(utils.hexlify(index + 1), 32)));

/** Roots of these leaves, filled up with keccak256(bytes32(0)) to a power of two and hashed with ethers. */
const ROOTS: readonly (readonly [number, string])[] = [
  [1, "0xb10e2d527612073b26eecdfd717e6a320cf44b4afac2b0732d9fcbe2b7fa0cf6"],
  [2, "0x50387073e2d4f7060a3c02c3c5268d8a72700a28b5cbd7e23314ae0e1ebda895"],
  [3, "0x57f3f9799a41a01464d95a9c376802a3a9b5269093038d1afc5fbdfc9f150602"],
  [5, "0xee05d945e6a97783f8592ba5e67a6f30c05bf09fdc5e34b608339c7b029f3cd0"],
  [64, "0xf8e66a2d47e0274d22c35139866497290a565a30bcb041ca5ef0d938b39951fb"],
  [1000, "0x0dff8d59b0af177fb178f9e30ee7e6a979bcfb86271138ec38d2f82cd12421b2"],
  [1024, "0x3b09b8f7e7c6109afa90b045ef29ce1be5d49bc96a5af6a283f4973d8ae634c2"],
];

describe("a tree of transfer IDs", () => {
  test.each(ROOTS)("of %d leaves has the root of Hop's contract", (count, root) => {
    expect(merkleRoot(leavesOf(count))).toBe(root);
  });

  test.each(ROOTS)("of %d leaves proves each of them", (count, root) => {
    const leaves = leavesOf(count);
    const places = count <= 64 ? [...leaves.keys()] : [0, 1, count >> 1, count - 2, count - 1];
    for (const index of places) {
      const leaf = leaves[index] as string;
      expect(rootFromSiblings(leaf, index, merkleSiblings(leaves, index), count)).toBe(root);
    }
  });

  test("of one leaf is the leaf, and needs no siblings", () => {
    const [leaf = ""] = leavesOf(1);
    expect(merkleRoot([leaf])).toBe(leaf);
    expect(merkleSiblings([leaf], 0)).toEqual([]);
  });

  test("takes an empty subtree of the right height for each missing sibling", () => {
    const leaves = leavesOf(5);
    const empty = utils.keccak256(`0x${"00".repeat(32)}`);
    const emptyPair = utils.keccak256(empty + empty.slice(2));
    expect(merkleSiblings(leaves, 4)).toEqual([empty, emptyPair, merkleRoot(leaves.slice(0, 4))]);
  });

  test("has no root without leaves and no siblings of a place outside", () => {
    expect(() => merkleRoot([])).toThrow(RangeError);
    for (const index of [-1, 3, 0.5]) expect(() => merkleSiblings(leavesOf(3), index)).toThrow(RangeError);
  });
});

describe("a proof", () => {
  const leaves = leavesOf(5);
  const leaf = leaves[2] as string;
  const siblings = merkleSiblings(leaves, 2);

  test("that the contract refuses has no root", () => {
    expect(rootFromSiblings(leaf, 5, siblings, 5)).toBeUndefined();
    expect(rootFromSiblings(leaf, -1, siblings, 5)).toBeUndefined();
    expect(rootFromSiblings(leaf, 0, [], 0)).toBeUndefined();
    expect(rootFromSiblings(leaf, 2, siblings.slice(1), 5)).toBeUndefined();
    expect(rootFromSiblings(leaf, 2, [...siblings, leaf], 5)).toBeUndefined();
    expect(rootFromSiblings(leaf, 2, siblings, 4)).toBeUndefined();
    expect(rootFromSiblings(leaf, 2, siblings, 9)).toBeUndefined();
  });

  test("with a malformed hash has no root", () => {
    expect(rootFromSiblings("0x12", 2, siblings, 5)).toBeUndefined();
    expect(rootFromSiblings(leaf, 2, ["", ...siblings.slice(1)], 5)).toBeUndefined();
  });

  test("passes with each count of leaves of the same height: the root does not contain the count", () => {
    for (const count of [5, 6, 7, 8]) expect(rootFromSiblings(leaf, 2, siblings, count)).toBe(merkleRoot(leaves));
  });
});
