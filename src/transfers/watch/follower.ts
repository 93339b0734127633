import { ServiceError } from "../../errors.js";
import type { ContractRegistry } from "../../hop/contract-registry.js";
import { getPollIntervalMs, type Network } from "../../hop/networks.js";
import { Waiters } from "../../resilience/waiters.js";
import type { TransferStatus } from "../status.js";
import { getTransferPollMs, type Probe } from "./chain-poller.js";
import { type Answer, createAppearanceQuestion, createDeliveryQuestion, type Question } from "./chain-questions.js";
import { FollowedTransfer, type LookupReason, LookupTurn, shouldReplaceStatus } from "./followed-transfer.js";
import type { WatchTarget } from "./watch-lifecycle.js";
import type { WatchLookups } from "./watch-lookups.js";

/** What a follower tells those who watch its target. */
export interface FollowerObserver<M> {
  /** Called after each change of the follower's phase or transfers. */
  onChange(follower: Follower<M>): void;
  /** Called once when the target cannot be followed. */
  onFailure(error: unknown): void;
}

/** What all followers share. */
export interface FollowerContext<M> {
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  /** Milliseconds since 1970. */
  readonly wallNow: () => number;
  readonly lookups: Pick<WatchLookups<M>, "findAll" | "refresh" | "present" | "isFinal">;
  /** Takes a place for an unknown target from one of those who watch it, and returns the function that releases it; undefined: there is none. */
  acquireUnknown(waiters: Waiters): (() => void) | undefined;
  getContracts(network: Network): ContractRegistry;
  addProbe(network: Network, probe: Probe): void;
  removeProbe(network: Network, probe: Probe): void;
}

/** searching: the first lookup has not ended. unknown: nobody knows the target. known: it has transfers. */
export type FollowerPhase = "searching" | "unknown" | "known";

type ProbePlan = Pick<Probe, "chain" | "question" | "onAnswer">;

/**
 * A transfer that nothing was seen of is looked up again after this time, in milliseconds: in case polls of the chains are
 * wrong; because the index, which tells of changes, may have stopped; because the explorer is only believed until the chains
 * answer.
 */
const REFRESH_INTERVAL_MS = { chain: 10 * 60_000, index: 30_000, explorer: 5_000 } as const;
/** Longest time between two attempts to find a target while its chains do not answer. */
const MAX_SEARCH_RETRY_MS = 4_000;
/** How often it is asked whether the blocks of a transfer are final, where no poll does so. */
const FINALITY_INTERVAL_MS = 5_000;
/** How often details are read that change without the status: a root arrives, a block becomes final. */
const DETAILS_INTERVAL_MS = 10_000;
/** A chain on which an unknown transfer was hardly sent is asked so many times less often. */
const UNLIKELY_SOURCE_FACTOR = 5;

/**
 * Follows one target for all who watch it. Polls of the chains only raise suspicion: every state that callers get is the
 * result of a lookup, and a state goes back only when two polls have seen the transaction missing.
 *
 * A class, because there may be ten thousands: its methods are shared.
 */
export class Follower<M> {
  readonly target: WatchTarget;
  phase: FollowerPhase = "searching";
  /** In the order in which they were found, for a transaction that of its logs. */
  transfers: readonly FollowedTransfer<M>[] = [];
  readonly #observers = new Set<FollowerObserver<M>>();
  readonly #likelySource: string;
  readonly #context: FollowerContext<M>;
  readonly #probes = new Set<Probe>();
  readonly #searchTurn: LookupTurn;
  readonly #waiters = new Waiters();
  #nextSlot = 0;
  #nextFinalityAt = 0;
  #nextDetailsAt = 0;
  #releaseUnknown: (() => void) | undefined = undefined;

  /** @param likelySource slug of the chain on which the transfer probably was sent; empty: unknown */
  constructor(target: WatchTarget, likelySource: string, context: FollowerContext<M>) {
    this.target = target;
    this.#likelySource = likelySource;
    this.#context = context;
    this.#searchTurn = new LookupTurn(context.now, MAX_SEARCH_RETRY_MS);
  }

  /** Whether nothing about the target can change any more. */
  get isFinal(): boolean {
    return this.phase === "known" && this.transfers.every((transfer) => transfer.isFinal);
  }

  join(observer: FollowerObserver<M>, caller: string): void {
    this.#observers.add(observer);
    this.#waiters.add(caller);
  }

  /** Returns whether the target is watched by others still. */
  leave(observer: FollowerObserver<M>, caller: string): boolean {
    this.#observers.delete(observer);
    this.#waiters.remove(caller);
    return this.#observers.size > 0;
  }

  /** Does what has become due and needs no poll. Called about once per second. */
  visit(now: number): void {
    if (this.phase === "searching") void this.search();
    const isFinalityDue = now >= this.#nextFinalityAt;
    if (isFinalityDue) this.#nextFinalityAt = now + FINALITY_INTERVAL_MS;
    const areDetailsDue = now >= this.#nextDetailsAt;
    if (areDetailsDue) this.#nextDetailsAt = now + DETAILS_INTERVAL_MS;
    for (const transfer of this.transfers) {
      const { status, lookedUpAt } = transfer;
      if (transfer.isFinal) continue;
      if (this.target.isFull && areDetailsDue) void this.#presentAgain(transfer);
      if (transfer.isSettled) continue;
      const isIncomplete = status.delivery !== undefined && !transfer.isDeliveryComplete;
      const isRefreshDue = now - lookedUpAt >= REFRESH_INTERVAL_MS[status.source];
      if (isIncomplete || isRefreshDue) void this.#refresh(transfer, "verify");
      else if (isFinalityDue) void this.#checkFinality(transfer);
    }
  }

  /** Looks the target up at once: the index has news of it. */
  onIndexChange(): void {
    this.#searchTurn.runForNews(() => {
      if (this.phase !== "known") void this.search();
      for (const transfer of this.transfers) transfer.turn.runForNews(() => void this.#refresh(transfer, "verify"));
    });
  }

  /** Ends all work: nobody watches the target any more. */
  close(): void {
    this.#waiters.close();
    this.#setProbes([], 0);
    this.#releasePlace();
  }

  /** Finds the target's transfers, or finds out that nobody knows it. */
  async search(): Promise<void> {
    await this.#searchTurn.run(
      async () => {
        const startedAt = this.#context.now();
        const statuses = await this.#context.lookups.findAll(this.target, this.#waiters);
        const transfers = await Promise.all(statuses.map((status) => this.#createTransfer(status, startedAt)));
        if (this.#isClosed) return true;
        if (transfers.length > 0) this.#becomeKnown(transfers);
        // A poll has found something that is not a transfer.
        else if (this.phase === "unknown") return false;
        else this.#becomeUnknown(startedAt);
        return true;
      },
      (error) => {
        if (isPermanent(error) && !this.#isClosed) this.#fail(error);
      },
    );
  }

  async #createTransfer(status: TransferStatus, startedAt: number): Promise<FollowedTransfer<M>> {
    const presented = await this.#context.lookups.present(status, this.target, this.#waiters);
    const turn = new LookupTurn(this.#context.now);
    return new FollowedTransfer({ slot: this.#nextSlot++, turn, status, presented, lookedUpAt: startedAt });
  }

  /** Looks one transfer up again. @param reason what polls have seen */
  async #refresh(transfer: FollowedTransfer<M>, reason: LookupReason): Promise<void> {
    await transfer.turn.run(async () => {
      const startedAt = this.#context.now();
      const { transactionHash, id } = transfer.status.sent;
      const query = { transactionHash, transferId: id };
      const status = await this.#context.lookups.refresh(this.target.network, query, this.#waiters);
      if (this.#isClosed || !this.transfers.includes(transfer)) return true;
      transfer.lookedUpAt = startedAt;
      if (status !== undefined) return this.#update(transfer, status, reason);
      // Without a reorg an endpoint lags.
      if (reason !== "reorg") return false;
      this.transfers = this.transfers.filter((other) => other !== transfer);
      if (this.transfers.length === 0) this.#becomeUnknown(startedAt);
      else this.#publish();
      return true;
    });
  }

  /** Returns whether what polls have seen is confirmed: if not, the endpoint that was asked lags. */
  async #update(transfer: FollowedTransfer<M>, status: TransferStatus, reason: LookupReason): Promise<boolean> {
    if (!shouldReplaceStatus(transfer.status, status, reason)) return false;
    const presented = await this.#context.lookups.present(status, this.target, this.#waiters);
    if (this.#isClosed) return true;
    const hasChanged = transfer.presented.fingerprint !== presented.fingerprint;
    transfer.replace(status, presented);
    this.#probeTransfers();
    if (hasChanged || transfer.isSettled) this.#publish();
    return hasChanged || transfer.isSettled || reason === "verify" || reason === "reorg";
  }

  /** Makes the message of a transfer again, whose status has not changed. */
  async #presentAgain(transfer: FollowedTransfer<M>): Promise<void> {
    await transfer.turn.run(async () => {
      const presented = await this.#context.lookups.present(transfer.status, this.target, this.#waiters);
      if (this.#isClosed) return true;
      transfer.presented = presented;
      this.#publish();
      return true;
    });
  }

  /** Ends the pursuit of a transfer when both of its blocks are final. */
  async #checkFinality(transfer: FollowedTransfer<M>): Promise<void> {
    const { status } = transfer;
    const { sent, delivery, source } = status;
    if (source === "explorer" || delivery?.blockNumber === undefined || !transfer.isDeliveryComplete) return;
    const { network } = this.target;
    const { lookups } = this.#context;
    const [isSendFinal, isDeliveryFinal] = await Promise.all([
      lookups.isFinal(network, sent.source, { number: sent.blockNumber, timestamp: sent.timestamp }),
      lookups.isFinal(network, sent.destination, { number: delivery.blockNumber }),
    ]);
    if (this.#isClosed || transfer.status !== status) return;
    transfer.isSourceFinal = isSendFinal;
    if (!isSendFinal || !isDeliveryFinal) return;
    // What was read before the blocks were final is read once more, unless the index has followed every block.
    if (source === "index") {
      transfer.isSettled = true;
      this.#publish();
    } else void this.#refresh(transfer, "finality");
  }

  #becomeKnown(transfers: readonly FollowedTransfer<M>[]): void {
    this.phase = "known";
    this.transfers = transfers;
    this.#releasePlace();
    this.#probeTransfers();
    this.#publish();
  }

  #becomeUnknown(since: number): void {
    this.#releaseUnknown = this.#context.acquireUnknown(this.#waiters);
    if (this.#releaseUnknown === undefined) {
      const message = "too many transfers that nobody knows are watched here";
      this.#fail(new ServiceError("OVERLOADED", message, { retryAfterSeconds: 5 }));
      return;
    }
    this.phase = "unknown";
    this.#setProbes(this.#planAppearanceProbes(), since);
    this.#publish();
  }

  #releasePlace(): void {
    this.#releaseUnknown?.();
    this.#releaseUnknown = undefined;
  }

  #fail(error: unknown): void {
    for (const observer of [...this.#observers]) observer.onFailure(error);
  }

  #publish(): void {
    for (const observer of [...this.#observers]) observer.onChange(this);
  }

  #probeTransfers(): void {
    const plans = this.transfers.flatMap((transfer) => this.#planTransferProbes(transfer));
    this.#setProbes(plans, Math.min(...this.transfers.map(({ lookedUpAt }) => lookedUpAt)));
  }

  /** Asks every chain for a target that nobody knows. */
  #planAppearanceProbes(): readonly ProbePlan[] {
    const { network } = this.target;
    const contracts = this.#context.getContracts(network);
    return [...network.chains.values()].flatMap((chain) => {
      const question = createAppearanceQuestion(this.target, chain, contracts);
      if (question === undefined) return [];
      const isUnlikely = this.#likelySource !== "" && this.#likelySource !== chain.slug;
      const pollMs = getPollIntervalMs(chain) * (isUnlikely ? UNLIKELY_SOURCE_FACTOR : 1);
      const onAnswer = ({ receipt, isFound }: Answer): number => {
        if (receipt !== undefined || isFound) void this.search();
        return pollMs;
      };
      return [{ chain, question, onAnswer }];
    });
  }

  /** Asks the source whether it still has a transfer, and the destination whether it has delivered it. */
  #planTransferProbes(transfer: FollowedTransfer<M>): readonly ProbePlan[] {
    const { sent, delivery, source } = transfer.status;
    // The index tells of changes by itself; what the explorer says is looked up again instead.
    if (transfer.isSettled || source !== "chain") return [];
    const getNextMs = (chain: Probe["chain"]): number =>
      getTransferPollMs(chain, this.#context.wallNow() - sent.timestamp * 1_000);
    const deliveryHash = delivery?.transactionHash;
    const sendPlan: ProbePlan = {
      chain: sent.source,
      question: { kind: "receipt", hash: sent.transactionHash },
      onAnswer: (answer) => {
        if (transfer.isSourceFinal) return Number.POSITIVE_INFINITY;
        if (transfer.send.record(answer, sent.blockNumber)) void this.#refresh(transfer, "reorg");
        return getNextMs(sent.source);
      },
    };
    const question: Question | undefined =
      deliveryHash === undefined
        ? createDeliveryQuestion(sent, this.#context.getContracts(this.target.network))
        : { kind: "receipt", hash: deliveryHash };
    if (question === undefined) return [sendPlan];
    const deliveryPlan: ProbePlan = {
      chain: sent.destination,
      question,
      onAnswer: (answer) => {
        if (deliveryHash === undefined) {
          if (answer.isFound) void this.#refresh(transfer, "delivery");
        } else if (transfer.delivery.record(answer, delivery?.blockNumber ?? 0)) void this.#refresh(transfer, "reorg");
        else void this.#checkFinality(transfer);
        return getNextMs(sent.destination);
      },
    };
    return [sendPlan, deliveryPlan];
  }

  /** Replaces what the chains are asked. @param since when the last lookup began */
  #setProbes(plans: readonly ProbePlan[], since: number): void {
    const { network } = this.target;
    for (const probe of this.#probes) this.#context.removeProbe(network, probe);
    this.#probes.clear();
    for (const plan of plans) {
      const dueAt = this.#context.now() + getPollIntervalMs(plan.chain);
      const probe: Probe = { ...plan, dueAt, since, searchedTo: undefined };
      this.#probes.add(probe);
      this.#context.addProbe(network, probe);
    }
  }

  get #isClosed(): boolean {
    return this.#waiters.signal.aborted;
  }
}

function isPermanent(error: unknown): boolean {
  return error instanceof ServiceError && error.reason === "INVALID_PARAMETER";
}
