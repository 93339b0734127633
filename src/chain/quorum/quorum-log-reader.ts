import type { BlockRange } from "../chain-client.js";
import type { AdaptiveLogReader } from "../endpoints/adaptive-block-range.js";
import type { RpcLog } from "../json-rpc/parse-results.js";
import { collectVotes, createVoteError, type Vote } from "./collect-votes.js";
import { listEligible, type QuorumDeps } from "./quorum-deps.js";
import { type CanonicalAnswer, canonicalizeLogs } from "./rules/canonical-answer.js";
import { countEqualVotes, type Tally } from "./rules/count-votes.js";
import { listRefusals } from "./voter.js";

/** The logs that an endpoint has found, and where it has searched. */
interface FoundLogs {
  readonly logs: readonly RpcLog[];
  readonly range: BlockRange;
}

interface CountedLogs {
  /** What all endpoints have searched. */
  readonly range: BlockRange;
  readonly ballots: readonly CanonicalAnswer[];
  readonly tally: Tally;
}

/**
 * Creates a log reader that has several endpoints search the same blocks. Endpoints accept different numbers of blocks: what
 * counts is the part that all of them have searched, and the result covers that part only.
 */
export function createQuorumLogReader(deps: QuorumDeps): AdaptiveLogReader {
  const { slug, needed, board, confirmations, observer } = deps;

  /** Makes sure that the heads of enough endpoints are known to be beyond the end of the range. */
  async function pinRange(
    { from, to }: BlockRange,
    signal: AbortSignal,
    isBackground: boolean,
    isFresh: boolean,
  ): Promise<BlockRange> {
    if (to === Number.POSITIVE_INFINITY) return { from, to: await board.agree(signal, { isBackground, isFresh }) };
    if (isFresh || listEligible(deps, to).length < needed) await board.agree(signal, { isBackground, isFresh: true });
    return { from, to };
  }

  return async (filter, requested, newestFirst, signal, onRequest, isBackground = false) => {
    for (let isFresh = false; ; isFresh = true) {
      const pinned = await pinRange(requested, signal, isBackground, isFresh);
      if (pinned.to < pinned.from) return { result: [], range: pinned };
      const collected = await collectVotes<FoundLogs>(
        {
          ...deps,
          voters: listEligible(deps, pinned.to),
          refusals: listRefusals(deps.voters),
          async ask(voter, voteSignal) {
            const found = await voter.readLogs(filter, pinned, newestFirst, voteSignal, onRequest, isBackground);
            return toFoundLogs(found, pinned);
          },
          assess(votes) {
            const { winner, agreeing } = countLogs(votes, needed).tally;
            return { isDecided: winner !== undefined, agreeing };
          },
        },
        signal,
      );
      const { range, tally, ballots } = countLogs(collected.votes, needed);
      const isContradicted = !collected.isDecided && collected.votes.length >= needed;
      if (isContradicted && !isFresh && !signal.aborted) continue;
      observer.onRead(collected.isDecided ? (tally.outvoted.length > 0 ? "disputed" : "agreed") : "undecided");
      const winner = collected.votes[tally.winner ?? -1];
      if (winner === undefined) throw createVoteError(slug, needed, collected);
      for (const outvoted of tally.outvoted) {
        const { voter } = collected.votes[outvoted] as Vote<FoundLogs>;
        const expected = ballots[tally.winner ?? -1]?.text;
        confirmations.suspect(voter, "logs", async (confirmSignal) => {
          const again = await voter.readLogs(filter, range, newestFirst, confirmSignal, undefined, true);
          const found = toFoundLogs(again, range);
          return found.range.from === range.from && found.range.to === range.to && printLogs(found, range) !== expected;
        });
      }
      // A search up to the head is one request, or none: the caller goes on in parts.
      const isPartial = range.from !== pinned.from || range.to !== pinned.to;
      if (requested.to === Number.POSITIVE_INFINITY && isPartial) return undefined;
      return { result: selectLogs(winner.answer, range), range };
    }
  };
}

function toFoundLogs(
  found: { readonly result: unknown; readonly range: BlockRange } | undefined,
  requested: BlockRange,
): FoundLogs {
  if (found === undefined) throw new Error("a range with an end was not searched");
  const { result, range } = found;
  return { logs: Array.isArray(result) ? (result as readonly RpcLog[]) : [], range: intersect(range, requested) };
}

/** Counts the votes about the part of the range that all have searched. */
function countLogs(votes: readonly Vote<FoundLogs>[], needed: number): CountedLogs {
  const ranges = votes.map(({ answer }) => answer.range);
  const range = ranges.reduce(intersect, { from: 0, to: Number.POSITIVE_INFINITY });
  const ballots = votes.map(({ answer }) => ({ text: printLogs(answer, range) }));
  return { range, ballots, tally: countEqualVotes(ballots, needed) };
}

function printLogs(found: FoundLogs, range: BlockRange): string {
  return canonicalizeLogs(selectLogs(found, range));
}

function selectLogs({ logs }: FoundLogs, { from, to }: BlockRange): readonly RpcLog[] {
  return logs.filter(({ blockNumber }) => Number(blockNumber) >= from && Number(blockNumber) <= to);
}

function intersect(a: BlockRange, b: BlockRange): BlockRange {
  return { from: Math.max(a.from, b.from), to: Math.min(a.to, b.to) };
}
