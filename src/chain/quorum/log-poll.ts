import { ServiceError } from "../../errors.js";
import { UpstreamError } from "../../resilience/http-client/upstream-error.js";
import type { BlockRange, LogSearch, LogsResult } from "../chain-client.js";
import type { RpcLog } from "../json-rpc/parse-results.js";
import { canonicalizeLogs } from "./canonical-answer.js";
import { countEqualVotes } from "./count-votes.js";
import type { Count, Poll, Vote, VoteProgress } from "./vote.js";
import type { VoteContext, Voter } from "./voter.js";

/** The logs that an endpoint has found, and where it has searched. */
interface FoundLogs {
  readonly logs: readonly RpcLog[];
  readonly range: BlockRange;
  /** Whether it does not have the end of the search yet. */
  readonly isBehind: boolean;
}

/**
 * Has several endpoints search logs in the same blocks. Endpoints accept different numbers of blocks: what counts is the
 * part that all of them have searched, and the result covers that part only. One that does not have the end of the search
 * yet only counts where the others contradict each other.
 */
export class LogPoll implements Poll<FoundLogs, LogsResult | undefined> {
  readonly asksAll: boolean;
  readonly question = "";
  readonly #needed: number;
  readonly #search: LogSearch;
  /** Whether the search is up to the head. */
  readonly #isOpen: boolean;
  #countsBehind = false;

  /** @param end the block up to which all endpoints search */
  constructor(search: LogSearch, end: number, { needed, isSampled }: VoteContext) {
    this.asksAll = isSampled;
    this.#needed = needed;
    this.#search = { ...search, range: { from: search.range.from, to: end } };
    this.#isOpen = search.range.to === Number.POSITIVE_INFINITY;
  }

  async ask(voter: Voter, signal: AbortSignal): Promise<FoundLogs> {
    const { range } = this.#search;
    if (range.to < range.from) return { logs: [], range, isBehind: false };
    const known = voter.findHead(Number.POSITIVE_INFINITY)?.number ?? -1;
    const head = known >= range.to ? known : ((await voter.request([], signal, this.#search)).head?.number ?? -1);
    if (head < range.from) {
      const cause = new UpstreamError("does not have the blocks yet", { kind: "invalid_response" });
      throw new ServiceError("UPSTREAM_UNAVAILABLE", "no endpoint has the blocks", { cause });
    }
    const to = Math.min(range.to, head);
    return {
      ...(await this.#searchAt(voter, { ...this.#search, range: { ...range, to } }, signal)),
      isBehind: to < range.to,
    };
  }

  assess(votes: readonly Vote<FoundLogs>[], isLast: boolean): VoteProgress {
    const isSettled = (): boolean => this.count(votes)[0].tally.isSettled;
    this.#countsBehind ||= isLast && !isSettled();
    const [{ tally }] = this.count(votes);
    return { isDecided: tally.isSettled, isSufficient: tally.isSettled, agreeing: tally.agreeing };
  }

  isOutdated(): boolean {
    return false;
  }

  count(votes: readonly Vote<FoundLogs>[]): readonly [Count] {
    const valid = this.#listValid(votes);
    const range = intersectAll(valid);
    const ballots = valid.map(({ answer }) => ({ text: printLogs(answer, range) }));
    const tally = countEqualVotes(ballots, this.#needed);
    return [
      {
        read: "logs",
        ballots,
        voters: valid.map(({ voter }) => voter),
        tally,
        confirm: async (voter, signal) => {
          const search = { ...this.#search, range, onRequest: undefined, isBackground: true };
          const found = await this.#searchAt(voter, search, signal);
          const isWhole = found.range.from === range.from && found.range.to === range.to;
          return isWhole && printLogs(found, range) !== ballots[tally.winner ?? -1]?.text;
        },
      },
    ];
  }

  getResult([count]: readonly Count[], votes: readonly Vote<FoundLogs>[]): LogsResult | undefined {
    const valid = this.#listValid(votes);
    const winner = valid[count?.tally.winner ?? -1];
    if (winner === undefined) throw new Error("the vote is not decided");
    const range = intersectAll(valid);
    const { from, to } = this.#search.range;
    // A search up to the head is one request, or none: the caller goes on in parts.
    if (this.#isOpen && (range.from !== from || range.to !== to)) return undefined;
    if (this.#search.newestFirst === true && range.to < to)
      throw new ServiceError("UPSTREAM_UNAVAILABLE", `too few RPC endpoints have block ${to} (RPC_QUORUM)`);
    return { result: selectLogs(winner.answer, range), range };
  }

  listImpossibleHeads(): readonly Voter[] {
    return [];
  }

  #listValid(votes: readonly Vote<FoundLogs>[]): readonly Vote<FoundLogs>[] {
    return votes.filter(({ answer }) => this.#countsBehind || !answer.isBehind);
  }

  async #searchAt(voter: Voter, search: LogSearch, signal: AbortSignal): Promise<Omit<FoundLogs, "isBehind">> {
    const found = await voter.searchLogs(search, signal);
    if (found === undefined) throw new Error("a search with an end has a result");
    const { result, range } = found;
    const logs = Array.isArray(result) ? (result as readonly RpcLog[]) : [];
    return { logs, range: intersect(range, search.range) };
  }
}

function printLogs({ logs }: Pick<FoundLogs, "logs">, range: BlockRange): string {
  return canonicalizeLogs(selectLogs({ logs }, range));
}

function selectLogs({ logs }: Pick<FoundLogs, "logs">, { from, to }: BlockRange): readonly RpcLog[] {
  return logs.filter(({ blockNumber }) => Number(blockNumber) >= from && Number(blockNumber) <= to);
}

/** Returns what all endpoints have searched. */
function intersectAll(votes: readonly Vote<FoundLogs>[]): BlockRange {
  const everything = { from: 0, to: Number.POSITIVE_INFINITY };
  return votes.map(({ answer }) => answer.range).reduce(intersect, everything);
}

function intersect(a: BlockRange, b: BlockRange): BlockRange {
  return { from: Math.max(a.from, b.from), to: Math.min(a.to, b.to) };
}
