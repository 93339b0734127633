import { RpcError } from "../../chain/json-rpc/rpc-errors.js";
import { ServiceError } from "../../errors.js";

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
 * Joins the loads of one event-loop turn into one batch, with backoff after failures. If the node rejects a batch, its keys
 * are loaded one by one, and those that fail stay isolated for a while, so that one bad call does not affect the others.
 *
 * Keys are compared by identity.
 */
export class BatchLoader<Key extends object, Value> {
  readonly #loadBatch: (keys: readonly Key[]) => Promise<Value>;
  /** Milliseconds on a monotonic clock. */
  readonly #now: () => number;
  /** Until when a key is loaded separately. */
  readonly #isolatedUntil = new WeakMap<Key, number>();
  #openBatch: Batch<Key, Value> | undefined;
  #failedAt = Number.NEGATIVE_INFINITY;
  #consecutiveFailures = 0;
  /** Rotates which keys of a rejected batch are probed first. */
  #probeOffset = 0;

  constructor(loadBatch: (keys: readonly Key[]) => Promise<Value>, now: () => number) {
    this.#loadBatch = loadBatch;
    this.#now = now;
  }

  /** Returns the value of the whole batch, which covers the key. Rejects with the error of the batch. */
  async load(key: Key): Promise<Value> {
    const isIsolated = (this.#isolatedUntil.get(key) ?? Number.NEGATIVE_INFINITY) > this.#now();
    const batch = isIsolated ? this.#createBatch() : this.#joinBatch();
    batch.keys.add(key);
    return (await batch.resultFor)(key);
  }

  #joinBatch(): Batch<Key, Value> {
    this.#openBatch ??= this.#createBatch();
    return this.#openBatch;
  }

  #createBatch(): Batch<Key, Value> {
    const keys = new Set<Key>();
    const start = async (): Promise<(key: Key) => Value | Promise<Value>> => {
      const backoffMs = Math.min(INITIAL_BACKOFF_MS * 2 ** (this.#consecutiveFailures - 1), MAX_BACKOFF_MS);
      const remainingMs = this.#failedAt + backoffMs - this.#now();
      if (remainingMs > 0) await new Promise((resolve) => setTimeout(resolve, remainingMs));
      // Lets the other loads of this event-loop turn join.
      else await Promise.resolve();
      if (this.#openBatch === batch) this.#openBatch = undefined;
      return this.#loadTogether([...keys]);
    };
    const batch: Batch<Key, Value> = { keys, resultFor: start() };
    return batch;
  }

  async #loadTogether(keys: readonly Key[]): Promise<(key: Key) => Value | Promise<Value>> {
    try {
      const value = await this.#loadAndRecord(keys);
      return () => value;
    } catch (error) {
      if (keys.length === 1 || !isRpcRejection(error)) throw error;
      return this.#loadIsolated(keys, error);
    }
  }

  /**
   * The node is reachable and rejects a call, perhaps of only one key. Probes two keys first, other ones each time; if
   * both are rejected, assumes that the node rejects everything.
   */
  async #loadIsolated(keys: readonly Key[], batchError: unknown): Promise<(key: Key) => Promise<Value>> {
    const loads = new Map<Key, Promise<Value>>();
    const offset = this.#probeOffset % keys.length;
    const rotated = [...keys.slice(offset), ...keys.slice(0, offset)];
    for (const group of [rotated.slice(0, 2), rotated.slice(2)]) {
      for (const key of group) loads.set(key, this.#loadAndRecord([key]));
      const outcomes = await Promise.allSettled(group.map((key) => loads.get(key)));
      const rejected = group.filter((_, index) => outcomes[index]?.status === "rejected");
      if (rejected.length === group.length) {
        this.#probeOffset += 2;
        break;
      }
      for (const key of rejected) this.#isolatedUntil.set(key, this.#now() + ISOLATION_MS);
    }
    return (key) => loads.get(key) ?? Promise.reject(batchError);
  }

  async #loadAndRecord(keys: readonly Key[]): Promise<Value> {
    try {
      const value = await this.#loadBatch(keys);
      this.#consecutiveFailures = 0;
      return value;
    } catch (error) {
      this.#failedAt = this.#now();
      this.#consecutiveFailures += 1;
      throw error;
    }
  }
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
