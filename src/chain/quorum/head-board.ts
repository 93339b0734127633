import { ServiceError } from "../../errors.js";
import { createAbortScope, raceAbort } from "../../resilience/abort-scope.js";
import { getRpcResult } from "../chain-client.js";
import { type ChainHead, parseHead } from "../endpoints/head-tracker.js";
import { LATEST_BLOCK_CALL } from "../json-rpc/common-calls.js";
import { createVoteError } from "./collect-votes.js";
import type { Confirmations } from "./confirmations.js";
import { countAgreeingHeads, isImpossibleHead, selectAgreedHead } from "./rules/agreed-head.js";
import { listRefusals, listUsable, type Voter } from "./voter.js";

/** Finds the newest block that enough endpoints have. */
export interface HeadBoard {
  /**
   * Returns the number of the newest block that enough endpoints have, as of the last second.
   * @param isFresh whether it must be read now
   * @throws ServiceError UPSTREAM_UNAVAILABLE when there is none; OVERLOADED when that is due to limits of ours
   */
  agree(signal: AbortSignal, options: { readonly isBackground: boolean; readonly isFresh?: boolean }): Promise<number>;
  /** Returns the head that an endpoint reported last; undefined: none yet. */
  getHead(voter: Voter): ChainHead | undefined;
  /** Returns whether an endpoint has not reported its head for so long that others are to be asked first. */
  isSilent(voter: Voter): boolean;
}

export interface HeadBoardOptions {
  readonly slug: string;
  readonly voters: readonly Voter[];
  /** Number of endpoints that have to have the block. */
  readonly needed: number;
  readonly confirmations: Confirmations;
  readonly closing: AbortSignal;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  /** Resolves after a time in milliseconds, or when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

interface PendingRead {
  /** undefined: the response has no head. */
  readonly head: Promise<ChainHead | undefined>;
  readonly since: number;
}

/** What the endpoints of one round have said so far. */
interface HeadPoll {
  readonly reported: Map<Voter, ChainHead>;
  /** Errors of those who gave no answer. */
  readonly failures: unknown[];
}

interface AgreedHead extends ChainHead {
  readonly requestedAt: number;
}

/** How long reads use the same heads: what follows another read of the same answer, or comes at the same time. */
const HEADS_TTL_MS = 1_000;
const READ_TIMEOUT_MS = 9_000;
/** The slower endpoints are waited for as long again as the others took, within these bounds in milliseconds. */
const MIN_GRACE_MS = 50;
const MAX_GRACE_MS = 1_000;
const SILENCE_MS = 1_000;

export function createHeadBoard(options: HeadBoardOptions): HeadBoard {
  const { slug, voters, needed, confirmations, closing, now, sleep } = options;
  const heads = new Map<Voter, ChainHead>();
  /** Reads of heads that callers wait for, and those in the background, which come last within a budget. */
  const pendingReads: Readonly<Record<"caller" | "background", Map<Voter, PendingRead>>> = {
    caller: new Map(),
    background: new Map(),
  };
  /** By whether only reads in the background wait for it. */
  const rounds = new Map<boolean, Promise<AgreedHead>>();
  let agreed: AgreedHead | undefined;

  /** Reads the head of an endpoint, or joins the read that is in progress: one that hangs is not asked again and again. */
  function readHead(voter: Voter, isBackground: boolean): Promise<ChainHead | undefined> {
    const pending = pendingReads[isBackground ? "background" : "caller"];
    const joined = pendingReads.caller.get(voter) ?? pending.get(voter);
    if (joined !== undefined) return joined.head;
    const head = requestHead(voter, isBackground).finally(() => pending.delete(voter));
    pending.set(voter, { head, since: now() });
    return head;
  }

  async function requestHead(voter: Voter, isBackground: boolean): Promise<ChainHead | undefined> {
    const scope = createAbortScope(closing, READ_TIMEOUT_MS);
    try {
      const validate = (result: unknown): boolean => parseHead(result) !== undefined;
      const [outcome] = await voter.request([{ ...LATEST_BLOCK_CALL, validate, isBackground }], scope.signal);
      const head = parseHead(getRpcResult(outcome));
      if (head !== undefined) heads.set(voter, head);
      return head;
    } finally {
      scope.cancel();
    }
  }

  /** Reads heads until enough agree and the others have had their time. Returns the head on which they agree. */
  async function pollHeads(asked: readonly Voter[], isBackground: boolean, { reported, failures }: HeadPoll) {
    const startedAt = now();
    const scope = createAbortScope(closing);
    const running = new Map<Voter, Promise<Voter>>();
    for (const voter of asked) {
      const read = readHead(voter, isBackground)
        .then((head) => head && reported.set(voter, head))
        .catch((error: unknown) => failures.push(error))
        .then(() => voter);
      running.set(voter, read);
    }
    let selected = selectAgreedHead([...reported.values()], needed);
    try {
      for (let grace: Promise<undefined> | undefined; running.size > 0; ) {
        const settled = await Promise.race([...running.values(), ...(grace === undefined ? [] : [grace])]);
        if (settled === undefined) break;
        running.delete(settled);
        selected = selectAgreedHead([...reported.values()], needed);
        if (selected === undefined || grace !== undefined) continue;
        const graceMs = Math.min(Math.max(now() - startedAt, MIN_GRACE_MS), MAX_GRACE_MS);
        grace = sleep(graceMs, scope.signal).then(() => undefined);
      }
    } finally {
      scope.cancel();
    }
    return selected;
  }

  async function readHeads(isBackground: boolean): Promise<AgreedHead> {
    const requestedAt = now();
    const usable = listUsable(voters);
    const trusted = usable.filter((voter) => !voter.isOutvoted());
    const resting = usable.filter((voter) => voter.isOutvoted());
    const poll: HeadPoll = { reported: new Map(), failures: [...listRefusals(voters)] };
    const { reported, failures } = poll;
    let selected = trusted.length < needed ? undefined : await pollHeads(trusted, isBackground, poll);
    // An endpoint that was outvoted may still confirm what others say.
    selected ??= await pollHeads(trusted.length < needed ? usable : resting, isBackground, poll);
    if (selected === undefined) {
      const votes = [...reported.values()];
      const undecided = { votes, agreeing: countAgreeingHeads(votes), failures };
      throw createVoteError(slug, needed, undecided, "the latest block");
    }
    const result = { ...selected, requestedAt };
    if (agreed === undefined || requestedAt >= agreed.requestedAt) agreed = result;
    for (const [voter, head] of reported) if (isImpossibleHead(head, selected)) suspect(voter);
    return result;
  }

  function suspect(voter: Voter): void {
    confirmations.suspect(voter, "head", async (signal) => {
      const { requestedAt: _, ...latest } = await requestRound(true, signal);
      const head = heads.get(voter);
      return head !== undefined && isImpossibleHead(head, latest);
    });
  }

  function requestRound(isBackground: boolean, signal: AbortSignal): Promise<AgreedHead> {
    const round =
      rounds.get(false) ??
      rounds.get(isBackground) ??
      readHeads(isBackground).finally(() => rounds.delete(isBackground));
    if (!rounds.has(false) && !rounds.has(isBackground)) rounds.set(isBackground, round);
    // All that wait may have left before it fails.
    round.catch(() => {});
    return raceAbort(round, signal);
  }

  return {
    async agree(signal, { isBackground, isFresh = false }) {
      if (!isFresh && agreed !== undefined && now() - agreed.requestedAt < HEADS_TTL_MS) return agreed.number;
      try {
        return (await requestRound(isBackground, signal)).number;
      } catch (error) {
        if (error !== signal.reason) throw error;
        throw new ServiceError("UPSTREAM_UNAVAILABLE", `the RPC endpoints of ${slug} did not respond in time`);
      }
    },
    getHead: (voter) => heads.get(voter),
    isSilent: (voter) => now() - (pendingReads.caller.get(voter)?.since ?? Number.POSITIVE_INFINITY) > SILENCE_MS,
  };
}
