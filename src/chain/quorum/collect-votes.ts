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
  const failures: unknown[] = [];

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
      if (isDecided && (!asksAll || isLate || running.size === 0)) return { votes, isDecided, failures };
      while (agreeing + running.size < needed && askNext());
      if (running.size === 0 || signal.aborted) return { votes, isDecided, failures };
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

/**
 * Creates the error for a vote that could not be decided.
 * @param question what fewer than `needed` agree on; empty: whatever was asked
 */
export function createVoteError(
  slug: string,
  needed: number,
  { votes, failures }: { readonly votes: readonly unknown[]; readonly failures: readonly unknown[] },
  question = "",
): unknown {
  const causes = failures.map((error) => (error instanceof ServiceError ? error.cause : undefined));
  if (votes.length >= needed) {
    const agree = question === "" ? "agree" : `agree on ${question}`;
    const message = `the RPC endpoints of ${slug} contradict each other: fewer than ${needed} ${agree} (RPC_QUORUM)`;
    return new ServiceError("UPSTREAM_UNAVAILABLE", message);
  }
  // A budget of ours, and not the endpoint, has prevented the request.
  const refusal = failures.find((_, index) => !(causes[index] instanceof UpstreamError));
  if (refusal !== undefined) return refusal;
  const message = `only ${votes.length} of the ${needed} RPC endpoints of ${slug} that have to agree responded (RPC_QUORUM)`;
  const cause = causes.find((each) => each instanceof RpcError) ?? causes[0];
  return new ServiceError("UPSTREAM_UNAVAILABLE", message, cause === undefined ? {} : { cause });
}
