import type { RpcCall, RpcCallResult } from "../chain-client.js";
import type { ChainHead } from "../heads/head-tracker.js";
import { toQuantity } from "../hex.js";
import {
  type CanonicalAnswer,
  canonicalize,
  getComparison,
  getNamedBlock,
  getReadKind,
  hasLatestTag,
  needsHead,
  pinCall,
} from "./canonical-answer.js";
import { countVotes } from "./count-votes.js";
import { countCloseHeads, isImpossibleHead, selectAgreedHead, selectOldestHead } from "./head-agreement.js";
import type { Count, Poll, Vote, VoteProgress } from "./vote.js";
import type { VoteContext, Voter } from "./voter.js";

/** What one endpoint has said. */
interface CallAnswer {
  /** Its head, as far as it is known. */
  readonly head: ChainHead | undefined;
  /** Number of the block that its answers are about; undefined: that does not matter. */
  readonly block: number | undefined;
  readonly round: number;
  /** By index of the call. */
  readonly outcomes: ReadonlyMap<number, RpcCallResult>;
}

/**
 * Gets the outcomes of the same calls, about the same block, from several endpoints. Each says along with its answers which
 * block is its newest one. If enough are known to have a block, all are asked about that; otherwise about their latest one,
 * and those that are ahead of the others once more. Where they contradict each other, they are asked about the oldest block of
 * any of them: an honest endpoint may be behind.
 */
export class CallPoll implements Poll<CallAnswer, readonly RpcCallResult[]> {
  readonly #asksAll: boolean;
  readonly #calls: readonly RpcCall[];
  readonly #context: VoteContext;
  readonly #needsHead: boolean;
  /** The newest block that calls name; -1: none. */
  readonly #namedBlock: number;
  /** The block that all are asked about; undefined: none yet, or that does not matter. */
  #block: ChainHead | undefined;
  #round = 0;
  #takesOldest: boolean;

  /** @param agreed the newest block that enough endpoints are known to have; undefined: they have to be asked */
  constructor(calls: readonly RpcCall[], agreed: ChainHead | undefined, context: VoteContext) {
    const named = calls.flatMap((call) => getNamedBlock(call) ?? []);
    // Finality has no majority, and is asked rarely.
    this.#asksAll = context.isSampled || calls.some((call) => getComparison(call) === "tag");
    // The head is read by a call of its own: results are often about another block.
    this.#calls = calls.map((call) => ({ ...call, parseHead: undefined }));
    this.#context = context;
    this.#needsHead = calls.some(needsHead);
    this.#namedBlock = Math.max(-1, ...named);
    this.#block = this.#needsHead ? agreed : undefined;
    this.#takesOldest = context.isSampled;
  }

  get asksAll(): boolean {
    // Otherwise an endpoint that contradicts the others about an older block would not be waited for, and not be named.
    return this.#asksAll || this.#takesOldest;
  }

  async ask(voter: Voter, signal: AbortSignal): Promise<CallAnswer> {
    const round = this.#round;
    const known = voter.findHead(Number.POSITIVE_INFINITY);
    const isKnownToHave = (block: number | undefined): boolean => block !== undefined && (known?.number ?? -1) >= block;
    const pinned = isKnownToHave(this.#block?.number) ? this.#block?.number : undefined;
    const readsHead = this.#needsHead
      ? pinned === undefined || !voter.hasFreshHead()
      : this.#namedBlock >= 0 && !isKnownToHave(this.#namedBlock);
    const asked = [...this.#calls.entries()].filter(([, call]) => !isBlockNumber(call));
    const calls = asked.map(([, call]) => pinCall(call, pinned));
    const { head = known, outcomes } = await voter.request(calls, signal, readsHead ? this.#calls[0] : undefined);
    const byIndex = asked.map(([index], position) => [index, outcomes[position] as RpcCallResult] as const);
    return { head, block: pinned ?? head?.number, round, outcomes: new Map(byIndex) };
  }

  assess(votes: readonly Vote<CallAnswer>[], isLast: boolean): VoteProgress {
    const { needed } = this.#context;
    const heads = listHeads(votes);
    if (this.#needsHead && this.#block === undefined) {
      this.#block = this.#selectBlock(heads, isLast);
      if (this.#block === undefined) {
        const isSufficient = selectAgreedHead(heads, needed) !== undefined;
        return { isDecided: false, isSufficient, agreeing: Math.min(countCloseHeads(heads), needed) };
      }
    }
    const counts = this.count(votes);
    const open = counts.filter(({ tally }) => !tally.isSettled);
    const isSufficient = open.every(({ tally }) => tally.winner !== undefined);
    const agreeing = Math.min(needed, ...open.map(({ tally }) => Math.min(tally.agreeing, needed - 1)));
    // What is newer than the block may be known to all by now.
    const isAnyBeyond = counts.some(({ ballots }) => ballots.some(({ isBeyond }) => isBeyond === true));
    const isCast = isLast && !votes.some((vote) => this.isOutdated(vote));
    const isContradicted = isCast && !isSufficient && votes.length >= needed;
    if (this.#needsHead && this.#round === 0 && (isContradicted || (isSufficient && isAnyBeyond))) {
      this.#repeat(heads, this.#block, isContradicted);
      return { isDecided: false, isSufficient: false, agreeing: 0 };
    }
    return { isDecided: open.length === 0, isSufficient, agreeing };
  }

  isOutdated({ answer }: Vote<CallAnswer>): boolean {
    return this.#needsHead && this.#compare(answer) === "outdated";
  }

  count(votes: readonly Vote<CallAnswer>[]): readonly Count[] {
    const valid = votes.filter(({ answer }) => this.#compare(answer) === "valid");
    return this.#calls.map((_, index) => this.#countCall(index, valid));
  }

  getResult(counts: readonly Count[], votes: readonly Vote<CallAnswer>[]): readonly RpcCallResult[] {
    return counts.map(({ voters, ballots, tally }, index) => {
      if (isBlockNumber(this.#calls[index])) return { result: toQuantity(this.#block?.number ?? 0) };
      const winner = tally.winner ?? -1;
      if (ballots[winner]?.isBeyond === true) return { result: null };
      return votes.find(({ voter }) => voter === voters[winner])?.answer.outcomes.get(index) as RpcCallResult;
    });
  }

  /** Returns the voters whose head contradicts the block that the others have. */
  listImpossibleHeads(votes: readonly Vote<CallAnswer>[]): readonly Voter[] {
    const agreed = this.#block;
    if (agreed === undefined) return [];
    return votes.flatMap(({ voter, answer: { head } }) => (head && isImpossibleHead(head, agreed) ? voter : []));
  }

  /** Returns what has no majority; empty: the answers. */
  get question(): string {
    return this.#needsHead && this.#block === undefined ? "the latest block" : "";
  }

  #selectBlock(heads: readonly ChainHead[], isLast: boolean): ChainHead | undefined {
    const { needed } = this.#context;
    const agreed = selectAgreedHead(heads, needed);
    if (agreed === undefined || (!isLast && (this.#takesOldest || countCloseHeads(heads) < needed))) return undefined;
    return this.#takesOldest ? selectOldestHead(heads, agreed) : agreed;
  }

  /** Has the votes cast once more: about an older block if an endpoint has only that, otherwise about one that is asked anew. */
  #repeat(heads: readonly ChainHead[], block: ChainHead | undefined, takesOldest: boolean): void {
    const oldest = block && takesOldest ? selectOldestHead(heads, block) : block;
    this.#round += 1;
    this.#takesOldest ||= takesOldest;
    this.#block = oldest === block ? undefined : oldest;
  }

  /** Returns whether an answer counts: it is about the block. behind: its endpoint does not have the block. */
  #compare({ head, block, round }: CallAnswer): "behind" | "outdated" | "valid" {
    const headNumber = head?.number ?? -1;
    if (!this.#needsHead) return headNumber >= this.#namedBlock ? "valid" : "behind";
    if (this.#block === undefined) return round < this.#round ? "outdated" : "valid";
    if (headNumber < Math.max(this.#block.number, this.#namedBlock)) return "behind";
    return block === this.#block.number || !this.#calls.some(hasLatestTag) ? "valid" : "outdated";
  }

  #countCall(index: number, votes: readonly Vote<CallAnswer>[]): Count {
    const call = this.#calls[index] as RpcCall;
    const block = this.#block?.number;
    const cast = votes.flatMap(({ voter, answer }) => {
      const outcome = answer.outcomes.get(index);
      return outcome === undefined ? [] : [{ voter, ballot: canonicalize(call, outcome, block) }];
    });
    const ballots = cast.map(({ ballot }) => ballot);
    // The common block itself is not asked for: it is what the heads agree on.
    const tally = isBlockNumber(call)
      ? { winner: 0, outvoted: [], agreeing: 0, isSettled: true }
      : this.#tally(call, ballots, block);
    return {
      read: getReadKind(call),
      ballots,
      voters: cast.map(({ voter }) => voter),
      tally,
      confirm: async (voter, signal) => {
        const again = { ...pinCall(call, block), onRequest: undefined, isBackground: true };
        const [outcome] = (await voter.request([again], signal)).outcomes;
        if (outcome === undefined) return false;
        const others = ballots.filter((_, other) => !tally.outvoted.includes(other));
        const recount = [...others, canonicalize(call, outcome, block)];
        return this.#tally(call, recount, block).outvoted.includes(others.length);
      },
    };
  }

  #tally(call: RpcCall, ballots: readonly CanonicalAnswer[], block = 0) {
    return countVotes(getComparison(call), ballots, this.#context.needed, block);
  }
}

function listHeads(votes: readonly Vote<CallAnswer>[]): readonly ChainHead[] {
  return votes.flatMap(({ answer: { head } }) => head ?? []);
}

function isBlockNumber(call: RpcCall | undefined): boolean {
  return call?.method === "eth_blockNumber";
}
