import { monotonicNow, sleep as sleepReal } from "../../resilience/clock.js";
import type { ChainClient } from "../chain-client.js";
import { limitConcurrentSearches } from "../endpoints/adaptive-block-range.js";
import type { EndpointPool } from "../endpoints/endpoint-pool.js";
import { LATEST_BLOCK_CALL } from "../json-rpc/common-calls.js";
import { createRequesterClient } from "../requester-client.js";
import { createConfirmations } from "./confirmations.js";
import { createHeadBoard } from "./head-board.js";
import type { QuorumDeps, ReadOutcome } from "./quorum-deps.js";
import { createQuorumLogReader } from "./quorum-log-reader.js";
import { createQuorumReader } from "./quorum-reader.js";
import type { ReadKind } from "./rules/canonical-answer.js";
import { createSampledClient } from "./sampled-client.js";
import { createVoter, type Voter } from "./voter.js";

/** The endpoints of one chain, of which several have to agree. */
export interface ChainQuorum {
  readonly client: ChainClient & { asBackground(): ChainClient };
  /** Returns whether an endpoint was outvoted a short time ago. */
  isOutvoted(endpoint: string): boolean;
}

/** Observes the votes of one chain. */
export interface QuorumObserver {
  /** Called when an endpoint was outvoted, and asked again. @param restMs how long it rests, or counts as outvoted */
  readonly onOutvoted: (endpoint: string, read: ReadKind, restMs: number) => void;
  readonly onRead: (outcome: ReadOutcome) => void;
  /** @param purpose head: to find a common block. vote: all others */
  readonly onCalls: (purpose: "head" | "vote", count: number) => void;
}

export interface ChainQuorumOptions {
  /** Number of endpoints that have to agree. 1: reads are not compared, apart from samples. */
  readonly quorum: number;
  /** Share of the reads that are compared in the background; used with a quorum of 1 only. */
  readonly sampleRate: number;
  readonly observer: QuorumObserver;
  readonly closing: AbortSignal;
  /** Monotonic clock, in milliseconds. */
  readonly now?: () => number;
  /** Resolves after a time in milliseconds, or when the signal aborts. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Returns a random number from 0 up to 1. */
  readonly random?: () => number;
}

/** Creates the client of a chain whose reads are compared between its endpoints. */
export function createChainQuorum(pool: EndpointPool, options: ChainQuorumOptions): ChainQuorum {
  const {
    quorum,
    sampleRate,
    observer,
    closing,
    now = monotonicNow,
    sleep = sleepReal,
    random = Math.random,
  } = options;
  const { slug } = pool;
  const isSampled = quorum === 1;
  const voters = pool.listMembers().map((member) =>
    createVoter(member, {
      isRestedWhenOutvoted: !isSampled,
      onOutvoted: observer.onOutvoted,
      onRequest: (calls) =>
        observer.onCalls(calls[0]?.params === LATEST_BLOCK_CALL.params ? "head" : "vote", calls.length),
      now,
    }),
  );
  // Only a majority can tell who of two contradicts the others.
  const needed = isSampled ? Math.floor(voters.length / 2) + 1 : quorum;
  const confirmations = createConfirmations({ closing, sleep });
  const board = createHeadBoard({ slug, voters, needed, confirmations, closing, now, sleep });
  const deps: QuorumDeps = { slug, voters, needed, asksAll: isSampled, board, confirmations, observer, sleep };
  const request = createQuorumReader(deps);
  const readLogs = limitConcurrentSearches(slug, createQuorumLogReader(deps));

  function createClient(): ChainQuorum["client"] {
    if (isSampled) {
      if (voters.length < 2) return pool;
      return createSampledClient({
        ...{ pool, compareRequest: request, compareLogs: readLogs, sampleRate, closing, random },
      });
    }
    const client: ChainQuorum["client"] = {
      ...createRequesterClient({ slug, request, readLogs }),
      asBackground: () => ({
        ...createRequesterClient({ slug, request, readLogs, isBackground: true }),
        cacheKey: client,
      }),
    };
    return client;
  }

  return {
    client: createClient(),
    isOutvoted: (endpoint) => voters.some((voter: Voter) => voter.name === endpoint && voter.isOutvoted()),
  };
}
