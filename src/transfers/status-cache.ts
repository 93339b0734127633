import { LRUCache } from "lru-cache";
import type { Gate } from "../resilience/adaptive-limiter.js";
import type { Sharing } from "../resilience/single-flight.js";
import type { LookUp } from "./resolver.js";
import {
  ask,
  type Found,
  isUnavailable,
  type LookUpContext,
  type TransferQuery,
  type TransferSource,
} from "./sources/transfer-source.js";
import { isSettled, type TransferStatus } from "./status.js";

/** Where the status of a transfer is asked for. */
export interface StatusBook {
  /**
   * Without a promise where it is known already; undefined where there is no such transfer for sure.
   * @throws ServiceError as LookUp does; OVERLOADED as the gate
   */
  find(query: TransferQuery, context: AskedFor): Found | Promise<Found>;
}

/** A look-up, and who asks for it. */
export interface AskedFor extends LookUpContext {
  readonly caller: string;
}

export interface StatusBookOptions {
  /** Asked before anyone else; undefined: there is none. */
  readonly index: TransferSource<Found> | undefined;
  readonly lookUp: LookUp;
  /** Look-ups that are under way. */
  readonly sharing: Sharing<Found>;
  /** What look-ups have to pass that others may wait for; those over a caller's own endpoints are bounded by these. */
  readonly gate: Gate;
  /** Longest time for one that several wait for, in milliseconds. */
  readonly longestMs: number;
  /** Milliseconds on a steady clock. */
  readonly now: () => number;
}

/** Statuses that are kept at most: some ten megabytes. */
const maxStatuses = 10_000;
/** How long a status that will not change is kept before the chains are asked once more, in milliseconds. */
const settledMs = 60 * 60_000;
/** Shortest time for any other: however often callers ask, the chains are asked once a second. */
const leastMs = 1_000;

/** For how long a status that may change can be taken to stand: about a block, in milliseconds. */
export function standsMs({ sent }: TransferStatus): number {
  return Math.max(sent.destination.blockMs, leastMs);
}

/**
 * Looks up once what several ask for at the same time and keeps what was found: not that there is no such transfer, no
 * failure, and nothing that was read from a caller's own endpoint.
 */
export function createStatusBook({ index, lookUp, sharing, gate, longestMs, now }: StatusBookOptions): StatusBook {
  const kept = new LRUCache<string, TransferStatus>({ max: maxStatuses, perf: { now }, ttlResolution: 0 });

  function keep(key: string, found: Found): Found {
    if (found !== undefined) kept.set(key, found, { ttl: isSettled(found) ? settledMs : standsMs(found) });
    return found;
  }

  function lookUpForAll(query: TransferQuery, context: AskedFor): (signal: AbortSignal) => Promise<Found> {
    // Not the first caller's own deadline: others may have more time.
    const dueAt = now() + longestMs;
    return (signal) =>
      gate.pass(context.caller, signal, () => lookUp.find(query, { ...context, signal, leftMs: () => dueAt - now() }));
  }

  return {
    find(query, context) {
      if (isPrivate(context)) return lookUp.find(query, context);
      const key = `${context.network.slug} ${query.transactionHash ?? ""} ${query.transferId ?? ""}`;
      const known = kept.get(key);
      if (known !== undefined) return known;
      try {
        if (index !== undefined) return keep(key, ask(index, query, context));
      } catch (error) {
        if (!isUnavailable(error)) throw error;
      }
      if (!sharing.has(key)) gate.check(context.caller);
      return sharing.run(key, context.signal, lookUpForAll(query, context)).then((found) => keep(key, found));
    },
  };
}

function isPrivate({ network, chains }: LookUpContext): boolean {
  for (const slug of network.chains.keys()) if (chains.isCustom(slug)) return true;
  return false;
}
