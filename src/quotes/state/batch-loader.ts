import { RpcError } from "../../chain/json-rpc/rpc-codec.js";
import { ServiceError } from "../../errors.js";

/** Reads for several who want it at the same moment by one request. */
export interface BatchLoader<Wanted, Found> {
  /** What is found has all that was wanted at that moment. Fails as the read does. */
  load(wanted: Wanted): Promise<Found>;
}

export interface BatchLoaderOptions<Wanted, Found> {
  readonly loadBatch: (wanted: readonly Wanted[]) => Promise<Found>;
  /** Milliseconds on a steady clock. */
  readonly now: () => number;
}

/** From a failed read to the next, after the first failure in a row; who asks meanwhile waits for that next one. */
const INITIAL_BACKOFF_MS = 250;
const MAX_BACKOFF_MS = 1_000;
/** How long what a node refused is read apart from all else. */
const ISOLATION_MS = 10_000;

/** Those that are read by one request, from when it is planned. */
interface Batch<Wanted, Found> {
  readonly keys: Set<Wanted>;
  readonly resultFor: Promise<(wanted: Wanted) => Found | Promise<Found>>;
}

/** What is wanted is told apart as an object: wanted again, it may still be read apart, as the time before. */
export function createBatchLoader<Wanted extends object, Found>({
  loadBatch,
  now,
}: BatchLoaderOptions<Wanted, Found>): BatchLoader<Wanted, Found> {
  /** Until when something is read apart. */
  const apartUntil = new WeakMap<Wanted, number>();
  let next: Batch<Wanted, Found> | undefined;
  let failedAt = Number.NEGATIVE_INFINITY;
  let failuresInARow = 0;
  /** How many were read apart in vain. */
  let probed = 0;

  function planTogether(): Batch<Wanted, Found> {
    next ??= plan();
    return next;
  }

  function plan(): Batch<Wanted, Found> {
    const keys = new Set<Wanted>();
    const start = async (): Promise<(wanted: Wanted) => Found | Promise<Found>> => {
      const pauseMs = Math.min(INITIAL_BACKOFF_MS * 2 ** (failuresInARow - 1), MAX_BACKOFF_MS);
      const pause = failedAt + pauseMs - now();
      if (pause > 0) await new Promise((resolve) => setTimeout(resolve, pause));
      // Whoever comes by in this turn of the event loop is taken along.
      else await Promise.resolve();
      if (next === planned) next = undefined;
      return readTogether([...keys]);
    };
    const planned: Batch<Wanted, Found> = { keys, resultFor: start() };
    return planned;
  }

  async function readTogether(all: readonly Wanted[]): Promise<(wanted: Wanted) => Found | Promise<Found>> {
    try {
      const found = await readOnce(all);
      return () => found;
    } catch (error) {
      if (all.length === 1 || !isRpcRejection(error)) throw error;
      return readApart(all, error);
    }
  }

  /**
   * The node is there and refuses a call, perhaps of one only: the others are not to suffer from it. Two are read first,
   * others each time; where both are refused, it is taken that the node refuses everything.
   */
  async function readApart(all: readonly Wanted[], error: unknown): Promise<(wanted: Wanted) => Promise<Found>> {
    const alone = new Map<Wanted, Promise<Found>>();
    const from = probed % all.length;
    const inOrder = [...all.slice(from), ...all.slice(0, from)];
    for (const some of [inOrder.slice(0, 2), inOrder.slice(2)]) {
      for (const wanted of some) alone.set(wanted, readOnce([wanted]));
      const settled = await Promise.allSettled(some.map((wanted) => alone.get(wanted)));
      const refused = some.filter((_, place) => settled[place]?.status === "rejected");
      if (refused.length === some.length) {
        probed += 2;
        break;
      }
      for (const wanted of refused) apartUntil.set(wanted, now() + ISOLATION_MS);
    }
    return (wanted) => alone.get(wanted) ?? Promise.reject(error);
  }

  async function readOnce(all: readonly Wanted[]): Promise<Found> {
    try {
      const found = await loadBatch(all);
      failuresInARow = 0;
      return found;
    } catch (error) {
      failedAt = now();
      failuresInARow += 1;
      throw error;
    }
  }

  return {
    async load(wanted) {
      const isApart = (apartUntil.get(wanted) ?? Number.NEGATIVE_INFINITY) > now();
      const planned = isApart ? plan() : planTogether();
      planned.keys.add(wanted);
      return (await planned.resultFor)(wanted);
    },
  };
}

/** Whether a chain's nodes are there and refuse a call. */
function isRpcRejection(error: unknown): boolean {
  return error instanceof ServiceError && error.cause instanceof RpcError;
}
