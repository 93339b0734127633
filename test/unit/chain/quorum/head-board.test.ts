import { expect, test } from "vitest";
import { RevertError } from "../../../../src/chain/json-rpc/revert-error.js";
import { createHeadBoard } from "../../../../src/chain/quorum/head-board.js";
import type { Voter } from "../../../../src/chain/quorum/voter.js";
import { ServiceError } from "../../../../src/errors.js";
import { UpstreamError } from "../../../../src/resilience/upstream-error.js";

const NEVER = new AbortController().signal;
const DEAD = new ServiceError("UPSTREAM_UNAVAILABLE", "dead", { cause: new UpstreamError("connection refused") });
const REFUSED = new ServiceError("OVERLOADED", "RPC_BUDGET is used up", { retryAfterSeconds: 1 });

/** An endpoint that reports the head with this number, or fails; undefined: it may not be asked. */
const voter = (says: number | Error | undefined): Voter => ({
  name: String(says),
  async request() {
    if (says instanceof RevertError) return [{ revert: says }];
    if (says instanceof Error || says === undefined) throw says;
    return [{ result: { number: `0x${says.toString(16)}`, timestamp: `0x${says.toString(16)}` } }];
  },
  readLogs: async () => undefined,
  isUsable: () => says !== undefined,
  refusal: () => (says === undefined ? REFUSED : undefined),
  rank: () => 0,
  latencyMs: () => undefined,
  isOutvoted: () => false,
  recordOutvoted: () => {},
});

function agree(...says: readonly (number | Error | undefined)[]): Promise<number> {
  const board = createHeadBoard({
    slug: "base",
    voters: says.map(voter),
    needed: 2,
    confirmations: { suspect: () => {} },
    closing: NEVER,
    now: () => 0,
    sleep: async () => {},
  });
  return board.agree(NEVER, { isBackground: false });
}

test("the newest block that enough endpoints have counts", async () => {
  expect(await agree(10, 11, DEAD)).toBe(10);
});

test("the error says how many endpoints responded, and why the others did not", async () => {
  await expect(agree(10, DEAD, new RevertError("reverted", 3, undefined))).rejects.toMatchObject({
    reason: "UPSTREAM_UNAVAILABLE",
    message: "only 1 of the 2 RPC endpoints of base that have to agree responded (RPC_QUORUM)",
    cause: DEAD.cause,
  });
});

test("the error says that endpoints contradict each other", async () => {
  await expect(agree(10, 1_000_000)).rejects.toMatchObject({
    reason: "UPSTREAM_UNAVAILABLE",
    message: "the RPC endpoints of base contradict each other: fewer than 2 agree on the latest block (RPC_QUORUM)",
  });
});

test("the error is that of a budget which prevented a read, with the time to wait", async () => {
  await expect(agree(10, REFUSED, DEAD)).rejects.toBe(REFUSED);
  expect(await agree(10, REFUSED, 10)).toBe(10);
});

test.each([
  ["none may be asked", [undefined, undefined, undefined]],
  ["one has reported and the others may not be asked", [10, undefined, undefined]],
  ["two contradict each other and the other may not be asked", [10, 1_000_000, undefined]],
])("the error is that of a limit when %s", async (_, says) => {
  await expect(agree(...says)).rejects.toBe(REFUSED);
});

test("the error is not that of a limit when too few have reported for the rest to decide", async () => {
  await expect(agree(DEAD, DEAD, undefined)).rejects.toMatchObject({
    reason: "UPSTREAM_UNAVAILABLE",
    cause: DEAD.cause,
  });
});
