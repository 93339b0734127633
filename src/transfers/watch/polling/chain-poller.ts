import type { ChainClient } from "../../../chain/chain-client.js";
import { readLatestBlockHeader } from "../../../chain/read/chain-reads.js";
import type { Chain } from "../../../hop/networks.js";
import { createAbortScope } from "../../../resilience/abort-scope.js";
import { askChain } from "./ask-chain.js";
import { getPollIntervalMs, getRetryDelayMs, KNOCK_INTERVAL_MS } from "./pace.js";
import type { Answer, Question } from "./questions.js";

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

/** Polls one chain for all followers: one batch per poll, however many they are. */
export interface ChainPoller {
  add(probe: Probe): void;
  remove(probe: Probe): void;
  /** Polls as soon as possible. */
  wake(): void;
  countProbes(): number;
  close(): void;
}

export interface ChainPollerOptions {
  readonly chain: Chain;
  readonly client: ChainClient;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  readonly onPoll: (outcome: "ok" | "failed") => void;
}

/** Questions of one poll; the others wait for the next. This bounds what all watches together ask a chain. */
export const MAX_QUESTIONS_PER_POLL = 200;
const POLL_TIMEOUT_MS = 8_000;
/** Blocks of this time are searched again, since endpoints may serve a block before its logs. */
const LOG_OVERLAP_MS = 10_000;

export function createChainPoller({ chain, client, now, onPoll }: ChainPollerOptions): ChainPoller {
  const probes = new Set<Probe>();
  const closing = new AbortController();
  const overlapBlocks = Math.ceil(LOG_OVERLAP_MS / chain.blockTimeMs);
  let timer: NodeJS.Timeout | undefined;
  let isPolling = false;
  /** Failures in a row: of the chain to answer at all, and of the questions. */
  let silences = 0;
  let failures = 0;

  function schedule(delayMs: number): void {
    clearTimeout(timer);
    timer = undefined;
    if (probes.size > 0 && !isPolling && !closing.signal.aborted) timer = setTimeout(() => void poll(), delayMs);
  }

  function selectDue(): readonly Probe[] {
    const time = now();
    const due = [...probes].filter(({ dueAt }) => dueAt <= time);
    if (due.length <= MAX_QUESTIONS_PER_POLL) return due;
    return due.sort((a, b) => a.dueAt - b.dueAt).slice(0, MAX_QUESTIONS_PER_POLL);
  }

  function getFirstLogBlock(due: readonly Probe[], head: number): number {
    const firstBlocks = due.map(({ searchedTo, since }) => {
      if (searchedTo !== undefined) return searchedTo + 1 - overlapBlocks;
      return head - overlapBlocks - Math.ceil((now() - since) / chain.blockTimeMs);
    });
    return Math.min(...firstBlocks);
  }

  async function ask(due: readonly Probe[], signal: AbortSignal): Promise<void> {
    if (silences > 0) {
      await readLatestBlockHeader(client, signal);
      silences = 0;
    }
    const logProbes = due.filter(({ question }) => question.kind === "log");
    const answers = await askChain(
      client,
      chain,
      { questions: due.map(({ question }) => question), getFirstLogBlock: (head) => getFirstLogBlock(logProbes, head) },
      signal,
    );
    for (const probe of logProbes) probe.searchedTo = answers.searchedTo;
    const time = now();
    for (const probe of due) {
      if (probes.has(probe)) probe.dueAt = time + probe.onAnswer(answers.getAnswer(probe.question));
    }
  }

  async function poll(): Promise<void> {
    timer = undefined;
    const due = selectDue();
    if (due.length === 0) {
      schedule(getPollIntervalMs(chain));
      return;
    }
    isPolling = true;
    const wasSilent = silences > 0;
    const scope = createAbortScope(closing.signal, POLL_TIMEOUT_MS);
    try {
      await ask(due, scope.signal);
      failures = 0;
      onPoll("ok");
    } catch {
      if (closing.signal.aborted) return;
      // A chain that answered the single read but not the questions is asked them less and less often.
      if (!wasSilent || silences === 0) failures += 1;
      silences += 1;
      onPoll("failed");
    } finally {
      scope.cancel();
      isPolling = false;
    }
    schedule(silences > 0 ? Math.max(KNOCK_INTERVAL_MS, getRetryDelayMs(failures)) : getPollIntervalMs(chain));
  }

  return {
    add(probe) {
      const isFirst = probes.size === 0;
      probes.add(probe);
      if (isFirst) schedule(Math.max(0, probe.dueAt - now()));
    },
    remove(probe) {
      probes.delete(probe);
      if (probes.size === 0) schedule(0);
    },
    wake: () => schedule(0),
    countProbes: () => probes.size,
    close() {
      closing.abort();
      clearTimeout(timer);
    },
  };
}
