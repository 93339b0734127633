import { ServiceError } from "../../errors.js";
import { ExchangeError } from "../../resilience/fetch-json.js";
import type { ChainClient } from "../chain-client.js";
import { CallRefused } from "../json-rpc/rpc-codec.js";
import { readHeader } from "./chain-reads.js";

/** Which blocks can no longer be undone. */
export interface Finality {
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

export interface FinalityOptions {
  /** Milliseconds on a steady clock. */
  readonly now: () => number;
  /** Milliseconds since 1970. */
  readonly wallNow: () => number;
}

interface Known {
  /** Number of the last block known to be final, and when that was told last, in milliseconds on the steady clock. */
  finalized: number;
  toldAt: number;
  /** Whether the chain tells at all. */
  tells: boolean;
  /** When it may be asked again, in milliseconds on the steady clock. */
  askAgainAt: number;
  reading: Promise<void> | undefined;
}

const intervalMs = 10_000;
/** For how long a block is believed to be final that no endpoint tells again. */
const believedMs = 10 * 60_000;
/** When a chain that does not tell is asked again. */
const untoldMs = 10 * 60_000;
/** Age from which a block counts as final on a chain that does not tell, in milliseconds. */
const oldMs = 60 * 60_000;

/** Remembers what it reads by client, so that what a caller's own endpoint says is for that caller alone. */
export function createFinality({ now, wallNow }: FinalityOptions): Finality {
  const chains = new WeakMap<ChainClient, Known>();

  function knownOf(client: ChainClient): Known {
    const known = chains.get(client) ?? {
      finalized: -1,
      toldAt: now(),
      tells: true,
      askAgainAt: now(),
      reading: undefined,
    };
    chains.set(client, known);
    return known;
  }

  function isBelieved({ toldAt }: Known): boolean {
    return now() - toldAt < believedMs;
  }

  async function ask(client: ChainClient, known: Known, signal: AbortSignal): Promise<void> {
    try {
      const header = await readHeader(client, "finalized", signal);
      const told = header?.number ?? -1;
      // An endpoint that lags, or does not tell, cannot undo what another knew; but what nobody tells again was wrong.
      if (told >= known.finalized || !isBelieved(known)) {
        known.finalized = told;
        known.toldAt = now();
      }
      known.tells = known.finalized >= 0;
    } catch (error) {
      if (signal.aborted) return;
      // Else it is in trouble, and what was known of it stands.
      if (isUnknownTag(error)) known.tells = known.finalized >= 0;
    }
    known.askAgainAt = now() + (known.tells ? intervalMs : untoldMs);
  }

  return {
    async isFinal(client, { number, timestamp }, signal) {
      const known = knownOf(client);
      if (number <= known.finalized && isBelieved(known)) return true;
      if (known.reading === undefined && now() >= known.askAgainAt) {
        known.reading = ask(client, known, signal).finally(() => {
          known.reading = undefined;
        });
      }
      await known.reading;
      if (known.tells) return number <= known.finalized && isBelieved(known);
      return timestamp !== undefined && wallNow() - timestamp * 1000 >= oldMs;
    },
  };
}

/** Whether a failed read of the block "finalized" means that the endpoint has no such block, and not that it is in trouble. */
export function isUnknownTag(error: unknown): boolean {
  const cause = error instanceof ServiceError ? error.cause : undefined;
  if (cause instanceof CallRefused) return cause.refusal?.about !== "busy";
  return cause instanceof ExchangeError && cause.status === 400;
}
