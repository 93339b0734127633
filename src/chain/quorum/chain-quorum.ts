import { createAbortScope } from "../../resilience/abort-scope.js";
import { monotonicNow, sleep as sleepReal } from "../../resilience/clock.js";
import {
  type ChainClient,
  createChainClient,
  findRpcResult,
  type LogSearch,
  type LogsResult,
  type RpcCall,
  type RpcCallResult,
} from "../chain-client.js";
import type { EndpointPool } from "../endpoints/endpoint-pool.js";
import type { ChainHead } from "../heads/head-tracker.js";
import { CallPoll } from "./call-poll.js";
import { countCloseHeads, isImpossibleHead, selectAgreedHead } from "./head-agreement.js";
import { LogPoll } from "./log-poll.js";
import { collectVotes, createVoteError, type Poll } from "./vote.js";
import { FRESH_HEAD_MS, type QuorumObserver, type VoteContext, Voter } from "./voter.js";

/** Comparisons of one chain at the same time; what comes meanwhile is not compared. */
const MAX_COMPARISONS = 4;
const COMPARE_TIMEOUT_MS = 10_000;
/** How old heads may be by which endpoints that are not in step are asked: more than two blocks of most L2s. */
const RECENT_HEAD_MS = 2_500;
/** How often the heads of endpoints are read that are not asked for anything else. */
const IDLE_HEAD_INTERVAL_MS = 30_000;

/**
 * The endpoints of one chain, of which several have to agree: each read is made by several endpoints, at the newest block
 * that enough of them have, and the answer on which enough agree counts. With a quorum of one, one endpoint answers, and a
 * share of the reads is made by all of them in the background.
 */
export class ChainQuorum {
  readonly client: ChainClient;
  /** For calls that nobody waits for. */
  readonly background: ChainClient;
  readonly #pool: EndpointPool;
  readonly #options;
  readonly #context: VoteContext;
  readonly #voters: readonly Voter[];
  #runningComparisons = 0;

  constructor(
    pool: EndpointPool,
    options: {
      /** Number of endpoints that have to agree. 1: reads are not compared, apart from samples. */
      readonly quorum: number;
      /** Share of the reads that are compared in the background; used with a quorum of 1 only. */
      readonly sampleRate: number;
      readonly observer: QuorumObserver;
      readonly closing: AbortSignal;
      readonly now?: VoteContext["now"];
      readonly sleep?: VoteContext["sleep"];
      /** Returns a random number from 0 up to 1. */
      readonly random?: () => number;
    },
  ) {
    const { quorum, observer, closing, now = monotonicNow, sleep = sleepReal } = options;
    const { endpoints } = pool;
    const isSampled = quorum === 1;
    // Only a majority can tell who of two contradicts the others.
    const needed = isSampled ? Math.floor(endpoints.length / 2) + 1 : quorum;
    const context = { needed, isSampled, observer, closing, now, sleep };
    this.#pool = pool;
    this.#options = options;
    this.#context = context;
    this.#voters = endpoints.map((endpoint) => new Voter(pool, endpoint, context));
    if (!isSampled) pool.setHeadInterval(IDLE_HEAD_INTERVAL_MS);
    this.client = this.#createClient(false);
    this.background = this.#createClient(true);
  }

  /** Returns whether an endpoint was outvoted a short time ago. */
  isOutvoted(endpoint: string): boolean {
    return this.#voters.some((voter) => voter.name === endpoint && voter.isOutvoted());
  }

  #createClient(isBackground: boolean): ChainClient {
    const { slug, heads } = this.#pool;
    const { isSampled } = this.#context;
    return createChainClient({
      slug,
      heads,
      request: (calls, signal) => (isSampled ? this.#requestSampled(calls, signal) : this.#request(calls, signal)),
      searchLogs: (search, signal) =>
        isSampled ? this.#searchSampled(search, signal) : this.#searchLogs(search, signal),
      isBackground,
    });
  }

  async #requestSampled(calls: readonly RpcCall[], signal: AbortSignal): Promise<readonly RpcCallResult[]> {
    const outcomes = await this.#pool.request(calls, signal);
    const sampled = calls.map((call) => ({ ...call, onRequest: undefined, isBackground: true }));
    this.#compare((compareSignal) => this.#request(sampled, compareSignal));
    return outcomes;
  }

  async #searchSampled(search: LogSearch, signal: AbortSignal): Promise<LogsResult | undefined> {
    const found = await this.#pool.limitSearch(signal, async () => this.#pool.searchLogs(search, signal));
    if (found !== undefined) {
      const sampled = { ...search, range: found.range, onRequest: undefined, isBackground: true };
      this.#compare((compareSignal) => this.#searchLogs(sampled, compareSignal));
    }
    return found;
  }

  /** Repeats a share of the reads at all endpoints. Nobody waits for that, or uses the result: it reports what it found. */
  #compare(read: (signal: AbortSignal) => Promise<unknown>): void {
    const { closing, sampleRate, random = Math.random } = this.#options;
    if (this.#voters.length < 2 || this.#runningComparisons >= MAX_COMPARISONS || closing.aborted) return;
    if (random() >= sampleRate) return;
    this.#runningComparisons += 1;
    const scope = createAbortScope(closing, COMPARE_TIMEOUT_MS);
    read(scope.signal)
      .catch(() => {})
      .finally(() => {
        this.#runningComparisons -= 1;
        scope.cancel();
      });
  }

  /**
   * Gets the outcomes of calls on which enough endpoints agree.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when too few agree or respond; OVERLOADED when that is due to a limit of calls
   * or requests
   */
  #request(calls: readonly RpcCall[], signal: AbortSignal): Promise<readonly RpcCallResult[]> {
    return this.#decide(new CallPoll(calls, this.#findAgreedHead(), this.#context), signal);
  }

  #searchLogs(search: LogSearch, signal: AbortSignal): Promise<LogsResult | undefined> {
    const decide = async (): Promise<LogsResult | undefined> => {
      const isOpen = search.range.to === Number.POSITIVE_INFINITY;
      const end = isOpen ? await this.#readAgreedNumber(search, signal) : search.range.to;
      return this.#decide(new LogPoll(search, end, this.#context), signal);
    };
    return this.#pool.limitSearch(signal, decide);
  }

  async #readAgreedNumber(
    { onRequest, isBackground = false }: Pick<RpcCall, "onRequest" | "isBackground">,
    signal: AbortSignal,
  ): Promise<number> {
    const call = { method: "eth_blockNumber", params: [], onRequest, isBackground };
    return Number(findRpcResult((await this.#request([call], signal))[0]));
  }

  /**
   * Returns the newest block that enough endpoints are known to have. undefined: they are asked for their latest block, because
   * their heads are not known, or were the same when they were asked last, but not just now.
   */
  #findAgreedHead(): ChainHead | undefined {
    const { needed, isSampled } = this.#context;
    if (isSampled) return undefined;
    const trusted = this.#voters.filter((voter) => voter.isUsable() && !voter.isOutvoted());
    const listHeads = (maxAgeMs: number) => trusted.flatMap((voter) => voter.findHead(maxAgeMs) ?? []);
    const heads = listHeads(RECENT_HEAD_MS);
    const agreed = selectAgreedHead(heads, needed);
    if (agreed === undefined || countCloseHeads(heads) < needed) return undefined;
    const areInStep = heads.every(({ number }) => number <= agreed.number);
    return areInStep && listHeads(FRESH_HEAD_MS).length < needed ? undefined : agreed;
  }

  /** Asks the voters, and reports those that contradict the others. */
  async #decide<A, R>(poll: Poll<A, R>, signal: AbortSignal): Promise<R> {
    const { needed, observer } = this.#context;
    const electorate = {
      voters: this.#voters.filter((voter) => voter.isUsable()).sort((a, b) => a.rank() - b.rank()),
      refusals: this.#voters.flatMap((voter) => voter.refusal() ?? []),
    };
    const collected = await collectVotes(poll, electorate, this.#context, signal);
    const { votes } = collected;
    const counts = poll.count(votes);
    const isDecided = poll.question === "" && counts.every(({ tally }) => tally.winner !== undefined);
    const isDisputed = counts.some(
      ({ ballots, tally }) => ballots.length > tally.agreeing || tally.outvoted.length > 0,
    );
    observer.onRead(isDecided ? (isDisputed ? "disputed" : "agreed") : "undecided");
    for (const voter of poll.listImpossibleHeads(votes)) this.#suspectHead(voter);
    if (!isDecided) throw createVoteError(this.#pool.slug, needed, collected, poll.question);
    for (const { voters, tally, read, confirm } of counts) {
      for (const voter of tally.outvoted.flatMap((outvoted) => voters[outvoted] ?? []))
        void voter.suspect(read, (confirmSignal) => confirm(voter, confirmSignal));
    }
    return poll.getResult(counts, votes);
  }

  #suspectHead(suspect: Voter): void {
    void suspect.suspect("head", async (signal) => {
      const others = this.#voters.filter((voter) => voter !== suspect && voter.isUsable());
      const read = async (voter: Voter): Promise<ChainHead | undefined> =>
        (await voter.request([], signal, { isBackground: true }).catch(() => undefined))?.head;
      const heads = await Promise.all([suspect, ...others].map(read));
      const agreed = selectAgreedHead(
        heads.flatMap((each) => each ?? []),
        this.#context.needed,
      );
      const [head] = heads;
      return head !== undefined && agreed !== undefined && isImpossibleHead(head, agreed);
    });
  }
}
