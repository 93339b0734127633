import { describe, expect, test } from "vitest";
import { collectVotes, createVoteError, type Vote } from "../../../../src/chain/quorum/collect-votes.js";
import type { Voter } from "../../../../src/chain/quorum/voter.js";
import { ServiceError } from "../../../../src/errors.js";
import { UpstreamError } from "../../../../src/resilience/upstream-error.js";

const NEVER = new AbortController().signal;
const REFUSED = new ServiceError("OVERLOADED", "RPC_BUDGET is used up", { retryAfterSeconds: 1 });
const DEAD = new ServiceError("UPSTREAM_UNAVAILABLE", "dead", { cause: new UpstreamError("connection refused") });

const voter = (name: string): Voter => ({
  name,
  request: async () => [],
  readLogs: async () => undefined,
  isUsable: () => true,
  refusal: () => undefined,
  rank: () => 0,
  latencyMs: () => undefined,
  isOutvoted: () => false,
  recordOutvoted: () => {},
});

const assess = (votes: readonly Vote<string>[]) => {
  const counts = votes.map((vote) => votes.filter(({ answer }) => answer === vote.answer).length);
  const agreeing = Math.max(0, ...counts);
  return { isDecided: agreeing >= 2, agreeing };
};

/** Collects the votes of endpoints that say this, one after the other; undefined: it hangs. */
function collect(
  says: readonly (string | Error | undefined)[],
  options: { hedgesAtOnce?: boolean; asksAll?: boolean; refusals?: readonly Error[] } = {},
) {
  const asked: number[] = [];
  const aborted: number[] = [];
  const voters = says.map((_, index) => voter(String(index)));
  const controller = new AbortController();
  const result = collectVotes<string>(
    {
      voters,
      needed: 2,
      asksAll: options.asksAll ?? false,
      refusals: options.refusals ?? [],
      assess,
      sleep: (_, signal) =>
        options.hedgesAtOnce === true
          ? Promise.resolve()
          : new Promise((resolve) => signal.addEventListener("abort", () => resolve())),
      async ask({ name }, signal) {
        const index = Number(name);
        asked.push(index);
        const said = says[index];
        if (said instanceof Error) throw said;
        if (said !== undefined) return said;
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        aborted.push(index);
        throw DEAD;
      },
    },
    AbortSignal.any([NEVER, controller.signal]),
  );
  return { result, asked, aborted, abort: () => controller.abort() };
}

describe("collecting votes", () => {
  test("asks no more endpoints than have to agree", async () => {
    const { result, asked } = collect(["a", "a", "a"]);
    expect(await result).toMatchObject({ isDecided: true, failures: [] });
    expect(asked).toEqual([0, 1]);
  });

  test("asks another one when they differ, and when one is dead", async () => {
    for (const says of [
      ["lie", "a", "a"],
      [DEAD, "a", "a"],
    ]) {
      const { result, asked } = collect(says);
      expect(await result).toMatchObject({ isDecided: true });
      expect(asked).toEqual([0, 1, 2]);
    }
  });

  test("asks another one beside an endpoint that hangs, and aborts that in the end", async () => {
    const { result, asked, aborted } = collect([undefined, "a", "a"], { hedgesAtOnce: true });
    expect(await result).toMatchObject({ isDecided: true });
    expect(asked).toEqual([0, 1, 2]);
    await Promise.resolve();
    expect(aborted).toEqual([0]);
  });

  test("asks all where all are to be compared", async () => {
    const { result, asked } = collect(["a", "a", "lie"], { asksAll: true });
    expect((await result).votes.map(({ answer }) => answer)).toEqual(["a", "a", "lie"]);
    expect(asked).toEqual([0, 1, 2]);
  });

  test("ends with its signal", async () => {
    const { result, abort, aborted } = collect([undefined, undefined, "a"]);
    abort();
    expect(await result).toMatchObject({ isDecided: false });
    expect(aborted).toEqual([0, 1]);
  });

  test("ends when nobody is left", async () => {
    const collected = await collect(["a", "b", "c"]).result;
    expect(collected.isDecided).toBe(false);
    expect(createVoteError("base", 2, collected)).toMatchObject({
      reason: "UPSTREAM_UNAVAILABLE",
      message: "the RPC endpoints of base contradict each other: fewer than 2 agree (RPC_QUORUM)",
    });
  });
});

describe("the error of a vote", () => {
  test("says how many responded", async () => {
    const collected = await collect([DEAD, "a", DEAD]).result;
    expect(createVoteError("base", 2, collected)).toMatchObject({
      reason: "UPSTREAM_UNAVAILABLE",
      message: "only 1 of the 2 RPC endpoints of base that have to agree responded (RPC_QUORUM)",
      cause: DEAD.cause,
    });
  });

  test("is that of a budget which prevented a request", async () => {
    const collected = await collect([DEAD, REFUSED, "a"]).result;
    expect(createVoteError("base", 2, collected)).toBe(REFUSED);
  });

  test.each([
    ["nobody could be asked", [], [REFUSED, REFUSED]],
    ["one has answered and the other could not be asked", ["a"], [REFUSED]],
    ["two contradict each other and the third could not be asked", ["a", "b"], [REFUSED]],
  ])("is that of a limit when %s", async (_, says, refusals) => {
    const collected = await collect(says, { refusals }).result;
    expect(createVoteError("base", 2, collected)).toBe(REFUSED);
  });

  test("is not that of a limit when too few others have answered for the rest to decide", async () => {
    const collected = await collect([DEAD, DEAD], { refusals: [REFUSED] }).result;
    expect(createVoteError("base", 2, collected)).toMatchObject({
      reason: "UPSTREAM_UNAVAILABLE",
      message: "only 0 of the 2 RPC endpoints of base that have to agree responded (RPC_QUORUM)",
      cause: DEAD.cause,
    });
  });

  test("does not matter where the others agree", async () => {
    expect(await collect(["a", "a"], { refusals: [REFUSED] }).result).toMatchObject({ isDecided: true });
  });
});
