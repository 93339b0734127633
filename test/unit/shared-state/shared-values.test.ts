import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  createStaleWhileRevalidateCache,
  type StaleWhileRevalidateCache,
} from "../../../src/resilience/stale-while-revalidate.js";
import { shareValues } from "../../../src/shared-state/shared-values.js";
import {
  createSharedProcesses,
  type SharedProcess,
  type SharedProcesses,
} from "../../support/stubs/shared-processes.js";

let processes: SharedProcesses;
beforeEach(() => {
  vi.useFakeTimers({ now: 1_795_000_000_000 });
  processes = createSharedProcesses();
});
afterEach(() => {
  processes.close();
  vi.useRealTimers();
});

const FRESH_MS = 60_000;
const codec = {
  encode: (value: string) => value,
  decode(json: unknown): string {
    if (typeof json === "string") return json;
    throw new TypeError("not a text");
  },
};

interface Participant {
  readonly process: SharedProcess;
  readonly cache: StaleWhileRevalidateCache<string>;
  readonly errors: unknown[];
}

/** A source whose value is the number of the load. */
const source = { loads: 0, latencyMs: 100, isDown: false };
beforeEach(() => {
  Object.assign(source, { loads: 0, latencyMs: 100, isDown: false });
});

async function load(): Promise<string> {
  source.loads += 1;
  const value = `load ${source.loads}`;
  await new Promise((resolve) => setTimeout(resolve, source.latencyMs));
  if (source.isDown) throw new Error("down");
  return value;
}

function start(clockOffsetMs = 0): Participant {
  const process = processes.start(clockOffsetMs);
  const errors: unknown[] = [];
  const peers = shareValues(process.sharedState, "prices", codec, (key): typeof cache | undefined =>
    key === "prices" ? cache : undefined,
  )("prices");
  const cache: StaleWhileRevalidateCache<string> = createStaleWhileRevalidateCache({
    load,
    now: () => Date.now() + clockOffsetMs,
    freshMs: FRESH_MS,
    staleMs: 5 * FRESH_MS,
    errorTtlMs: 1_000,
    onError: (error) => errors.push(error),
    peers,
  });
  return { process, cache, errors };
}

async function resolveValue({ cache }: Participant, ms = 150): Promise<string> {
  const entry = cache.get().then(({ value }) => value);
  entry.catch(() => {});
  await vi.advanceTimersByTimeAsync(ms);
  return entry;
}

test("is loaded once for all, at the start, and when it is no longer fresh", async () => {
  const all = [start(), start(), start()];
  expect(await Promise.all(all.map((each) => resolveValue(each)))).toEqual(["load 1", "load 1", "load 1"]);
  expect(source.loads).toBe(1);
  for (let round = 2; round <= 4; round++) {
    await vi.advanceTimersByTimeAsync(FRESH_MS);
    for (const { cache } of all) cache.peek();
    await vi.advanceTimersByTimeAsync(150);
    expect(all.map(({ cache }) => cache.peek()?.value)).toEqual(all.map(() => `load ${round}`));
    expect(source.loads).toBe(round);
  }
});

test("has the age of its load in every process, whatever its clock", async () => {
  const [reader, other] = [start(), start(7_000_000)];
  await resolveValue(reader);
  await vi.advanceTimersByTimeAsync(30_000);
  await resolveValue(other);
  expect(other.cache.health()).toEqual({ state: "ok", ageMs: reader.cache.health().ageMs });
  expect(source.loads).toBe(1);
});

test("is given at once to a process that starts later", async () => {
  await resolveValue(start());
  const later = start();
  expect(await resolveValue(later, 0)).toBe("load 1");
  expect(source.loads).toBe(1);
});

test("is loaded by another process when the reader is gone, hangs, or does not answer in time", async () => {
  const [first, second, third] = [start(), start(), start()];
  await resolveValue(first);
  first.process.exit();
  await vi.advanceTimersByTimeAsync(FRESH_MS);
  expect(await Promise.all([resolveValue(second, 200), resolveValue(third, 200)])).toEqual(["load 1", "load 1"]);
  expect([second, third].map(({ cache }) => cache.peek()?.value)).toEqual(["load 2", "load 2"]);
  second.process.stop();
  await vi.advanceTimersByTimeAsync(6 * FRESH_MS);
  expect(await resolveValue(third, 200)).toBe("load 3");
});

test("is loaded here when the reader's load fails, and fails like there", async () => {
  const [first, second] = [start(), start()];
  source.isDown = true;
  first.cache.peek();
  await vi.advanceTimersByTimeAsync(150);
  expect(first.errors).toHaveLength(1);
  await expect(resolveValue(second)).rejects.toThrow("down");
  expect(source.loads).toBe(2);
  source.isDown = false;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await resolveValue(second, 400)).toBe("load 3");
  expect(first.cache.health().state).toBe("ok");
});

test("of another process is not taken if it is older, from the future, or not understood", async () => {
  const [first, other] = [start(), processes.start()];
  const publish = other.sharedState.join("prices", {
    onPublished() {},
    onRequest: async () => undefined,
    onBecomeReader() {},
  }).publish;
  await resolveValue(first);
  const send = async (message: object): Promise<string | undefined> => {
    publish(JSON.stringify(message));
    await vi.advanceTimersByTimeAsync(0);
    return first.cache.peek()?.value;
  };
  expect(await send({ key: "prices", readAt: Date.now() - 10_000, value: "older" })).toBe("load 1");
  expect(await send({ key: "prices", readAt: Date.now(), value: 5 })).toBe("load 1");
  expect(await send({ key: "prices", value: "no time" })).toBe("load 1");
  expect(await send({ key: "another", readAt: Date.now(), value: "x" })).toBe("load 1");
  expect(await send({ key: "prices", readAt: Date.now() + 3_600_000, value: "future" })).toBe("future");
  expect(first.cache.peek()?.readAt).toBe(Date.now());
});

test("is loaded here when the other process answers with one that is no longer fresh", async () => {
  const cache = createStaleWhileRevalidateCache({
    load,
    now: Date.now,
    freshMs: FRESH_MS,
    staleMs: 5 * FRESH_MS,
    errorTtlMs: 1_000,
    onError() {},
    peers: { request: async () => ({ value: "old", readAt: Date.now() - FRESH_MS }), publish() {} },
  });
  const entry = cache.get();
  await vi.advanceTimersByTimeAsync(source.latencyMs);
  expect((await entry).value).toBe("load 1");
});
