import { ServiceError } from "../../errors.js";
import { createAbortScope } from "../../resilience/abort-scope.js";
import { UpstreamError } from "../../resilience/http-client/upstream-error.js";
import { computeHedgeDelayMs } from "../endpoints/attempts.js";
import { RpcError } from "../json-rpc/rpc-errors.js";
import type { CanonicalAnswer, ReadKind } from "./canonical-answer.js";
import type { Tally } from "./count-votes.js";
import type { VoteContext, Voter } from "./voter.js";

export interface Vote<A> {
  readonly voter: Voter;
  readonly answer: A;
}

/** How far a vote is. */
export interface VoteProgress {
  readonly isDecided: boolean;
  /** Whether the answers suffice, although others are waited for while they are not late. */
  readonly isSufficient: boolean;
  /** The largest number of voters that agree; of several questions, about the one where they agree least. */
  readonly agreeing: number;
}

/** What is asked of several endpoints, and how their answers are counted. */
export interface Poll<A, R> {
  /** Whether all are asked and waited for, as far as they answer about as soon as the others. Answers may change it. */
  readonly asksAll: boolean;
  ask(voter: Voter, signal: AbortSignal): Promise<A>;
  /** Counts the votes so far. @param isLast whether nobody else is asked or waited for, as it is */
  assess(votes: readonly Vote<A>[], isLast: boolean): VoteProgress;
  /** Returns whether a vote does not count because it is about another block: its voter is asked again. */
  isOutdated(vote: Vote<A>): boolean;
  /** Counts the votes about each question when nobody is asked any more. */
  count(votes: readonly Vote<A>[]): readonly Count[];
  /** Returns the answers that have won. */
  getResult(counts: readonly Count[], votes: readonly Vote<A>[]): R;
  /** Returns the voters whose head cannot be true. */
  listImpossibleHeads(votes: readonly Vote<A>[]): readonly Voter[];
  /** What could not be decided before the answers were counted; empty: nothing. */
  readonly question: string;
}

/** The votes about one question. */
export interface Count {
  readonly read: ReadKind;
  readonly ballots: readonly CanonicalAnswer[];
  /** Who has cast the ballots. */
  readonly voters: readonly Voter[];
  readonly tally: Tally;
  /** Asks a voter again. Returns whether it contradicts the others once more. */
  readonly confirm: (voter: Voter, signal: AbortSignal) => Promise<boolean>;
}

interface CollectedVotes<A> extends VoteProgress {
  readonly votes: readonly Vote<A>[];
  /** Errors of those who gave no answer. */
  readonly failures: readonly unknown[];
}

/** How often one voter is asked again because its answer was about another block. Honest ones need it twice. */
const MAX_REPEATS = 3;

/** How long a voter may take before another one is asked beside it. The request itself has its own timeout. */
const REQUEST_TIMEOUT_MS = 10_000;

/**
 * Asks as many voters as have to agree, and others where one gives no answer, is slow or disagrees. Ends when the vote is
 * decided, when nobody is left to ask (or, where the answers suffice, the last one is slow), or when the signal aborts;
 * requests that are still running then are aborted.
 * @param electorate.voters in the order in which they are asked
 * @param electorate.refusals errors of those that are not asked because of a limit of requests
 */
export function collectVotes<A>(
  poll: Poll<A, unknown>,
  electorate: { readonly voters: readonly Voter[]; readonly refusals: readonly unknown[] },
  context: VoteContext,
  signal: AbortSignal,
): Promise<CollectedVotes<A>> {
  return new VoteCollection(poll, electorate, context, signal).run();
}

/** A vote, or why there is none. */
type Settled<A> = Vote<A> | { readonly voter: Voter; readonly error: unknown };

class VoteCollection<A> {
  readonly #poll: Poll<A, unknown>;
  readonly #context: VoteContext;
  readonly #signal: AbortSignal;
  readonly #scope: ReturnType<typeof createAbortScope>;
  readonly #running = new Map<Voter, Promise<Settled<A>>>();
  /** Those of the running ones that are slow. */
  readonly #late = new Set<Voter>();
  readonly #failures: unknown[];
  readonly #repeats = new Map<Voter, number>();
  #queue: readonly Voter[];
  #votes: readonly Vote<A>[] = [];

  constructor(
    poll: Poll<A, unknown>,
    { voters, refusals }: Parameters<typeof collectVotes>[1],
    context: VoteContext,
    signal: AbortSignal,
  ) {
    this.#poll = poll;
    this.#context = context;
    this.#signal = signal;
    this.#scope = createAbortScope(signal);
    this.#queue = voters;
    this.#failures = [...refusals];
  }

  async run(): Promise<CollectedVotes<A>> {
    const { needed } = this.#context;
    try {
      if (this.#poll.asksAll) while (this.#askNext());
      for (;;) {
        const progress = this.#assess();
        const { isDecided, isSufficient, agreeing } = progress;
        if (isDecided && (!this.#poll.asksAll || this.#isLast({ waitsForLate: false }))) return this.#end(progress);
        this.#askOutdated();
        while (agreeing + this.#running.size < needed && this.#askNext());
        if (this.#signal.aborted || this.#isLast({ waitsForLate: !isSufficient })) return this.#end(progress);
        const settled = await this.#waitForNext(progress);
        if (settled === undefined) this.#recordDelay(progress);
        else this.#record(settled);
      }
    } finally {
      this.#scope.cancel();
      if (!this.#signal.aborted)
        for (const voter of this.#running.keys()) if (this.#late.has(voter)) voter.recordSilence();
    }
  }

  #end(progress: VoteProgress): CollectedVotes<A> {
    return { votes: this.#votes, ...progress, failures: this.#failures };
  }

  #askNext(): boolean {
    const [voter, ...others] = this.#queue;
    if (voter === undefined) return false;
    this.#queue = others;
    const settled = this.#poll.ask(voter, this.#scope.signal).then(
      (answer) => ({ voter, answer }),
      (error: unknown) => ({ voter, error }),
    );
    this.#running.set(voter, settled);
    return true;
  }

  /** Returns whether nobody is left who is waited for, unless the vote needs those that are late. */
  #isLast({ waitsForLate }: { readonly waitsForLate: boolean }): boolean {
    return (
      this.#queue.length === 0 && [...this.#running.keys()].every((voter) => !waitsForLate && this.#late.has(voter))
    );
  }

  #assess(): VoteProgress {
    const progress = this.#poll.assess(this.#votes, this.#isLast({ waitsForLate: true }));
    const waitsForLate = !this.#poll.asksAll && !progress.isSufficient;
    const canEnd = this.#running.size > 0 && this.#isLast({ waitsForLate });
    return canEnd ? this.#poll.assess(this.#votes, true) : progress;
  }

  /** Asks those again who have answered about another block than the others, unless they do so time and again. */
  #askOutdated(): void {
    const outdated = this.#votes.filter((vote) => this.#poll.isOutdated(vote));
    this.#votes = this.#votes.filter((vote) => !outdated.includes(vote));
    const repeated = outdated.map(({ voter }) => voter).filter((voter) => this.#countRepeat(voter) <= MAX_REPEATS);
    this.#queue = [...repeated, ...this.#queue];
    for (const _ of repeated) this.#askNext();
  }

  #countRepeat(voter: Voter): number {
    const count = (this.#repeats.get(voter) ?? 0) + 1;
    this.#repeats.set(voter, count);
    return count;
  }

  /** Resolves to the next answer; to undefined once those that are running are slow and another one could be asked. */
  #waitForNext({ isSufficient }: VoteProgress): Promise<Settled<A> | undefined> {
    const waits = this.#queue.length > 0 || this.#poll.asksAll || isSufficient ? [this.#waitForDelay()] : [];
    return Promise.race([...this.#running.values(), ...waits]);
  }

  #record(settled: Settled<A>): void {
    this.#running.delete(settled.voter);
    this.#late.delete(settled.voter);
    if ("answer" in settled) this.#votes = [...this.#votes, settled];
    else this.#failures.push(settled.error);
  }

  #recordDelay({ isDecided }: VoteProgress): void {
    for (const voter of this.#running.keys()) this.#late.add(voter);
    if (!isDecided) this.#askNext();
  }

  #waitForDelay(): Promise<undefined> {
    const delays = [...this.#running.keys()].map((voter) =>
      computeHedgeDelayMs(voter.latencyMs(), { requestTimeoutMs: REQUEST_TIMEOUT_MS }),
    );
    return this.#context.sleep(Math.max(...delays), this.#scope.signal).then(() => undefined);
  }
}

/**
 * Creates the error for a vote that could not be decided. Where limits of calls or requests have kept voters out whose votes
 * could have decided it, that is the first of their errors.
 * @param question what fewer than `needed` agree on; empty: whatever was asked
 */
export function createVoteError(
  slug: string,
  needed: number,
  { votes, agreeing, failures }: Pick<CollectedVotes<unknown>, "agreeing" | "failures"> & { votes: readonly unknown[] },
  question = "",
): unknown {
  const causes = failures.map((error) => (error instanceof ServiceError ? error.cause : undefined));
  const refusals = failures.filter((_, index) => !(causes[index] instanceof UpstreamError));
  if (refusals.length > 0 && agreeing + refusals.length >= needed) return refusals[0];
  if (votes.length >= needed) {
    const agree = question === "" ? "agree" : `agree on ${question}`;
    const message = `the RPC endpoints of ${slug} contradict each other: fewer than ${needed} ${agree} (RPC_QUORUM)`;
    return new ServiceError("UPSTREAM_UNAVAILABLE", message);
  }
  const message = `only ${votes.length} of the ${needed} RPC endpoints of ${slug} that have to agree responded (RPC_QUORUM)`;
  const cause = causes.find((each) => each instanceof RpcError) ?? causes.find((each) => each !== undefined);
  return new ServiceError("UPSTREAM_UNAVAILABLE", message, cause === undefined ? {} : { cause });
}
