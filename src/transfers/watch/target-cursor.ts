import type { FollowedTransfer } from "./following/followed-transfer.js";
import type { Follower, FollowerObserver } from "./following/follower.js";
import { compactFingerprints, getStage, type TargetProgress } from "./resume-token.js";
import type { WatchTarget } from "./watch-target.js";

/** What a watch has to tell about a target next. */
export type TargetEvent<M> =
  | { readonly kind: "transfer"; readonly transfer: FollowedTransfer<M> }
  | { readonly kind: "unknown"; readonly isFinal: boolean };

/** How long a target is watched that nobody knows, in seconds: wallets subscribe before nodes have the transaction. */
export const MAX_UNKNOWN_SECONDS = 600;

/**
 * How long a watch that was resumed, in seconds, holds back that a transfer is unknown, or at an earlier stage than it was
 * told: this replica may know less than the one before. After that it counts as a reorg.
 */
export const MAX_CATCH_UP_SECONDS = 30;

const NOTHING: readonly number[] = Object.freeze([]);

/**
 * What one watch has told of one target. It keeps hashes of what was sent, not messages: a slow reader costs no more than a
 * fast one, and gets the newest state when it reads again. A class, because there may be a hundred thousand.
 */
export class TargetCursor<M> implements FollowerObserver<M> {
  /** undefined: not followed (any more). */
  follower: Follower<M> | undefined = undefined;
  /** Fingerprints of the states that were sent last, by slot of their transfers. */
  private sent: (number | undefined)[] = [];
  /** Fingerprints of what an earlier watch had sent, until the transfers are known. */
  private resumed: readonly number[];
  private unknownSince: number;
  private isGivenUp: boolean;

  constructor(
    readonly target: WatchTarget,
    resumed: TargetProgress | undefined,
    private readonly watch: { onNews(): void; fail(error: unknown): void },
    /** When the watch began, in Unix seconds. */
    private readonly openedAt: number,
  ) {
    this.resumed = resumed?.sent ?? NOTHING;
    this.unknownSince = resumed?.unknownSince ?? 0;
    this.isGivenUp = resumed?.isGivenUp ?? false;
  }

  get isWanted(): boolean {
    return !this.isGivenUp;
  }

  onChange(): void {
    this.watch.onNews();
  }

  onFailure(error: unknown): void {
    this.watch.fail(error);
  }

  /** Returns the next event that the caller has not received; undefined: it knows everything. */
  peek(nowSeconds: number): TargetEvent<M> | undefined {
    const { follower } = this;
    if (follower === undefined || this.isGivenUp || follower.phase === "searching") return undefined;
    if (this.isBehind(follower, nowSeconds)) return undefined;
    if (follower.phase === "unknown") {
      if (this.unknownSince === 0) return { kind: "unknown", isFinal: false };
      const isExpired = nowSeconds - this.unknownSince >= MAX_UNKNOWN_SECONDS;
      return isExpired ? { kind: "unknown", isFinal: true } : undefined;
    }
    this.skipResumed(follower.transfers);
    const transfer = follower.transfers.find(({ slot, presented }) => this.sent[slot] !== presented.fingerprint);
    return transfer && { kind: "transfer", transfer };
  }

  /** Records that an event is being sent. */
  record(event: TargetEvent<M>, nowSeconds: number): void {
    if (event.kind === "transfer") {
      this.unknownSince = 0;
      this.sent[event.transfer.slot] = event.transfer.presented.fingerprint;
      return;
    }
    this.sent = [];
    if (event.isFinal) this.isGivenUp = true;
    else this.unknownSince = nowSeconds;
  }

  /** Returns whether the caller knows everything and nothing can change. */
  isComplete(nowSeconds: number): boolean {
    return this.isGivenUp || (this.follower?.isFinal === true && this.peek(nowSeconds) === undefined);
  }

  /** Returns when there will be news without a change, in Unix seconds; undefined: never. */
  getExpiry(): number | undefined {
    if (this.isGivenUp) return undefined;
    // Until the states of an earlier watch are compared, it may have to be waited for those that it has told.
    if (this.resumed.length > 0) return this.openedAt + MAX_CATCH_UP_SECONDS;
    return this.unknownSince === 0 ? undefined : this.unknownSince + MAX_UNKNOWN_SECONDS;
  }

  toProgress(): TargetProgress {
    const known = this.follower?.phase === "known" ? this.follower.transfers : [];
    const sent = known.map(({ slot }) => this.sent[slot]).filter((fingerprint) => fingerprint !== undefined);
    return { sent: [...this.resumed, ...sent], unknownSince: this.unknownSince, isGivenUp: this.isGivenUp };
  }

  /** Returns whether the earlier watch, of another replica, probably knew more than the follower knows yet. */
  private isBehind({ phase, transfers }: Follower<M>, nowSeconds: number): boolean {
    const { resumed } = this;
    if (resumed.length === 0 || nowSeconds - this.openedAt >= MAX_CATCH_UP_SECONDS) return false;
    if (phase === "unknown") return true;
    const known = transfers.map(({ presented }) => presented.fingerprint);
    const lost = resumed.filter((fingerprint) => !known.includes(fingerprint));
    const gained = known.filter((fingerprint) => !resumed.includes(fingerprint));
    return Math.max(...lost.map(getStage)) > Math.min(...gained.map(getStage));
  }

  /** Counts states as sent that an earlier watch has sent. */
  private skipResumed(transfers: readonly FollowedTransfer<M>[]): void {
    const { resumed } = this;
    if (resumed.length === 0) return;
    this.resumed = NOTHING;
    const fingerprints = transfers.map(({ presented }) => presented.fingerprint);
    const areAllEqual = resumed.length === 1 && compactFingerprints(fingerprints)[0] === resumed[0];
    for (const { slot, presented } of transfers) {
      if (areAllEqual || resumed.includes(presented.fingerprint)) this.sent[slot] = presented.fingerprint;
    }
  }
}
