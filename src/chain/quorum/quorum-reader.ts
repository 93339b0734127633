import type { RpcCall, RpcCallResult } from "../chain-client.js";
import type { HedgedRequester } from "../endpoints/hedged-requests.js";
import { toQuantity } from "../hex.js";
import { type CollectedVotes, collectVotes, createVoteError, type Vote } from "./collect-votes.js";
import { listEligible, type QuorumDeps } from "./quorum-deps.js";
import { type CanonicalAnswer, canonicalize, getComparison, getReadKind } from "./rules/canonical-answer.js";
import { countVotes, type Tally } from "./rules/count-votes.js";
import { getNamedBlock, needsHead, pinCall } from "./rules/pinned-call.js";
import { listRefusals, type Voter } from "./voter.js";

/** What one endpoint has said about the calls that it was asked, by their index. */
type Answers = ReadonlyMap<number, RpcCallResult>;

interface Question {
  /** About the common block. */
  readonly calls: readonly RpcCall[];
  readonly block: number | undefined;
  /** Number of the block that a voter has to have; undefined: any will do. */
  readonly requiredHead: number | undefined;
}

/** The votes about one call. */
interface CallVotes {
  readonly ballots: readonly CanonicalAnswer[];
  readonly votes: readonly { readonly voter: Voter; readonly outcome: RpcCallResult }[];
  readonly tally: Tally;
}

/**
 * Creates a requester that gets the outcomes of calls from several endpoints, at the same block, and returns those on which
 * enough agree. Calls about the latest block are made at the newest one that enough endpoints have.
 * @throws ServiceError from the returned requester: UPSTREAM_UNAVAILABLE when too few agree or respond; OVERLOADED when that
 * is due to limits of ours
 */
export function createQuorumReader(deps: QuorumDeps): HedgedRequester {
  const { slug, needed, board, confirmations, observer } = deps;

  async function preparePoll(calls: readonly RpcCall[], signal: AbortSignal, isFresh: boolean): Promise<Question> {
    const isBackground = calls.some((call) => call.isBackground === true);
    const named = calls.flatMap((call) => getNamedBlock(call) ?? []);
    let block: number | undefined;
    if (calls.some(needsHead)) block = await board.agree(signal, { isBackground, isFresh });
    const requiredHead = Math.max(...named, block ?? -1);
    const isUnread = isFresh && block === undefined;
    if (requiredHead >= 0 && (isUnread || listEligible(deps, requiredHead).length < needed))
      await board.agree(signal, { isBackground, isFresh: true });
    return {
      calls: calls.map((call) => pinCall(call, block)),
      block,
      requiredHead: requiredHead < 0 ? undefined : requiredHead,
    };
  }

  function countCall({ calls, block }: Question, index: number, all: readonly Vote<Answers>[]): CallVotes {
    const call = calls[index] as RpcCall;
    const votes = all.flatMap(({ voter, answer }) => {
      const outcome = answer.get(index);
      return outcome === undefined ? [] : [{ voter, outcome }];
    });
    const ballots = votes.map(({ outcome }) => canonicalize(call, outcome, block));
    return { votes, ballots, tally: countVotes(getComparison(call), ballots, needed, block ?? 0) };
  }

  async function poll(question: Question, signal: AbortSignal): Promise<CollectedVotes<Answers>> {
    const { calls } = question;
    let undecided = [...calls.keys()].filter((index) => !isBlockNumber(calls[index]));
    if (undecided.length === 0) return { votes: [], failures: [], agreeing: 0, isDecided: true };
    return collectVotes<Answers>(
      {
        ...deps,
        voters: listEligible(deps, question.requiredHead),
        refusals: listRefusals(deps.voters),
        // Finality has no majority, and is asked rarely.
        asksAll: deps.asksAll || calls.some((call) => getComparison(call) === "tag"),
        async ask(voter, voteSignal) {
          // Others are asked only about what is disputed.
          const asked = undecided;
          const outcomes = await voter.request(
            asked.map((index) => calls[index] as RpcCall),
            voteSignal,
          );
          return new Map(asked.map((index, position) => [index, outcomes[position] as RpcCallResult]));
        },
        assess(votes) {
          const counted = undecided.map((index) => ({ index, ...countCall(question, index, votes).tally }));
          const agreeing = Math.min(
            ...counted.filter(({ winner }) => winner === undefined).map((each) => each.agreeing),
          );
          if (!deps.asksAll) undecided = counted.filter(({ winner }) => winner === undefined).map(({ index }) => index);
          const isDecided = counted.every(({ winner }) => winner !== undefined);
          return { isDecided, agreeing: isDecided ? needed : agreeing };
        },
      },
      signal,
    );
  }

  /** Asks endpoints again whose answers contradict the others. */
  function suspectOutvoted(question: Question, index: number, { tally, votes, ballots }: CallVotes): void {
    const call = question.calls[index] as RpcCall;
    const winner = ballots[tally.winner ?? -1];
    if (winner === undefined) return;
    for (const outvoted of tally.outvoted) {
      const voter = votes[outvoted]?.voter;
      if (voter === undefined) continue;
      confirmations.suspect(voter, getReadKind(call), async (signal) => {
        const [outcome] = await voter.request([{ ...call, onRequest: undefined, isBackground: true }], signal);
        if (outcome === undefined) return false;
        const others = ballots.filter((_, other) => !tally.outvoted.includes(other));
        const recount = [...others, canonicalize(call, outcome, question.block)];
        const counted = countVotes(getComparison(call), recount, needed, question.block ?? 0);
        return counted.outvoted.includes(others.length);
      });
    }
  }

  return async (calls, signal) => {
    for (let isFresh = false; ; isFresh = true) {
      const question = await preparePoll(calls, signal, isFresh);
      const collected = await poll(question, signal);
      const counted = calls.map((_, index) => countCall(question, index, collected.votes));
      const isDisputed = counted.some(
        ({ ballots, tally }) => ballots.length > tally.agreeing || tally.outvoted.length > 0,
      );
      // The block may have been replaced by a reorg, and what is newer than it may be known to all by now.
      const isOutdated = counted.some(({ ballots }) => ballots.some(({ isBeyond }) => isBeyond === true));
      const isRepeatable = !isFresh && !signal.aborted && question.requiredHead !== undefined;
      if (isRepeatable && (isOutdated || (!collected.isDecided && collected.votes.length >= needed))) continue;
      // A late vote may have undone what was decided before.
      const isDecided = counted.every(({ tally }, index) => tally.winner !== undefined || isBlockNumber(calls[index]));
      observer.onRead(isDecided ? (isDisputed ? "disputed" : "agreed") : "undecided");
      for (const [index, callVotes] of counted.entries()) suspectOutvoted(question, index, callVotes);
      if (!isDecided) throw createVoteError(slug, needed, collected);
      return counted.map(({ votes, ballots, tally }, index) => {
        if (isBlockNumber(calls[index])) return { result: toQuantity(question.block ?? 0) };
        const winner = tally.winner ?? -1;
        return ballots[winner]?.isBeyond === true ? { result: null } : (votes[winner]?.outcome as RpcCallResult);
      });
    }
  };
}

/** Returns whether a call asks for the common block itself. */
function isBlockNumber(call: RpcCall | undefined): boolean {
  return call?.method === "eth_blockNumber";
}
