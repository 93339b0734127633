import type { Dispatcher } from "undici";
import { ServiceError } from "../../errors.js";
import { createHealth, type HealthState } from "../../resilience/circuit-breaker.js";
import { steadyNow } from "../../resilience/clock.js";
import { createLimit, ExchangeError } from "../../resilience/fetch-json.js";
import { createTurns } from "../../resilience/semaphore.js";
import { type ChainClient, type RpcCall, resultOf } from "../chain-client.js";
import { createLogReader } from "./adaptive-block-range.js";
import { createEndpoint, type ExchangeObserver } from "./endpoint.js";
import { createHeads, furthest, type Head, readHead, type SeenHead } from "./head-tracker.js";
import { createReader, type Member } from "./hedged-requests.js";

export interface EndpointPoolOptions {
  readonly slug: string;
  /** What `eth_chainId` must answer. */
  readonly chainId: number;
  /** In order of preference. */
  readonly urls: readonly string[];
  readonly dispatcher: Dispatcher;
  /** Most bytes of an answer. */
  readonly maxBytes: number;
  readonly onExchange?: ExchangeObserver | undefined;
  /** Told of every attempt that failed, and of an endpoint that lost its place for being slow. */
  readonly onFailure: (failure: EndpointFailure) => void;
  /** Ends background work; after it no read is sent again and nothing is held against an endpoint. */
  readonly closing: AbortSignal;
  /** Longest time for one attempt at quick methods, in milliseconds. */
  readonly attemptMs?: number;
  /** Milliseconds on a steady clock. */
  readonly now?: () => number;
  /** From 0 up to 1. */
  readonly random?: () => number;
}

/** An attempt that gave no answer. Holds nothing secret. */
export interface EndpointFailure {
  readonly chain: string;
  readonly endpoint: string;
  readonly method: string;
  readonly problem: string;
}

/** A chain's endpoints as one client, which tells how they are. */
export interface EndpointPool extends ChainClient {
  state(): PoolState;
  /** Asks the endpoints for their heads in the background, each once in ten seconds at most. */
  look(): void;
  /** Notes the chain's latest block, where something that was read tells it. */
  noteHead(head: Head): void;
}

export interface PoolState {
  /** The furthest head that is known. */
  readonly head: SeenHead | undefined;
  /** In order of preference. */
  readonly endpoints: readonly EndpointState[];
  /** When something was read last, in milliseconds on the steady clock; undefined: never. */
  readonly usedAt: number | undefined;
}

export interface EndpointState {
  /** Its digits. */
  readonly endpoint: string;
  /** lagging: it answers, and is behind its peers. */
  readonly state: HealthState | "lagging";
  readonly head: SeenHead | undefined;
}

/** Longest time for one attempt, unless told otherwise. */
const quickMs = 1_500;
/** Searches of logs that go on at the same time, whoever began them. */
const maxSearches = 16;
/** How often an endpoint that rests is tried all the same, where no other is well. */
const tryMs = 2_000;

const latestBlock: RpcCall = { method: "eth_getBlockByNumber", params: ["latest", false] };

/**
 * A chain's endpoints as one client. Endpoints that fail often or lag behind their peers come last, so that there is
 * always one to ask; those that have asked to be left alone for a while, or serve another chain, hardly ever.
 */
export function createEndpointPool(options: EndpointPoolOptions): EndpointPool {
  const { slug, onFailure, closing, attemptMs = quickMs, now = steadyNow, random = Math.random } = options;
  const members = options.urls.map(
    (url): Member => ({ endpoint: createEndpoint({ ...options, url, now }), health: createHealth(now) }),
  );
  const heads = createHeads({ peers: members, readLatest, now });
  const read = createReader({
    slug,
    inOrder,
    isWell,
    onFailure: ({ endpoint }, method, problem) => onFailure({ chain: slug, endpoint: endpoint.name, method, problem }),
    closing,
    attemptMs,
    now,
    random,
  });

  let usedAt: number | undefined;
  let notedHead: SeenHead | undefined;
  const searches = createTurns(maxSearches);
  const readLogs = createLogReader({ members, isWell, read, now });

  async function readLatest({ endpoint, health }: Member): Promise<unknown> {
    if (health.isResting()) return undefined;
    const limit = createLimit(closing, attemptMs);
    try {
      const [outcome] = await endpoint.ask([latestBlock], limit.signal);
      const block = resultOf(outcome);
      health.noteLook(readHead(block) !== undefined);
      return block;
    } catch (error) {
      if (!closing.aborted) health.noteLook(false);
      // Only what the endpoint asks for counts: a look at its head says little of how it does its work.
      if (error instanceof ExchangeError && error.retryAfterMs !== undefined) health.rest(error.retryAfterMs);
      throw error;
    } finally {
      limit.end();
    }
  }

  function rank(member: Member): number {
    return (heads.lags(member) ? 2 : 0) + (member.health.isOpen() ? 1 : 0);
  }

  function isWell(member: Member): boolean {
    return rank(member) === 0;
  }

  /** The endpoints that may be asked, best first. */
  function inOrder(): readonly Member[] {
    return members.filter(({ health }) => !health.isResting()).sort((a, b) => rank(a) - rank(b));
  }

  /** Where none is well, tries those that rest: they may be well again before their time. Nobody waits for it. */
  function tryResting(): void {
    const isGood = (member: Member): boolean => !member.health.isResting() && isWell(member);
    if (members.some(isGood)) return;
    for (const member of members) {
      if (member.health.isResting() && member.health.restedMs() >= tryMs) void tryOne(member);
    }
  }

  /** Asks an endpoint for no more than its chain's id. */
  async function tryOne({ endpoint, health }: Member): Promise<void> {
    const attempt = health.begin();
    const limit = createLimit(closing, attemptMs);
    try {
      await endpoint.ask([], limit.signal);
      attempt.succeeded(undefined);
    } catch (error) {
      attempt.wasted();
      if (error instanceof ExchangeError && error.retryAfterMs !== undefined) health.rest(error.retryAfterMs);
    } finally {
      limit.end();
    }
  }

  /** What is done beside every read. */
  function lookAround(): void {
    usedAt = now();
    // Where there is no choice, how far an endpoint is changes nothing.
    if (members.length > 1) heads.refresh();
    tryResting();
  }

  function stateOf(member: Member): EndpointState {
    const state = member.health.state();
    const isLagging = state === "ok" && heads.lags(member);
    return { endpoint: member.endpoint.digits, state: isLagging ? "lagging" : state, head: heads.of(member) };
  }

  return {
    slug,
    state() {
      const endpoints = members.map(stateOf);
      return { head: furthest([notedHead, ...endpoints.map(({ head }) => head)]), endpoints, usedAt };
    },
    look: heads.refresh,
    noteHead(head) {
      notedHead = { ...head, seenAt: now() };
    },
    async send(method, params, signal, isAnswer) {
      lookAround();
      const [outcome] = await read([{ method, params, isAnswer }], signal);
      if (outcome === undefined) throw new Error("a read without an outcome");
      if ("revert" in outcome) throw outcome.revert;
      return outcome.result;
    },
    async batch(calls, signal) {
      if (calls.length === 0) return [];
      lookAround();
      return read(calls, signal);
    },
    async logs(filter, range, newestFirst, signal) {
      lookAround();
      try {
        return await searches.take(signal, () => readLogs(filter, range, newestFirst, signal));
      } catch (error) {
        if (error !== signal.reason) throw error;
        throw new ServiceError("UPSTREAM_UNAVAILABLE", `the logs of ${slug} could not be searched in time`);
      }
    },
  };
}
