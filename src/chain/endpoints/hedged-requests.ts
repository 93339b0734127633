import { ServiceError } from "../../errors.js";
import type { Attempt, Health } from "../../resilience/circuit-breaker.js";
import { pause } from "../../resilience/clock.js";
import { createLimit, ExchangeError } from "../../resilience/fetch-json.js";
import type { RpcCall, RpcOutcome } from "../chain-client.js";
import { CallRefused } from "../json-rpc/rpc-codec.js";
import type { Endpoint } from "./endpoint.js";

/** One endpoint of a pool, with what is known of it. */
export interface Member {
  readonly endpoint: Endpoint;
  readonly health: Health;
}

export interface ReaderOptions {
  /** Slug of the chain, for the error. */
  readonly slug: string;
  /** The endpoints that may be asked now, best first. */
  readonly inOrder: () => readonly Member[];
  /** Whether an endpoint is good enough to be asked beside another. */
  readonly isWell: (member: Member) => boolean;
  readonly onFailure: (member: Member, method: string, problem: string) => void;
  /** After it nothing is sent again and no failure counts. */
  readonly closing: AbortSignal;
  /** Longest time for one attempt at quick methods, in milliseconds. */
  readonly attemptMs: number;
  readonly now: () => number;
  /** From 0 up to 1. */
  readonly random: () => number;
}

/** What a search adds to a read: endpoints differ in how much they search at once. */
export interface SearchRules {
  /** Whether an endpoint may be asked. */
  readonly mayAsk: (member: Member) => boolean;
  /**
   * Told of every failure. Gives whether it only means that the search is too wide for the endpoint, which is no trouble.
   * @param isLate whether it did not answer in time
   */
  readonly isTooWide: (member: Member, error: ExchangeError, isLate: boolean) => boolean;
}

/**
 * Has one endpoint answer all calls.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when none does.
 */
export type Reader = (
  calls: readonly RpcCall[],
  signal: AbortSignal,
  rules?: SearchRules,
) => Promise<readonly RpcOutcome[]>;

/** An attempt that is under way. */
interface Running {
  readonly member: Member;
  readonly attempt: Attempt;
  readonly startedAt: number;
  readonly isHedge: boolean;
  /** What it comes to. Never rejects. */
  readonly end: Promise<End>;
}

type End = { readonly outcomes: readonly RpcOutcome[] } | { readonly error: unknown; readonly isLate: boolean };

/**
 * Methods that search, with the longest time for one attempt at them, in milliseconds. They are neither hedged nor sent
 * again to the same endpoint: that would only double the work.
 */
const searchMs: ReadonlyMap<string, number> = new Map([["eth_getLogs", 5_000]]);
/** Most attempts for one read, the hedge included. One is one HTTP request where the endpoint takes batches. */
const maxSends = 3;
/** Longest wait before the second attempt at one endpoint; before the third, twice as long. */
const jitterMs = 100;

/** Reads from the best endpoint; from the next one too when it is slow, and from others, or again, when it fails. */
export function createReader(options: ReaderOptions): Reader {
  const { slug, inOrder, isWell, onFailure, closing, attemptMs, now, random } = options;

  return async (calls, signal, rules) => {
    const method = [...new Set(calls.map((call) => call.method))].join(",");
    const longestMs = Math.max(0, ...calls.map((call) => searchMs.get(call.method) ?? 0));
    const isQuick = longestMs === 0;
    const ending = createLimit(signal);
    const running = new Set<Running>();
    const sends = new Map<Member, number>();
    /** Endpoints that would say the same again. */
    const done = new Set<Member>();
    const countOf = (member: Member): number => sends.get(member) ?? 0;
    let failure: ExchangeError | undefined;
    let left = maxSends;
    let mayHedge = isQuick;

    /** A search waits long and asks nobody else meanwhile: not for one that did not answer just now. */
    const doubtsOf = ({ health }: Member): number => (isQuick || !health.hasFailed() ? 0 : 1);

    async function ask({ endpoint }: Member): Promise<End> {
      const limit = createLimit(ending.signal, Math.max(attemptMs, longestMs));
      try {
        return { outcomes: await endpoint.ask(calls, limit.signal) };
      } catch (error) {
        return { error, isLate: limit.signal.aborted };
      } finally {
        limit.end();
      }
    }

    function start(member: Member, isHedge: boolean): void {
      left -= 1;
      sends.set(member, countOf(member) + 1);
      const attempt = member.health.begin();
      running.add({ member, attempt, startedAt: now(), isHedge, end: ask(member) });
    }

    /** Starts an attempt at an endpoint that was asked least; false when there is none. */
    async function startNext(): Promise<boolean> {
      const [next] = inOrder()
        .filter((member) => !done.has(member) && rules?.mayAsk(member) !== false)
        .sort((a, b) => countOf(a) - countOf(b) || doubtsOf(a) - doubtsOf(b));
      if (next === undefined || left === 0) return false;
      const before = countOf(next);
      if (before > 0) await pause(random() * jitterMs * 2 ** (before - 1), ending.signal);
      if (ending.signal.aborted) return false;
      start(next, false);
      return true;
    }

    /** Asks another endpoint beside the one that is slow. */
    function hedge(): void {
      mayHedge = false;
      const peer = inOrder().find((member) => isWell(member) && countOf(member) === 0);
      if (peer !== undefined && left > 0) start(peer, true);
    }

    /** The first attempt to end; undefined when it is time to ask another endpoint. */
    function firstOf(runs: readonly Running[]): Promise<{ run: Running; end: End } | undefined> {
      const ends = runs.map(async (run) => ({ run, end: await run.end }));
      const [slowest] = runs;
      if (!mayHedge || slowest === undefined) return Promise.race(ends);
      return Promise.race([...ends, pause(slowest.member.health.hedgeMs(), ending.signal).then(() => undefined)]);
    }

    function succeeded({ attempt, startedAt, isHedge }: Running): void {
      attempt.succeeded(isQuick ? now() - startedAt : undefined);
      if (!isHedge) return;
      // To be beaten by an endpoint that was asked later counts: one that hangs would never be found out otherwise.
      for (const beaten of running) {
        const opened = beaten.attempt.failed(now() - beaten.startedAt);
        if (opened) onFailure(beaten.member, method, "is slower than the next endpoint, again and again");
      }
    }

    function failed({ member, attempt }: Running, error: ExchangeError, isLate: boolean): void {
      const { status, retryAfterMs, message } = error;
      if (rules?.isTooWide(member, error, isLate)) {
        attempt.wasted();
        done.add(member);
        return;
      }
      if (retryAfterMs !== undefined) member.health.rest(retryAfterMs);
      // A refused call says nothing about others, nor does a search that the endpoint finds too long.
      const isItsFault = !(error instanceof CallRefused) && (isQuick || status === undefined);
      if (isItsFault) attempt.failed();
      else attempt.wasted();
      if (!isQuick || (status !== undefined && status >= 400 && status < 429)) done.add(member);
      onFailure(member, method, message);
    }

    try {
      while (running.size > 0 || (await startNext())) {
        const first = await firstOf([...running]);
        if (first === undefined) {
          hedge();
          continue;
        }
        const { run, end } = first;
        running.delete(run);
        if ("outcomes" in end) {
          succeeded(run);
          return end.outcomes;
        }
        if (!(end.error instanceof ExchangeError)) throw end.error;
        // The caller left or its time is up, or we close: that says nothing about the endpoint.
        if (signal.aborted || closing.aborted) {
          run.attempt.wasted();
          break;
        }
        // That a node is there and refuses is worth more to know than that others are gone.
        if (!(failure instanceof CallRefused)) failure = end.error;
        failed(run, end.error, end.isLate);
      }
    } finally {
      ending.end();
      for (const { attempt } of running) attempt.wasted();
    }
    throw new ServiceError("UPSTREAM_UNAVAILABLE", `no RPC endpoint of ${slug} gives an answer`, {
      cause: failure,
    });
  };
}
