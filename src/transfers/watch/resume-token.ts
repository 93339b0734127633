import { hash } from "node:crypto";
import { ServiceError } from "../../errors.js";

// A resume token says what a caller has received of each transfer, as hashes of 32 bits. It is self-contained: any replica
// can go on from it. It is not authenticated: whoever forges one withholds states from nobody but himself, and a key would
// have to be shared by all replicas. The checksum, over token and query, detects damage and tokens of other watches.
//
// Version 1: version, flags, time of issue (4 bytes), then for each target a byte and what it announces, then the checksum
// (6 bytes); all in base64url. With 100 targets of one transfer each it takes 683 characters.

/** What a caller has received of one target. */
export interface TargetProgress {
  /** Fingerprints of the states that it received last, one for each transfer of the target. */
  readonly sent: readonly number[];
  /** Since when nobody knows the target, in Unix seconds; 0: it is known, or nothing was sent yet. */
  readonly unknownSince: number;
  /** Whether the caller was told that the target is not looked for any more. */
  readonly isGivenUp: boolean;
}

export interface WatchProgress {
  /** Whether everything that is watched was final. */
  readonly isComplete: boolean;
  readonly targets: readonly TargetProgress[];
}

const VERSION = 1;
const COMPLETE_FLAG = 1;
const HEADER_BYTES = 6;
const CHECKSUM_BYTES = 6;
/** Beyond this many transfers of one target, their fingerprints are combined: a change of one repeats all of them. */
const MAX_FINGERPRINTS = 8;
const COUNT_MASK = 15;
const UNKNOWN_FLAG = 16;
const GIVEN_UP_FLAG = 32;
const MAX_UNKNOWN_SECONDS = 0xffff;
/** Beyond this age all present states are sent again. */
const MAX_AGE_SECONDS = 24 * 60 * 60;

/** Returns a digest of what a watch is about, which its tokens are bound to. */
export function computeQueryDigest(parts: readonly string[]): string {
  return hash("sha256", parts.join("\n"), "base64url");
}

/** Stages of a transfer, 0 to 7: it does not go back to a lower one, but in a reorg. */
const STAGE_MASK = 7;

/** Returns a hash of a state: 29 bits, and the stage of the transfer. */
export function computeFingerprint(text: string, stage: number): number {
  const bits = hash("sha256", text, "buffer").readUInt32BE(0);
  return ((bits & ~STAGE_MASK) | (stage & STAGE_MASK)) >>> 0;
}

/** Returns the stage in a fingerprint. */
export function getFingerprintStage(fingerprint: number): number {
  return fingerprint & STAGE_MASK;
}

/** Returns the fingerprints as a token holds them: combined if there are many. */
export function combineFingerprints(fingerprints: readonly number[]): readonly number[] {
  if (fingerprints.length <= MAX_FINGERPRINTS) return fingerprints;
  return [computeFingerprint(fingerprints.toSorted((a, b) => a - b).join(" "), 0)];
}

export function encodeResumeToken(queryDigest: string, progress: WatchProgress, nowSeconds: number): string {
  const bytes: number[] = [VERSION, progress.isComplete ? COMPLETE_FLAG : 0];
  pushUint32(bytes, nowSeconds);
  for (const { sent, unknownSince, isGivenUp } of progress.targets) {
    const fingerprints = combineFingerprints(sent);
    const flags = (unknownSince > 0 ? UNKNOWN_FLAG : 0) | (isGivenUp ? GIVEN_UP_FLAG : 0);
    bytes.push(fingerprints.length | flags);
    if (unknownSince > 0) {
      const seconds = Math.min(Math.max(nowSeconds - unknownSince, 0), MAX_UNKNOWN_SECONDS);
      bytes.push(seconds >>> 8, seconds & 0xff);
    }
    for (const fingerprint of fingerprints) pushUint32(bytes, fingerprint);
  }
  return sealToken(queryDigest, Buffer.from(bytes));
}

/**
 * Decodes a token. Returns undefined for one that is too old: all present states are to be sent.
 * @param targetCount number of targets of the watch
 * @throws ServiceError INVALID_PARAMETER for a token that is damaged or of another query
 */
export function decodeResumeToken(
  token: string,
  queryDigest: string,
  targetCount: number,
  nowSeconds: number,
): WatchProgress | undefined {
  const body = openToken(queryDigest, token);
  if (body[0] !== VERSION || body.length < HEADER_BYTES) throw invalidTokenError();
  const issuedAt = body.readUInt32BE(2);
  const targets = readTargets(body, targetCount, issuedAt);
  if (nowSeconds - issuedAt > MAX_AGE_SECONDS) return undefined;
  return { isComplete: ((body[1] ?? 0) & COMPLETE_FLAG) !== 0, targets };
}

function readTargets(body: Buffer, targetCount: number, issuedAt: number): readonly TargetProgress[] {
  const targets: TargetProgress[] = [];
  let offset = HEADER_BYTES;
  try {
    for (let index = 0; index < targetCount; index++) {
      const head = body.readUInt8(offset);
      offset += 1;
      const isUnknown = (head & UNKNOWN_FLAG) !== 0;
      const unknownSince = isUnknown ? issuedAt - body.readUInt16BE(offset) : 0;
      if (isUnknown) offset += 2;
      const count = head & COUNT_MASK;
      const sent = Array.from({ length: count }, (_, position) => body.readUInt32BE(offset + 4 * position));
      offset += 4 * count;
      targets.push({ sent, unknownSince, isGivenUp: (head & GIVEN_UP_FLAG) !== 0 });
    }
  } catch {
    throw invalidTokenError();
  }
  if (offset !== body.length) throw invalidTokenError();
  return targets;
}

function sealToken(queryDigest: string, body: Buffer): string {
  return Buffer.concat([body, computeChecksum(queryDigest, body)]).toString("base64url");
}

/** Returns the body of a token. @throws ServiceError INVALID_PARAMETER for one that is damaged or of another query */
function openToken(queryDigest: string, token: string): Buffer {
  const body = Buffer.from(token, "base64url").subarray(0, -CHECKSUM_BYTES);
  if (sealToken(queryDigest, body) !== token) throw invalidTokenError();
  return body;
}

/** Returns the checksum of a token of a query. */
export function computeChecksum(queryDigest: string, body: Buffer): Buffer {
  return hash("sha256", `${queryDigest} ${body.toString("latin1")}`, "buffer").subarray(0, CHECKSUM_BYTES);
}

function pushUint32(bytes: number[], value: number): void {
  bytes.push((value >>> 24) & 0xff, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff);
}

function invalidTokenError(): ServiceError {
  const message = "resumeToken is not one of this service, or of a watch of other transfers";
  return new ServiceError("INVALID_PARAMETER", message, { field: "resumeToken" });
}

// The resume token of an account says up to which change of the index its caller knows everything: the sequence of that change
// and its nonce, which no other index has at that place. Any process that reads the same index can go on from it.
//
// Version 2 (version 1 is that of transfers): version, flags, sequence (6 bytes), nonce (6 bytes), checksum (6 bytes); in
// base64url.

const ACCOUNT_VERSION = 2;
/** The present states were not all sent yet. */
const INCOMPLETE_FLAG = 1;
const ACCOUNT_BODY_BYTES = 14;

/** A place in the change log of one certain index. */
export interface ChangeMark {
  readonly sequence: number;
  /** 0: the place before all changes, which says nothing about the index. */
  readonly nonce: number;
}

/** @param mark undefined: the caller has to get the present states (again) */
export function encodeAccountToken(queryDigest: string, mark: ChangeMark | undefined): string {
  const body = Buffer.alloc(ACCOUNT_BODY_BYTES);
  body.writeUInt8(ACCOUNT_VERSION, 0);
  body.writeUInt8(mark === undefined ? INCOMPLETE_FLAG : 0, 1);
  body.writeUIntBE(mark?.sequence ?? 0, 2, 6);
  body.writeUIntBE(mark?.nonce ?? 0, 8, 6);
  return sealToken(queryDigest, body);
}

/**
 * Decodes a token; undefined for one that asks for all present states.
 * @throws ServiceError INVALID_PARAMETER for a token that is damaged or of another query
 */
export function decodeAccountToken(token: string, queryDigest: string): ChangeMark | undefined {
  const body = openToken(queryDigest, token);
  if (body[0] !== ACCOUNT_VERSION || body.length !== ACCOUNT_BODY_BYTES) throw invalidTokenError();
  if (((body[1] ?? 0) & INCOMPLETE_FLAG) !== 0) return undefined;
  return { sequence: body.readUIntBE(2, 6), nonce: body.readUIntBE(8, 6) };
}
