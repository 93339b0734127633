import { expect, test } from "vitest";
import { collectVotes, type Poll } from "../../../../src/chain/quorum/vote.js";
import type { VoteContext, Voter } from "../../../../src/chain/quorum/voter.js";

/** Decided once two answers are "right"; "other" is about another block. */
function createPoll(answers: ReadonlyMap<Voter, string>) {
  const asked: Voter[] = [];
  const poll: Poll<string, unknown> = {
    asksAll: false,
    question: "",
    async ask(voter) {
      asked.push(voter);
      if (asked.length > 100) throw new Error("asked without end");
      return answers.get(voter) ?? "";
    },
    assess(votes) {
      const agreeing = votes.filter(({ answer }) => answer === "right").length;
      return { isDecided: agreeing >= 2, isSufficient: agreeing >= 2, agreeing };
    },
    isOutdated: ({ answer }) => answer === "other",
    count: () => [],
    getResult: () => undefined,
    listImpossibleHeads: () => [],
  };
  return { poll, asked };
}

test("a voter that answers about another block each time is given up, and the next one is asked", async () => {
  const [odd, second, third] = [0, 1, 2].map(() => ({ latencyMs: () => undefined }) as unknown as Voter);
  if (odd === undefined || second === undefined || third === undefined) throw new Error("no voters");
  const { poll, asked } = createPoll(
    new Map([odd, second, third].map((voter) => [voter, voter === odd ? "other" : "right"])),
  );
  const context = { needed: 2, sleep: () => new Promise<void>(() => {}) } as unknown as VoteContext;
  const electorate = { voters: [odd, second, third], refusals: [] };
  const { votes } = await collectVotes(poll, electorate, context, new AbortController().signal);
  expect(votes.map(({ voter }) => voter)).toEqual([second, third]);
  expect(asked.filter((voter) => voter === odd)).toHaveLength(4);
});
