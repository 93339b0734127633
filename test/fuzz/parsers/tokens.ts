import assert from "node:assert/strict";
import { ServiceError } from "../../../src/errors.js";
import { decodePageToken, encodePageToken } from "../../../src/transfers/index/list/page-token.js";
import {
  computeChecksum,
  decodeAccountToken,
  decodeResumeToken,
  encodeAccountToken,
  encodeResumeToken,
} from "../../../src/transfers/watch/resume-token.js";
import { catchDeclared, createByteSource } from "./byte-source.js";

const QUERY = "account 0xa1";
const NOW_SECONDS = 1_800_000_000;
const MAX_TARGETS = 4;

/** Tokens that callers send back, damaged or forged: only the declared error, and a decoded token says what it says. */
export function fuzz(data: Buffer): void {
  const source = createByteSource(data);
  const mode = source.takeByte();
  const targetCount = mode % MAX_TARGETS;
  const bytes = source.takeRest();
  const text = mode < 0x40 ? bytes.toString("latin1") : bytes.toString("base64url");
  checkAll(text, targetCount);
  // Nobody needs a key for the checksum of these two.
  const forged = Buffer.concat([bytes, computeChecksum(QUERY, bytes)]).toString("base64url");
  checkAll(forged, targetCount);
}

function checkAll(text: string, targetCount: number): void {
  const position = decodePageToken(QUERY, text);
  if (position !== undefined) assert.equal(encodePageToken(QUERY, position), text);
  const mark = catchDeclared(() => decodeAccountToken(text, QUERY), ServiceError);
  if ("value" in mark && mark.value !== undefined) {
    assert.deepEqual(decodeAccountToken(encodeAccountToken(QUERY, mark.value), QUERY), mark.value);
  }
  const resumed = catchDeclared(() => decodeResumeToken(text, QUERY, targetCount, NOW_SECONDS), ServiceError);
  if ("value" in resumed && resumed.value !== undefined) {
    assert.equal(resumed.value.targets.length, targetCount);
    assert.doesNotThrow(() => encodeResumeToken(QUERY, resumed.value as never, NOW_SECONDS));
  }
  for (const outcome of [mark, resumed]) {
    if ("error" in outcome) assert.equal(outcome.error.reason, "INVALID_PARAMETER");
  }
}
