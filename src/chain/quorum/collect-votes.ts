import { ServiceError } from "../../errors.js";
import { createAbortScope } from "../../resilience/abort-scope.js";
import { UpstreamError } from "../../resilience/upstream-error.js";
import { computeHedgeDelayMs } from "../endpoints/attempt-plan.js";
import { RpcError } from "../json-rpc/rpc-codec.js";
import type { Voter } from "./voter.js";

export interface Vote<A> {
  readonly voter: Voter;
  readonly answer: A;
}

/** How far a vote is. */
export interface VoteProgress {
  readonly isDecided: boolean;
  /** The largest number of voters that agree; of several questions, about the one where they agree least. */
  readonly agreeing: number;
}

export interface CollectVotesOptions<A> {
  /** In the order in which they are asked. */
  readonly voters: readonly Voter[];
  /** Errors of those that are not asked because of limits of ours. */
  readonly refusals: readonly unknown[];
  readonly needed: number;
  /** Whether all are asked and waited for, as far as they answer about as soon as the others. */
  readonly asksAll: boolean;
  readonly ask: (voter: Voter, signal: AbortSignal) => Promise<A>;
  readonly assess: (votes: readonly Vote<A>[]) => VoteProgress;
  /** Resolves after a time in milliseconds, or when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

export interface CollectedVotes<A> {
  readonly votes: readonly Vote<A>[];
  readonly isDecided: boolean;
  /** As in VoteProgress. */
  readonly agreeing: number;
  /** Errors of those who gave no answer. */
  readonly failures: readonly unknown[];
}

type Settled<A> = { readonly voter: Voter } & ({ readonly answer: A } | { readonly error: unknown });

/** How long a voter may take before another one is asked beside it. The request itself has its own timeout. */
const REQUEST_TIMEOUT_MS = 10_000;

/**
 * Asks as many voters as have to agree, and others where one gives no answer, is slow or disagrees. Ends when the vote is
 * decided, when nobody is left to ask, or when the signal aborts; requests that are still running then are aborted.
 */
export async function collectVotes<A>(
  options: CollectVotesOptions<A>,
  signal: AbortSignal,
): Promise<CollectedVotes<A>> {
  const { needed, asksAll, ask, assess, sleep } = options;
  const queue = [...options.voters];
  const scope = createAbortScope(signal);
  const running = new Map<Voter, Promise<Settled<A>>>();
  const votes: Vote<A>[] = [];
  const failures: unknown[] = [...options.refusals];

  function askNext(): boolean {
    const voter = queue.shift();
    if (voter === undefined) return false;
    const settled = ask(voter, scope.signal).then(
      (answer) => ({ voter, answer }),
      (error: unknown) => ({ voter, error }),
    );
    running.set(voter, settled);
    return true;
  }

  function waitForDelay(): Promise<undefined> {
    const latencies = [...running.keys()].map((voter) => voter.latencyMs());
    const delays = latencies.map((latencyMs) =>
      computeHedgeDelayMs({ latencyMs, requestTimeoutMs: REQUEST_TIMEOUT_MS }),
    );
    return sleep(Math.max(...delays), scope.signal).then(() => undefined);
  }

  try {
    while (running.size < (asksAll ? Number.POSITIVE_INFINITY : needed) && askNext());
    for (let isLate = false; ; ) {
      const { isDecided, agreeing } = assess(votes);
      if (isDecided && (!asksAll || isLate || running.size === 0)) return { votes, isDecided, agreeing, failures };
      while (agreeing + running.size < needed && askNext());
      if (running.size === 0 || signal.aborted) return { votes, isDecided, agreeing, failures };
      const mayAskMore = queue.length > 0 || isDecided;
      const settled = await Promise.race([...running.values(), ...(mayAskMore ? [waitForDelay()] : [])]);
      if (settled === undefined) {
        isLate = true;
        if (!isDecided) askNext();
        continue;
      }
      running.delete(settled.voter);
      if ("answer" in settled) votes.push({ voter: settled.voter, answer: settled.answer });
      else failures.push(settled.error);
    }
  } finally {
    scope.cancel();
  }
}

/** What is known about a vote that could not be decided. */
export type UndecidedVote = Pick<CollectedVotes<unknown>, "agreeing" | "failures"> & {
  readonly votes: readonly unknown[];
};

/**
 * Creates the error for a vote that could not be decided. Where limits of ours have kept voters out whose votes could have
 * decided it, that is the first of their errors.
 * @param question what fewer than `needed` agree on; empty: whatever was asked
 */
export function createVoteError(
  slug: string,
  needed: number,
  { votes, agreeing, failures }: UndecidedVote,
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
