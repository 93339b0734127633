import { keccak_256 } from "@noble/hashes/sha3.js";
import { bytesToHex, concatBytes, hexToBytes } from "@noble/hashes/utils.js";
import { isBytes32 } from "../chain/hex.js";

// The Merkle tree of a transfer root (Lib_MerkleTree of Hop's contracts). The leaves are the transfer IDs in the order of
// sending, neither hashed nor sorted. A parent is the hash of its left and its right child; where a row of odd length lacks
// its last right child, an empty subtree of that height takes its place. Hashes are 0x-prefixed hex.
// Needs nothing of Node.js: the client computes roots in browsers too.

/** Computes the root of at least one leaf. */
export function merkleRoot(leaves: readonly string[]): string {
  const [root] = buildRows(leaves).at(-1) ?? [];
  if (root === undefined) throw new RangeError("a Merkle tree needs at least one leaf");
  return encode(root);
}

/**
 * Returns the siblings that prove a leaf, from the bottom up; none for a tree of one leaf.
 * @throws RangeError when no leaf has the index
 */
export function merkleSiblings(leaves: readonly string[], index: number): string[] {
  if (leaves[index] === undefined) throw new RangeError(`no leaf has the index ${index}`);
  const rows = buildRows(leaves).slice(0, -1);
  return rows.map((row, height) => encode(row[(index >>> height) ^ 1] ?? getEmptySubtree(height)));
}

/**
 * Computes the root from one leaf and its siblings; undefined for a proof that the contract refuses: the index is outside
 * the tree, or the number of siblings is not the height of a tree of `totalLeaves`. Also undefined for malformed hashes.
 */
export function rootFromSiblings(
  leaf: string,
  index: number,
  siblings: readonly string[],
  totalLeaves: number,
): string | undefined {
  if (![index, totalLeaves].every(Number.isSafeInteger) || index < 0 || index >= totalLeaves) return undefined;
  if (siblings.length !== computeHeight(totalLeaves) || ![leaf, ...siblings].every(isBytes32)) return undefined;
  let node = decode(leaf);
  for (const [height, sibling] of siblings.entries()) {
    const isRight = Math.floor(index / 2 ** height) % 2 === 1;
    node = isRight ? hashPair(decode(sibling), node) : hashPair(node, decode(sibling));
  }
  return encode(node);
}

/** Returns the rows of the tree from the leaves to the root. */
function buildRows(leaves: readonly string[]): Uint8Array[][] {
  let row = leaves.map(decode);
  const rows = [row];
  for (let height = 0; row.length > 1; height += 1) {
    const parents: Uint8Array[] = [];
    for (let index = 0; index < row.length; index += 2) {
      parents.push(hashPair(row[index] as Uint8Array, row[index + 1] ?? getEmptySubtree(height)));
    }
    row = parents;
    rows.push(row);
  }
  return rows;
}

const emptySubtrees: Uint8Array[] = [keccak_256(new Uint8Array(32))];

/** Returns the root of a subtree without leaves. */
function getEmptySubtree(height: number): Uint8Array {
  for (let last = emptySubtrees.length - 1; last < height; last += 1) {
    const child = emptySubtrees[last] as Uint8Array;
    emptySubtrees.push(hashPair(child, child));
  }
  return emptySubtrees[height] as Uint8Array;
}

/** Returns the least height whose tree holds so many leaves. */
function computeHeight(totalLeaves: number): number {
  let height = 0;
  while (2 ** height < totalLeaves) height += 1;
  return height;
}

function hashPair(left: Uint8Array, right: Uint8Array): Uint8Array {
  return keccak_256(concatBytes(left, right));
}

function decode(hash: string): Uint8Array {
  return hexToBytes(hash.slice(2));
}

function encode(bytes: Uint8Array): string {
  return `0x${bytesToHex(bytes)}`;
}
