import type { ServiceError } from "../../errors.js";
import { createAbortScope } from "../../resilience/abort-scope.js";
import { findRpcResult, type LogSearch, type LogsResult, type RpcCall, type RpcCallResult } from "../chain-client.js";
import type { Endpoint } from "../endpoints/endpoint.js";
import type { EndpointPool } from "../endpoints/endpoint-pool.js";
import { tooManyRequestsError } from "../endpoints/upstream-budget.js";
import { type ChainHead, parseHead } from "../heads/head-tracker.js";
import { LATEST_BLOCK_CALL } from "../json-rpc/rpc-codec.js";
import type { ReadKind } from "./canonical-answer.js";

/** Observes the votes of one chain. */
export interface QuorumObserver {
  /** Called when an endpoint was outvoted, and asked again. @param suspendedMs for how long it is suspended, or counts as outvoted */
  readonly onOutvoted: (endpoint: string, read: ReadKind, suspendedMs: number) => void;
  /** How the votes about one read ended: all agreed; enough agreed, others not; too few agreed or responded. */
  readonly onRead: (outcome: "agreed" | "disputed" | "undecided") => void;
  /** @param purpose head: to know which blocks an endpoint has. vote: all others */
  readonly onCalls: (purpose: "head" | "vote", count: number) => void;
}

/** What the voters of one chain have in common. */
export interface VoteContext {
  /** Number of voters that have to agree. */
  readonly needed: number;
  /** Whether reads are compared in the background only: then all are asked, and none is suspended. */
  readonly isSampled: boolean;
  readonly observer: QuorumObserver;
  readonly closing: AbortSignal;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  /** Resolves after a time in milliseconds, or when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** How long the head of an endpoint is not asked for again. */
export const FRESH_HEAD_MS = 1_000;
/** For how long an endpoint is asked after the others once it has kept them waiting. */
const SILENCE_MS = 10_000;
const SILENT_RANK = 10;
/** The first suspension. Each further one is twice as long. */
const MIN_SUSPENSION_MS = 30_000;
const MAX_SUSPENSION_MS = 30 * 60_000;
/** After this time without being outvoted, a suspension is as short as the first. */
const FORGET_MS = 60 * 60_000;
/** More than any rank of a pool: a suspended endpoint is asked only where too few others are left. */
const SUSPENDED_RANK = 100;
const CONFIRM_AFTER_MS = 1_000;
const CONFIRM_TIMEOUT_MS = 9_000;

/** An endpoint whose answers are compared with those of others. */
export class Voter {
  readonly #pool: EndpointPool;
  readonly #endpoint: Endpoint;
  readonly #context: VoteContext;
  /** How often it was outvoted without a long time of agreement between. */
  #strikes = 0;
  #suspendedUntil = Number.NEGATIVE_INFINITY;
  #isSuspected = false;
  #silentUntil = Number.NEGATIVE_INFINITY;

  constructor(pool: EndpointPool, endpoint: Endpoint, context: VoteContext) {
    this.#pool = pool;
    this.#endpoint = endpoint;
    this.#context = context;
  }

  /** Name of the endpoint; contains no secret. */
  get name(): string {
    return this.#endpoint.name;
  }

  /**
   * Gets the outcomes of calls.
   * @param headOptions if given, the head of the endpoint is read in the same batch, by a call with these options
   */
  async request(
    calls: readonly RpcCall[],
    signal: AbortSignal,
    headOptions?: Pick<RpcCall, "onRequest" | "isBackground">,
  ): Promise<{ readonly head?: ChainHead | undefined; readonly outcomes: readonly RpcCallResult[] }> {
    const { onCalls } = this.#context.observer;
    if (calls.length > 0) onCalls("vote", calls.length);
    if (headOptions === undefined)
      return { outcomes: calls.length > 0 ? await this.#pool.request(calls, signal, this.#endpoint) : [] };
    onCalls("head", 1);
    const { onRequest, isBackground = false } = headOptions;
    const validate = (result: unknown): boolean => parseHead(result) !== undefined;
    const headCall: RpcCall = { ...LATEST_BLOCK_CALL, validate, onRequest, isBackground };
    const [head, ...outcomes] = await this.#pool.request([headCall, ...calls], signal, this.#endpoint);
    return { head: parseHead(findRpcResult(head)), outcomes };
  }

  /** Returns the head of the endpoint if it was read within a time in milliseconds. */
  findHead(maxAgeMs: number): ChainHead | undefined {
    const { heads } = this.#pool;
    return heads.isRecent(this.name, maxAgeMs) ? heads.get(this.name) : undefined;
  }

  hasFreshHead(): boolean {
    return this.findHead(FRESH_HEAD_MS) !== undefined;
  }

  /** Has others asked first for a while: this one has given no answer when they had decided. */
  recordSilence(): void {
    this.#silentUntil = this.#context.now() + SILENCE_MS;
  }

  async searchLogs(search: LogSearch, signal: AbortSignal): Promise<LogsResult | undefined> {
    this.#context.observer.onCalls("vote", 1);
    return this.#pool.searchLogs(search, signal, this.#endpoint);
  }

  isUsable(): boolean {
    return this.#pool.listCandidates(this.#endpoint).length > 0;
  }

  /** Returns the error if only a limit of requests keeps it from being asked now. */
  refusal(): ServiceError | undefined {
    const isRefused = !this.#endpoint.breaker.isCoolingDown() && !this.#pool.hasCapacity(this.#endpoint);
    return isRefused ? tooManyRequestsError() : undefined;
  }

  /** Returns how it compares with the others: the lowest is asked first. */
  rank(): number {
    const isSuspended = !this.#context.isSampled && this.isOutvoted();
    const isSilent = this.#context.now() < this.#silentUntil;
    return this.#pool.rank(this.#endpoint) + (isSuspended ? SUSPENDED_RANK : 0) + (isSilent ? SILENT_RANK : 0);
  }

  /** Returns the 95th percentile of its last latencies, in milliseconds; undefined: none is known. */
  latencyMs(): number | undefined {
    return this.#endpoint.breaker.latencyP95Ms();
  }

  /** Returns whether it was outvoted a short time ago. */
  isOutvoted(): boolean {
    return this.#context.now() < this.#suspendedUntil;
  }

  /**
   * Asks it once more after a while, before it counts as outvoted. Several nodes may share one address, and one of them may
   * be a block behind: that is no lie, and is over by then.
   * @param confirm returns whether it still contradicts the others; a rejection proves nothing
   */
  async suspect(read: ReadKind, confirm: (signal: AbortSignal) => Promise<boolean>): Promise<void> {
    const { closing, sleep } = this.#context;
    if (this.#isSuspected || this.isOutvoted()) return;
    this.#isSuspected = true;
    await sleep(CONFIRM_AFTER_MS, closing);
    const scope = createAbortScope(closing, CONFIRM_TIMEOUT_MS);
    try {
      if (!closing.aborted && (await confirm(scope.signal))) this.#recordOutvoted(read);
    } catch {
    } finally {
      scope.cancel();
      this.#isSuspected = false;
    }
  }

  #recordOutvoted(read: ReadKind): void {
    const now = this.#context.now();
    // What was asked before the suspension began, or because too few others were left, does not count again.
    if (!this.isOutvoted()) {
      this.#strikes = now - this.#suspendedUntil > FORGET_MS ? 1 : this.#strikes + 1;
      this.#suspendedUntil = now + Math.min(MIN_SUSPENSION_MS * 2 ** (this.#strikes - 1), MAX_SUSPENSION_MS);
    }
    this.#context.observer.onOutvoted(this.name, read, this.#suspendedUntil - now);
  }
}
