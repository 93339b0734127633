import { ServiceError } from "../../errors.js";
import { UpstreamError } from "../../resilience/http-client/upstream-error.js";
import type { ChainClient } from "../chain-client.js";
import { RpcError } from "../json-rpc/rpc-errors.js";
import { readBlockHeader } from "../read/chain-reads.js";
import { type FinalBlock, getHeadTracker } from "./head-tracker.js";

const FINALIZED_REFRESH_INTERVAL_MS = 10_000;
/** How long a finalized block is used without being confirmed again. */
const FINALIZED_TTL_MS = 10 * 60_000;
/** When a chain that does not know the tag "finalized" is asked again. */
const UNSUPPORTED_RETRY_MS = 10 * 60_000;
/** Age above which a block counts as final on such a chain, in milliseconds. */
const FINAL_AGE_MS = 60 * 60_000;

/** Tells which blocks are final. */
export class FinalityTracker {
  readonly #now: () => number;
  readonly #wallNow: () => number;

  /** @param now monotonic clock; wallNow: wall clock since 1970, both in milliseconds */
  constructor(now: () => number, wallNow: () => number) {
    this.#now = now;
    this.#wallNow = wallNow;
  }

  /**
   * Returns whether a block is final; false also when the chain does not respond. Never rejects.
   * @param block its number, and its timestamp in Unix seconds if known
   */
  async isFinal(
    client: ChainClient,
    { number, timestamp }: { readonly number: number; readonly timestamp?: number | undefined },
    signal: AbortSignal,
  ): Promise<boolean> {
    const heads = getHeadTracker(client);
    const now = this.#now();
    heads.final ??= { number: -1, observedAt: now, isSupported: true, nextReadAt: now, pendingRead: undefined };
    const { final } = heads;
    if (number <= final.number && this.#isValid(final)) return true;
    if (final.pendingRead === undefined && now >= final.nextReadAt) {
      final.pendingRead = this.#refresh(client, final, signal).finally(() => {
        final.pendingRead = undefined;
      });
    }
    await final.pendingRead;
    if (final.isSupported) return number <= final.number && this.#isValid(final);
    return timestamp !== undefined && this.#wallNow() - timestamp * 1000 >= FINAL_AGE_MS;
  }

  #isValid({ observedAt }: FinalBlock): boolean {
    return this.#now() - observedAt < FINALIZED_TTL_MS;
  }

  async #refresh(client: ChainClient, final: FinalBlock, signal: AbortSignal): Promise<void> {
    try {
      const header = await readBlockHeader(client, "finalized", signal);
      const number = header?.number ?? -1;
      // A lower value comes from an endpoint that lags. It counts only when the higher value is not confirmed any more.
      if (number >= final.number || !this.#isValid(final)) {
        final.number = number;
        final.observedAt = this.#now();
      }
      final.isSupported = final.number >= 0;
    } catch (error) {
      if (signal.aborted) return;
      // Any other error is a failure of the endpoint and leaves the state unchanged.
      if (isUnknownBlockTagError(error)) final.isSupported = final.number >= 0;
    }
    final.nextReadAt = this.#now() + (final.isSupported ? FINALIZED_REFRESH_INTERVAL_MS : UNSUPPORTED_RETRY_MS);
  }
}

/** Returns whether a failed read of the block "finalized" means that the endpoint does not know the tag. */
export function isUnknownBlockTagError(error: unknown): boolean {
  const cause = error instanceof ServiceError ? error.cause : undefined;
  if (cause instanceof RpcError) return cause.classification?.kind !== "rate_limited";
  return cause instanceof UpstreamError && cause.status === 400;
}
