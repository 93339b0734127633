import { RpcError } from "../../../chain/json-rpc/rpc-codec.js";
import { ServiceError } from "../../../errors.js";

/** Joins the loads of one event-loop turn into one batch. */
export interface BatchLoader<Key, Value> {
  /** Returns the value of the whole batch, which covers the key. Rejects with the error of the batch. */
  load(key: Key): Promise<Value>;
}

export interface BatchLoaderOptions<Key, Value> {
  readonly loadBatch: (keys: readonly Key[]) => Promise<Value>;
  /** Milliseconds on a monotonic clock. */
  readonly now: () => number;
}

/** Pause between a failed batch and the next one; loads that arrive during the pause join the next batch. */
const INITIAL_BACKOFF_MS = 250;
const MAX_BACKOFF_MS = 1_000;
/** How long a key that the node rejected is loaded in a batch of its own. */
const ISOLATION_MS = 10_000;

/** Keys that are loaded together; open until its load starts. */
interface Batch<Key, Value> {
  readonly keys: Set<Key>;
  /** Resolves to a function that returns the result of one key. */
  readonly resultFor: Promise<(key: Key) => Value | Promise<Value>>;
}

/**
 * Creates a batch loader with backoff after failures. If the node rejects a batch, its keys are loaded one by one, and
 * those that fail stay isolated for a while, so that one bad call does not affect the other keys.
 *
 * Keys are compared by identity.
 */
export function createBatchLoader<Key extends object, Value>({
  loadBatch,
  now,
}: BatchLoaderOptions<Key, Value>): BatchLoader<Key, Value> {
  /** Until when a key is loaded separately. */
  const isolatedUntil = new WeakMap<Key, number>();
  const state: {
    openBatch: Batch<Key, Value> | undefined;
    failedAt: number;
    consecutiveFailures: number;
    /** Rotates which keys of a rejected batch are probed first. */
    probeOffset: number;
  } = { openBatch: undefined, failedAt: Number.NEGATIVE_INFINITY, consecutiveFailures: 0, probeOffset: 0 };

  function joinBatch(): Batch<Key, Value> {
    state.openBatch ??= createBatch();
    return state.openBatch;
  }

  function createBatch(): Batch<Key, Value> {
    const keys = new Set<Key>();
    const start = async (): Promise<(key: Key) => Value | Promise<Value>> => {
      const backoffMs = Math.min(INITIAL_BACKOFF_MS * 2 ** (state.consecutiveFailures - 1), MAX_BACKOFF_MS);
      const remainingMs = state.failedAt + backoffMs - now();
      if (remainingMs > 0) await new Promise((resolve) => setTimeout(resolve, remainingMs));
      // Lets the other loads of this event-loop turn join.
      else await Promise.resolve();
      if (state.openBatch === batch) state.openBatch = undefined;
      return loadTogether([...keys]);
    };
    const batch: Batch<Key, Value> = { keys, resultFor: start() };
    return batch;
  }

  async function loadTogether(keys: readonly Key[]): Promise<(key: Key) => Value | Promise<Value>> {
    try {
      const value = await loadAndRecord(keys);
      return () => value;
    } catch (error) {
      if (keys.length === 1 || !isRpcRejection(error)) throw error;
      return loadIsolated(keys, error);
    }
  }

  /**
   * The node is reachable and rejects a call, perhaps of only one key. Probes two keys first, other ones each time; if
   * both are rejected, assumes that the node rejects everything.
   */
  async function loadIsolated(keys: readonly Key[], batchError: unknown): Promise<(key: Key) => Promise<Value>> {
    const loads = new Map<Key, Promise<Value>>();
    const offset = state.probeOffset % keys.length;
    const rotated = [...keys.slice(offset), ...keys.slice(0, offset)];
    for (const group of [rotated.slice(0, 2), rotated.slice(2)]) {
      for (const key of group) loads.set(key, loadAndRecord([key]));
      const outcomes = await Promise.allSettled(group.map((key) => loads.get(key)));
      const rejected = group.filter((_, index) => outcomes[index]?.status === "rejected");
      if (rejected.length === group.length) {
        state.probeOffset += 2;
        break;
      }
      for (const key of rejected) isolatedUntil.set(key, now() + ISOLATION_MS);
    }
    return (key) => loads.get(key) ?? Promise.reject(batchError);
  }

  async function loadAndRecord(keys: readonly Key[]): Promise<Value> {
    try {
      const value = await loadBatch(keys);
      state.consecutiveFailures = 0;
      return value;
    } catch (error) {
      state.failedAt = now();
      state.consecutiveFailures += 1;
      throw error;
    }
  }

  return {
    async load(key) {
      const isIsolated = (isolatedUntil.get(key) ?? Number.NEGATIVE_INFINITY) > now();
      const batch = isIsolated ? createBatch() : joinBatch();
      batch.keys.add(key);
      return (await batch.resultFor)(key);
    },
  };
}

/**
 * Loads several keys in one batch and returns its value. Keys that the node rejects are left out of it, unless it rejects
 * all of them.
 */
export async function loadJointly<Key extends object, Value>(
  loader: BatchLoader<Key, Value>,
  keys: readonly Key[],
  canRepeat = true,
): Promise<Value> {
  const outcomes = await Promise.allSettled(keys.map((key) => loader.load(key)));
  const accepted = keys.filter((_, index) => outcomes[index]?.status === "fulfilled");
  const values = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
  const [first] = values;
  if (first === undefined) throw (outcomes[0] as PromiseRejectedResult).reason;
  // After a rejection the loader loads each key alone; the accepted ones can be loaded together again.
  const isApart = canRepeat && values.some((value) => value !== first);
  return isApart ? loadJointly(loader, accepted, false) : first;
}

/** Returns whether the error means that a chain's nodes are reachable and rejected a call. */
function isRpcRejection(error: unknown): boolean {
  return error instanceof ServiceError && error.cause instanceof RpcError;
}
