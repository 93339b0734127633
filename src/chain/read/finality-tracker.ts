import { ServiceError } from "../../errors.js";
import { UpstreamError } from "../../resilience/upstream-error.js";
import type { ChainClient } from "../chain-client.js";
import { RpcError } from "../json-rpc/rpc-codec.js";
import { readBlockHeader } from "./chain-reads.js";

/** Which blocks can no longer be undone. */
export interface FinalityTracker {
  /**
   * Whether a block of a chain is final; false also when the chain does not tell. Never rejects.
   * @param block its number, and its time in Unix seconds where that is known
   */
  isFinal(
    client: ChainClient,
    block: { readonly number: number; readonly timestamp?: number | undefined },
    signal: AbortSignal,
  ): Promise<boolean>;
}

export interface FinalityTrackerOptions {
  /** Milliseconds on a steady clock. */
  readonly now: () => number;
  /** Milliseconds since 1970. */
  readonly wallNow: () => number;
}

interface FinalityState {
  /** Number of the last block known to be final, and when that was told last, in milliseconds on the steady clock. */
  finalized: number;
  observedAt: number;
  /** Whether the chain tells at all. */
  isSupported: boolean;
  /** When it may be asked again, in milliseconds on the steady clock. */
  nextReadAt: number;
  reading: Promise<void> | undefined;
}

const FINALIZED_REFRESH_INTERVAL_MS = 10_000;
/** For how long a block is believed to be final that no endpoint tells again. */
const FINALIZED_TTL_MS = 10 * 60_000;
/** When a chain that does not tell is asked again. */
const UNSUPPORTED_RETRY_MS = 10 * 60_000;
/** Age from which a block counts as final on a chain that does not tell, in milliseconds. */
const FINAL_AGE_MS = 60 * 60_000;

/** Remembers what it reads by client, so that what a caller's own endpoint says is for that caller alone. */
export function createFinalityTracker({ now, wallNow }: FinalityTrackerOptions): FinalityTracker {
  const chains = new WeakMap<ChainClient, FinalityState>();

  function knownOf(client: ChainClient): FinalityState {
    const known = chains.get(client) ?? {
      finalized: -1,
      observedAt: now(),
      isSupported: true,
      nextReadAt: now(),
      reading: undefined,
    };
    chains.set(client, known);
    return known;
  }

  function isBelieved({ observedAt }: FinalityState): boolean {
    return now() - observedAt < FINALIZED_TTL_MS;
  }

  async function ask(client: ChainClient, known: FinalityState, signal: AbortSignal): Promise<void> {
    try {
      const header = await readBlockHeader(client, "finalized", signal);
      const told = header?.number ?? -1;
      // An endpoint that lags, or does not tell, cannot undo what another knew; but what nobody tells again was wrong.
      if (told >= known.finalized || !isBelieved(known)) {
        known.finalized = told;
        known.observedAt = now();
      }
      known.isSupported = known.finalized >= 0;
    } catch (error) {
      if (signal.aborted) return;
      // Else it is in trouble, and what was known of it stands.
      if (isUnknownBlockTagError(error)) known.isSupported = known.finalized >= 0;
    }
    known.nextReadAt = now() + (known.isSupported ? FINALIZED_REFRESH_INTERVAL_MS : UNSUPPORTED_RETRY_MS);
  }

  return {
    async isFinal(client, { number, timestamp }, signal) {
      const known = knownOf(client);
      if (number <= known.finalized && isBelieved(known)) return true;
      if (known.reading === undefined && now() >= known.nextReadAt) {
        known.reading = ask(client, known, signal).finally(() => {
          known.reading = undefined;
        });
      }
      await known.reading;
      if (known.isSupported) return number <= known.finalized && isBelieved(known);
      return timestamp !== undefined && wallNow() - timestamp * 1000 >= FINAL_AGE_MS;
    },
  };
}

/** Whether a failed read of the block "finalized" means that the endpoint has no such block, and not that it is in trouble. */
export function isUnknownBlockTagError(error: unknown): boolean {
  const cause = error instanceof ServiceError ? error.cause : undefined;
  if (cause instanceof RpcError) return cause.classification?.kind !== "busy";
  return cause instanceof UpstreamError && cause.status === 400;
}
