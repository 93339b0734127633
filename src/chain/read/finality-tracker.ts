import { ServiceError } from "../../errors.js";
import { UpstreamError } from "../../resilience/upstream-error.js";
import { type ChainClient, getCacheKey } from "../chain-client.js";
import { RpcError } from "../json-rpc/rpc-codec.js";
import { readBlockHeader } from "./chain-reads.js";

/** Tracks which blocks are final. */
export interface FinalityTracker {
  /**
   * Returns whether a block is final; false also when the chain does not respond. Never rejects.
   * @param block its number, and its timestamp in Unix seconds if known
   */
  isFinal(
    client: ChainClient,
    block: { readonly number: number; readonly timestamp?: number | undefined },
    signal: AbortSignal,
  ): Promise<boolean>;
}

export interface FinalityTrackerOptions {
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  /** Wall clock: milliseconds since 1970. */
  readonly wallNow: () => number;
}

/** Times are milliseconds on the monotonic clock. */
interface FinalityState {
  /** Number of the highest block known to be final; -1: none. */
  finalized: number;
  observedAt: number;
  /** Whether the chain knows the block tag "finalized". */
  isSupported: boolean;
  nextReadAt: number;
  pendingRead: Promise<void> | undefined;
}

const FINALIZED_REFRESH_INTERVAL_MS = 10_000;
/** How long a finalized block is used without being confirmed again. */
const FINALIZED_TTL_MS = 10 * 60_000;
/** When a chain that does not know the tag "finalized" is asked again. */
const UNSUPPORTED_RETRY_MS = 10 * 60_000;
/** Age above which a block counts as final on such a chain, in milliseconds. */
const FINAL_AGE_MS = 60 * 60_000;

/** Keeps state by client, so that the results of a custom endpoint are only used for the caller that named it. */
export function createFinalityTracker({ now, wallNow }: FinalityTrackerOptions): FinalityTracker {
  const stateByClient = new WeakMap<object, FinalityState>();

  function getState(client: ChainClient): FinalityState {
    const key = getCacheKey(client);
    const state = stateByClient.get(key) ?? {
      finalized: -1,
      observedAt: now(),
      isSupported: true,
      nextReadAt: now(),
      pendingRead: undefined,
    };
    stateByClient.set(key, state);
    return state;
  }

  function isValid({ observedAt }: FinalityState): boolean {
    return now() - observedAt < FINALIZED_TTL_MS;
  }

  async function refresh(client: ChainClient, state: FinalityState, signal: AbortSignal): Promise<void> {
    try {
      const header = await readBlockHeader(client, "finalized", signal);
      const finalized = header?.number ?? -1;
      // A lower value comes from an endpoint that lags. It counts only when the higher value is not confirmed any more.
      if (finalized >= state.finalized || !isValid(state)) {
        state.finalized = finalized;
        state.observedAt = now();
      }
      state.isSupported = state.finalized >= 0;
    } catch (error) {
      if (signal.aborted) return;
      // Any other error is a failure of the endpoint and leaves the state unchanged.
      if (isUnknownBlockTagError(error)) state.isSupported = state.finalized >= 0;
    }
    state.nextReadAt = now() + (state.isSupported ? FINALIZED_REFRESH_INTERVAL_MS : UNSUPPORTED_RETRY_MS);
  }

  return {
    async isFinal(client, { number, timestamp }, signal) {
      const state = getState(client);
      if (number <= state.finalized && isValid(state)) return true;
      if (state.pendingRead === undefined && now() >= state.nextReadAt) {
        state.pendingRead = refresh(client, state, signal).finally(() => {
          state.pendingRead = undefined;
        });
      }
      await state.pendingRead;
      if (state.isSupported) return number <= state.finalized && isValid(state);
      return timestamp !== undefined && wallNow() - timestamp * 1000 >= FINAL_AGE_MS;
    },
  };
}

/** Returns whether a failed read of the block "finalized" means that the endpoint does not know the tag. */
export function isUnknownBlockTagError(error: unknown): boolean {
  const cause = error instanceof ServiceError ? error.cause : undefined;
  if (cause instanceof RpcError) return cause.classification?.kind !== "rate_limited";
  return cause instanceof UpstreamError && cause.status === 400;
}
