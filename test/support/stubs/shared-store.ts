import { SharedCache, type SharedStore } from "../../../src/shared-state/shared-cache.js";

/** What a Redis does that several processes share, in memory and on the clock of `Date`. */
export interface SharedStoreStub {
  /** Starts a process. Returns its cache. */
  start(): SharedCache;
  /** False: no command is answered. */
  isReachable: boolean;
  /** How long it takes to answer a command. */
  latencyMs: number;
  /** Number of times that each command was sent. */
  readonly commands: Map<keyof SharedStore, number>;
  /** Replaces every text. */
  replaceTexts(replace: (text: string) => string): void;
  flush(): void;
}

export function createSharedStoreStub(): SharedStoreStub {
  const values = new Map<
    string,
    { text: string; readonly rank: number; readonly ttlMs: number; readonly expiresAt: number }
  >();
  const locks = new Map<string, { readonly owner: string; readonly expiresAt: number }>();
  const demands = new Map<string, Map<string, number>>();
  let processCount = 0;
  const stub: SharedStoreStub = {
    isReachable: true,
    latencyMs: 0,
    commands: new Map(),
    start() {
      processCount += 1;
      return new SharedCache(store, `process ${processCount}`, () => Date.now());
    },
    replaceTexts(replace) {
      for (const value of values.values()) value.text = replace(value.text);
    },
    flush() {
      for (const map of [values, locks, demands]) map.clear();
    },
  };

  async function answer<T>(command: keyof SharedStore, run: () => T, timeoutMs = 500): Promise<T | undefined> {
    stub.commands.set(command, (stub.commands.get(command) ?? 0) + 1);
    if (stub.latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, Math.min(stub.latencyMs, timeoutMs)));
    return stub.isReachable && stub.latencyMs <= timeoutMs ? run() : undefined;
  }

  const isValid = (value: { readonly expiresAt: number } | undefined) => value && value.expiresAt > Date.now();
  const store: SharedStore = {
    get: (key, timeoutMs) =>
      answer(
        "get",
        () => {
          const value = values.get(key);
          if (value === undefined || !isValid(value)) return null;
          return { text: value.text, ageMs: value.ttlMs - (value.expiresAt - Date.now()) };
        },
        timeoutMs,
      ),
    set: (key, text, { ttlMs, ageMs, rank }) =>
      answer("set", () => {
        const known = values.get(key);
        if (known !== undefined && isValid(known) && known.rank > rank) return;
        values.set(key, { text, rank, ttlMs, expiresAt: Date.now() + ttlMs - ageMs });
      }),
    lock: (key, owner, { expiryMs, timeoutMs }) =>
      answer(
        "lock",
        () => {
          if (isValid(locks.get(key))) return false;
          locks.set(key, { owner, expiresAt: Date.now() + expiryMs });
          return true;
        },
        timeoutMs,
      ),
    unlock: (key, owner) => answer("unlock", () => locks.get(key)?.owner === owner && locks.delete(key)),
    demand: (key, names, expiryMs) =>
      answer("demand", () => {
        const demanded = demands.get(key) ?? new Map<string, number>();
        demands.set(key, demanded);
        for (const name of names) demanded.set(name, Date.now() + expiryMs);
      }),
    listDemand: (key, timeoutMs) =>
      answer(
        "listDemand",
        () => {
          const demanded = [...(demands.get(key) ?? [])];
          return demanded.filter(([, expiresAt]) => expiresAt > Date.now()).map(([name]) => name);
        },
        timeoutMs,
      ),
  };
  return stub;
}
