import { ServiceError } from "../../../errors.js";
import { isImmutableStatus, type TransferStatus } from "../../status.js";
import type { Probe } from "../polling/chain-poller.js";
import {
  DETAILS_INTERVAL_MS,
  FINALITY_INTERVAL_MS,
  getPollIntervalMs,
  MAX_SEARCH_RETRY_MS,
  REFRESH_INTERVAL_MS,
} from "../polling/pace.js";
import type { WatchTarget } from "../watch-target.js";
import {
  type FollowedTransfer,
  isDeliveryComplete,
  isFinalTransfer,
  isNewerStatus,
  type LookupReason,
  UNSEEN_TRANSACTION,
} from "./followed-transfer.js";
import type { FollowerDeps } from "./follower-deps.js";
import { type ProbePlan, planAppearanceProbes, planTransferProbes } from "./follower-probes.js";
import { LookupTurn } from "./lookup-turn.js";

/** What a follower tells those who watch its target. */
export interface FollowerObserver<M> {
  /** Called after each change of the follower's phase or transfers. */
  onChange(follower: Follower<M>): void;
  /** Called once when the target cannot be followed. */
  onFailure(error: unknown): void;
}

/** searching: the first lookup has not ended. unknown: nobody knows the target. known: it has transfers. */
export type FollowerPhase = "searching" | "unknown" | "known";

/**
 * Follows one target for all who watch it. Polls of the chains only raise suspicion: every state that callers get is the
 * result of a lookup, and a state goes back only when two polls have seen the transaction missing.
 *
 * A class, because there may be ten thousands: its methods are shared.
 */
export class Follower<M> {
  readonly observers = new Set<FollowerObserver<M>>();
  phase: FollowerPhase = "searching";
  /** In the order in which they were found, for a transaction that of its logs. */
  transfers: readonly FollowedTransfer<M>[] = [];
  private readonly probes = new Set<Probe>();
  private readonly searchTurn: LookupTurn;
  private nextSlot = 0;
  private isClosed = false;
  private nextFinalityAt = 0;
  private nextDetailsAt = 0;
  private releaseUnknown: (() => void) | undefined = undefined;

  constructor(
    readonly target: WatchTarget,
    /** Slug of the chain on which it probably was sent; empty: unknown. */
    readonly likelySource: string,
    /** The caller who pays for its lookups: the first. */
    private readonly caller: string,
    private readonly deps: FollowerDeps<M>,
  ) {
    this.searchTurn = new LookupTurn(deps.now, MAX_SEARCH_RETRY_MS);
  }

  /** Whether nothing about the target can change any more. */
  get isFinal(): boolean {
    return this.phase === "known" && this.transfers.every(isFinalTransfer);
  }

  /** Does what has become due and needs no poll. Called about once per second. */
  onTick(): void {
    if (this.phase === "searching") void this.search();
    const now = this.deps.now();
    const isFinalityDue = now >= this.nextFinalityAt;
    if (isFinalityDue) this.nextFinalityAt = now + FINALITY_INTERVAL_MS;
    const areDetailsDue = now >= this.nextDetailsAt;
    if (areDetailsDue) this.nextDetailsAt = now + DETAILS_INTERVAL_MS;
    for (const transfer of this.transfers) {
      const { status, lookedUpAt } = transfer;
      if (isFinalTransfer(transfer)) continue;
      if (this.target.isFull && areDetailsDue) void this.presentAgain(transfer);
      if (transfer.isSettled) continue;
      const isIncomplete = status.delivery !== undefined && !isDeliveryComplete(status);
      if (isIncomplete || now - lookedUpAt >= REFRESH_INTERVAL_MS[status.source]) void this.refresh(transfer, "verify");
      else if (isFinalityDue) void this.checkFinality(transfer);
    }
  }

  /** Looks the target up at once: the index has news of it. */
  onIndexChange(): void {
    this.searchTurn.hurry();
    if (this.phase !== "known") void this.search();
    for (const transfer of this.transfers) {
      transfer.turn.hurry();
      void this.refresh(transfer, "verify");
    }
  }

  close(): void {
    this.isClosed = true;
    this.setProbes([], 0);
    this.releasePlace();
  }

  /** Finds the target's transfers, or finds out that nobody knows it. */
  async search(): Promise<void> {
    await this.searchTurn.run(
      async () => {
        const startedAt = this.deps.now();
        const statuses = await this.deps.findAll(this.target, this.caller);
        const transfers = await Promise.all(statuses.map((status) => this.createTransfer(status, startedAt)));
        if (this.isClosed) return true;
        if (transfers.length > 0) this.becomeKnown(transfers);
        // A poll has found something that is not a transfer.
        else if (this.phase === "unknown") return false;
        else this.becomeUnknown(startedAt);
        return true;
      },
      (error) => {
        if (isPermanent(error) && !this.isClosed) this.fail(error);
      },
    );
  }

  private async createTransfer(status: TransferStatus, lookedUpAt: number): Promise<FollowedTransfer<M>> {
    const presented = await this.deps.present(status, this.target, this.caller);
    const isSettled = isImmutableStatus(status);
    const unseen = { send: UNSEEN_TRANSACTION, delivery: UNSEEN_TRANSACTION };
    const turn = new LookupTurn(this.deps.now);
    return { slot: this.nextSlot++, status, presented, isSettled, isSourceFinal: false, ...unseen, lookedUpAt, turn };
  }

  /** Looks one transfer up again. @param reason what polls have seen */
  async refresh(transfer: FollowedTransfer<M>, reason: LookupReason): Promise<void> {
    await transfer.turn.run(async () => {
      const startedAt = this.deps.now();
      const { transactionHash, id } = transfer.status.sent;
      const status = await this.deps.refresh(this.target.network, { transactionHash, transferId: id }, this.caller);
      if (this.isClosed || !this.transfers.includes(transfer)) return true;
      transfer.lookedUpAt = startedAt;
      if (status !== undefined) return this.update(transfer, status, reason);
      // Without a reorg an endpoint lags.
      if (reason !== "reorg") return false;
      this.transfers = this.transfers.filter((other) => other !== transfer);
      if (this.transfers.length === 0) this.becomeUnknown(startedAt);
      else this.publish();
      return true;
    });
  }

  /** Returns whether what polls have seen is confirmed: if not, the endpoint that was asked lags. */
  private async update(transfer: FollowedTransfer<M>, status: TransferStatus, reason: LookupReason): Promise<boolean> {
    if (!isNewerStatus(transfer.status, status, reason)) return false;
    const presented = await this.deps.present(status, this.target, this.caller);
    if (this.isClosed) return true;
    const hasChanged = transfer.presented.fingerprint !== presented.fingerprint;
    const isSettled = isImmutableStatus(status);
    Object.assign(transfer, { status, presented, isSettled, send: UNSEEN_TRANSACTION, delivery: UNSEEN_TRANSACTION });
    this.followTransfers();
    if (hasChanged || isSettled) this.publish();
    return hasChanged || isSettled || reason === "verify" || reason === "reorg";
  }

  /** Makes the message of a transfer again, whose status has not changed. */
  private async presentAgain(transfer: FollowedTransfer<M>): Promise<void> {
    await transfer.turn.run(async () => {
      const presented = await this.deps.present(transfer.status, this.target, this.caller);
      if (this.isClosed) return true;
      transfer.presented = presented;
      this.publish();
      return true;
    });
  }

  /** Ends the pursuit of a transfer when both of its blocks are final. */
  async checkFinality(transfer: FollowedTransfer<M>): Promise<void> {
    const { status } = transfer;
    const { sent, delivery, source } = status;
    if (source === "explorer" || delivery?.blockNumber === undefined || !isDeliveryComplete(status)) return;
    const { network } = this.target;
    const [isSendFinal, isDeliveryFinal] = await Promise.all([
      this.deps.isFinal(network, sent.source, { number: sent.blockNumber, timestamp: sent.timestamp }),
      this.deps.isFinal(network, sent.destination, { number: delivery.blockNumber }),
    ]);
    if (this.isClosed || transfer.status !== status) return;
    transfer.isSourceFinal = isSendFinal;
    if (!isSendFinal || !isDeliveryFinal) return;
    // What was read before the blocks were final is read once more, unless the index has followed every block.
    if (source === "index") {
      transfer.isSettled = true;
      this.publish();
    } else void this.refresh(transfer, "finality");
  }

  private becomeKnown(transfers: readonly FollowedTransfer<M>[]): void {
    this.phase = "known";
    this.transfers = transfers;
    this.releasePlace();
    this.followTransfers();
    this.publish();
  }

  private becomeUnknown(since: number): void {
    this.releaseUnknown = this.deps.acquireUnknown(this.caller);
    if (this.releaseUnknown === undefined) {
      const message = "too many transfers that nobody knows are watched here";
      this.fail(new ServiceError("OVERLOADED", message, { retryAfterSeconds: 5 }));
      return;
    }
    this.phase = "unknown";
    this.setProbes(planAppearanceProbes(this, this.deps), since);
    this.publish();
  }

  private releasePlace(): void {
    this.releaseUnknown?.();
    this.releaseUnknown = undefined;
  }

  private fail(error: unknown): void {
    for (const observer of [...this.observers]) observer.onFailure(error);
  }

  private publish(): void {
    for (const observer of [...this.observers]) observer.onChange(this);
  }

  private followTransfers(): void {
    const plans = this.transfers.flatMap((transfer) => planTransferProbes(this, transfer, this.deps));
    this.setProbes(plans, Math.min(...this.transfers.map(({ lookedUpAt }) => lookedUpAt)));
  }

  /** Replaces what the chains are asked. @param since when the last lookup began */
  private setProbes(plans: readonly ProbePlan[], since: number): void {
    const { network } = this.target;
    for (const probe of this.probes) this.deps.removeProbe(network, probe);
    this.probes.clear();
    for (const plan of plans) {
      const dueAt = this.deps.now() + getPollIntervalMs(plan.chain);
      const probe: Probe = { ...plan, dueAt, since, searchedTo: undefined };
      this.probes.add(probe);
      this.deps.addProbe(network, probe);
    }
  }
}

function isPermanent(error: unknown): boolean {
  return error instanceof ServiceError && error.reason === "INVALID_PARAMETER";
}
