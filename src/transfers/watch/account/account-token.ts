import { computeChecksum, invalidTokenError } from "../resume-token.js";
import type { ChangeMark } from "./change-history.js";

// The resume token of an account says up to which change of the index its caller knows everything: the sequence of that change
// and its nonce, which no other index has at that place. Any process that reads the same index can go on from it.
//
// Version 2 (version 1 is that of transfers): version, flags, sequence (6 bytes), nonce (6 bytes), checksum (6 bytes); in
// base64url.

const VERSION = 2;
/** The present states were not all sent yet. */
const INCOMPLETE_FLAG = 1;
const BODY_BYTES = 14;
const CHECKSUM_BYTES = 6;

/** @param mark undefined: the caller has to get the present states (again) */
export function encodeAccountToken(queryDigest: string, mark: ChangeMark | undefined): string {
  const body = Buffer.alloc(BODY_BYTES);
  body.writeUInt8(VERSION, 0);
  body.writeUInt8(mark === undefined ? INCOMPLETE_FLAG : 0, 1);
  body.writeUIntBE(mark?.sequence ?? 0, 2, 6);
  body.writeUIntBE(mark?.nonce ?? 0, 8, 6);
  return Buffer.concat([body, computeChecksum(queryDigest, body)]).toString("base64url");
}

/**
 * Decodes a token; undefined for one that asks for all present states.
 * @throws ServiceError INVALID_PARAMETER for a token that is damaged or of another query
 */
export function decodeAccountToken(token: string, queryDigest: string): ChangeMark | undefined {
  const bytes = Buffer.from(token, "base64url");
  const body = bytes.subarray(0, BODY_BYTES);
  const isIntact =
    bytes.length === BODY_BYTES + CHECKSUM_BYTES &&
    bytes.toString("base64url") === token &&
    body[0] === VERSION &&
    bytes.subarray(BODY_BYTES).equals(computeChecksum(queryDigest, body));
  if (!isIntact) throw invalidTokenError();
  if (((body[1] ?? 0) & INCOMPLETE_FLAG) !== 0) return undefined;
  return { sequence: body.readUIntBE(2, 6), nonce: body.readUIntBE(8, 6) };
}
