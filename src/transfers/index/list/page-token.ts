import { createHash, timingSafeEqual } from "node:crypto";
import { bytesToHex, hexToBytes } from "../../../chain/hex.js";
import type { ListPosition } from "./page-statement.js";

// A token is the position of the last transfer of a page, with a digest of it and of the query. The digest binds the token to its
// query and detects what was altered; it is no signature, because a position gives access to nothing.

const VERSION = 1;
const HASH_BYTES = 32;
const HEAD_BYTES = 1 + 6 + 4 + HASH_BYTES;
const DIGEST_BYTES = 8;
/** Lengths of the correlation keys: of CCTP, and of all others. */
const KEY_LENGTHS: ReadonlySet<number> = new Set([12, 32]);

/** Returns the token of the page after a position. @param query text that is the same for equal queries only */
export function encodePageToken(query: string, position: ListPosition): string {
  const head = Buffer.alloc(1 + 6 + 4);
  head.writeUInt8(VERSION, 0);
  head.writeUIntBE(position.timestamp, 1, 6);
  head.writeUInt32BE(position.logIndex, 7);
  const content = Buffer.concat([head, hexToBytes(position.transactionHash), hexToBytes(position.correlationKey)]);
  return Buffer.concat([content, computeDigest(query, content)]).toString("base64url");
}

/** Returns the position of a token; undefined for one of another query, and for text that is none of these tokens. */
export function decodePageToken(query: string, token: string): ListPosition | undefined {
  const bytes = Buffer.from(token, "base64url");
  // The decoder ignores other characters.
  if (bytes.toString("base64url") !== token) return undefined;
  const keyLength = bytes.length - HEAD_BYTES - DIGEST_BYTES;
  if (!KEY_LENGTHS.has(keyLength) || bytes[0] !== VERSION) return undefined;
  const content = bytes.subarray(0, -DIGEST_BYTES);
  if (!timingSafeEqual(computeDigest(query, content), bytes.subarray(-DIGEST_BYTES))) return undefined;
  return {
    timestamp: content.readUIntBE(1, 6),
    logIndex: content.readUInt32BE(7),
    transactionHash: bytesToHex(content.subarray(HEAD_BYTES - HASH_BYTES, HEAD_BYTES)),
    correlationKey: bytesToHex(content.subarray(HEAD_BYTES)),
  };
}

function computeDigest(query: string, content: Uint8Array): Buffer {
  return createHash("sha256").update(query).update("\0").update(content).digest().subarray(0, DIGEST_BYTES);
}
