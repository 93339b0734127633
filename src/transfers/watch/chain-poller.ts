import type { ChainClient } from "../../chain/chain-client.js";
import { readLatestBlockHeader } from "../../chain/read/chain-reads.js";
import { type Chain, getPollIntervalMs } from "../../hop/networks.js";
import { createAbortScope } from "../../resilience/abort-scope.js";
import type { ScheduledJob, Scheduler } from "../../resilience/scheduler.js";
import { type Answer, askChain, type Question } from "./chain-questions.js";

/** A question that a follower asks a chain again and again. Times are milliseconds on the monotonic clock. */
export interface Probe {
  readonly chain: Chain;
  readonly question: Question;
  /** When it is to be asked next. */
  dueAt: number;
  /** The last block whose logs were searched for it; undefined: none yet. */
  searchedTo: number | undefined;
  /** Since when what it asks for may have happened. */
  readonly since: number;
  /** Takes an answer, and returns the time after which it is to be asked again. */
  onAnswer(answer: Answer): number;
}

/** Questions of one poll; the others wait for the next. This bounds what all watches together ask a chain. */
export const MAX_QUESTIONS_PER_POLL = 200;
const POLL_TIMEOUT_MS = 8_000;
/** Longest time between two polls of a transfer. */
const MAX_POLL_MS = 30_000;
/** A transfer is polled in each block for this time after it was sent; most are received by then. */
const FAST_POLL_AGE_MS = 10 * 60_000;
/** After that time the interval grows by a millisecond in this time. */
const AGE_MS_PER_MS = 20;
/** A chain that does not answer is asked for one block only, so often, before it is polled again. */
const RECOVERY_INTERVAL_MS = 3_000;
const FIRST_RETRY_MS = 1_000;
/** Blocks of this time are searched again, since endpoints may serve a block before its logs. */
const LOG_OVERLAP_MS = 10_000;

/** Polls one chain for all followers: one batch per poll, however many they are. */
export class ChainPoller {
  readonly #chain: Chain;
  readonly #client: ChainClient;
  readonly #scheduler: Scheduler;
  readonly #now: () => number;
  readonly #onPoll: (outcome: "ok" | "failed") => void;
  readonly #overlapBlocks: number;
  readonly #probes = new Set<Probe>();
  #job: ScheduledJob | undefined = undefined;
  #delayMs = 0;
  /** Whether the chain did not answer when it was last asked. */
  #isSilent = false;

  constructor(options: {
    readonly chain: Chain;
    readonly client: ChainClient;
    readonly scheduler: Scheduler;
    /** Monotonic clock, in milliseconds. */
    readonly now: () => number;
    readonly onPoll: (outcome: "ok" | "failed") => void;
  }) {
    this.#chain = options.chain;
    this.#client = options.client;
    this.#scheduler = options.scheduler;
    this.#now = options.now;
    this.#onPoll = options.onPoll;
    this.#overlapBlocks = Math.ceil(LOG_OVERLAP_MS / options.chain.blockTimeMs);
  }

  add(probe: Probe): void {
    this.#probes.add(probe);
    this.#job ??= this.#scheduler.every(
      "chain poll",
      () => this.#delayMs,
      async (signal) => {
        this.#delayMs = await this.#poll(signal);
      },
      { firstDelayMs: Math.max(0, probe.dueAt - this.#now()) },
    );
  }

  remove(probe: Probe): void {
    this.#probes.delete(probe);
    // Whoever removes a probe may be about to add another one.
    if (this.#probes.size === 0) queueMicrotask(() => this.#stopIfUnused());
  }

  #stopIfUnused(): void {
    if (this.#probes.size > 0) return;
    this.#job?.stop();
    this.#job = undefined;
  }

  /** Asks what is due. @returns the time until the next poll, in milliseconds */
  async #poll(stopping: AbortSignal): Promise<number> {
    const intervalMs = getPollIntervalMs(this.#chain);
    const due = this.#selectDue();
    if (due.length === 0) {
      const dueAt = Math.min(...Array.from(this.#probes, (probe) => probe.dueAt));
      return Math.min(intervalMs, dueAt - this.#now());
    }
    const scope = createAbortScope(stopping, POLL_TIMEOUT_MS);
    try {
      await this.#ask(due, scope.signal);
      this.#onPoll("ok");
      return intervalMs;
    } catch {
      if (stopping.aborted) return intervalMs;
      // A chain that answers the single read but not the questions gets these no more often than one that answers.
      const delayMs = this.#isSilent ? RECOVERY_INTERVAL_MS : Math.max(RECOVERY_INTERVAL_MS, intervalMs);
      this.#isSilent = true;
      this.#onPoll("failed");
      return delayMs;
    } finally {
      scope.cancel();
    }
  }

  #selectDue(): readonly Probe[] {
    const time = this.#now();
    const due = [...this.#probes].filter(({ dueAt }) => dueAt <= time);
    if (due.length <= MAX_QUESTIONS_PER_POLL) return due;
    return due.sort((a, b) => a.dueAt - b.dueAt).slice(0, MAX_QUESTIONS_PER_POLL);
  }

  async #ask(due: readonly Probe[], signal: AbortSignal): Promise<void> {
    if (this.#isSilent) {
      await readLatestBlockHeader(this.#client, signal);
      this.#isSilent = false;
    }
    const logProbes = due.filter(({ question }) => question.kind === "log");
    const poll = {
      questions: due.map(({ question }) => question),
      multicallAddress: this.#chain.multicallAddress,
      getFirstLogBlock: (head: number) => this.#getFirstLogBlock(logProbes, head),
    };
    const answers = await askChain(this.#client, poll, signal);
    for (const probe of logProbes) probe.searchedTo = answers.searchedTo;
    const time = this.#now();
    for (const probe of due) {
      if (this.#probes.has(probe)) probe.dueAt = time + probe.onAnswer(answers.getAnswer(probe.question));
    }
  }

  #getFirstLogBlock(probes: readonly Probe[], head: number): number {
    const firstBlocks = probes.map(({ searchedTo, since }) => {
      if (searchedTo !== undefined) return searchedTo + 1 - this.#overlapBlocks;
      return head - this.#overlapBlocks - Math.ceil((this.#now() - since) / this.#chain.blockTimeMs);
    });
    return Math.min(...firstBlocks);
  }
}

/** Returns the time between two polls of a transfer on one of its chains. @param ageMs time since it was sent */
export function getTransferPollMs(chain: Pick<Chain, "blockTimeMs">, ageMs: number): number {
  const intervalMs = getPollIntervalMs(chain);
  const growthMs = Math.max(0, ageMs - FAST_POLL_AGE_MS) / AGE_MS_PER_MS;
  return Math.min(intervalMs + growthMs, Math.max(intervalMs, MAX_POLL_MS));
}

/** Returns the time until failed work is done again, in milliseconds. @param failures failures in a row, at least 1 */
export function getRetryDelayMs(failures: number, maxMs = MAX_POLL_MS): number {
  return Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), maxMs);
}
