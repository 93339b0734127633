import { setImmediate } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { PostgresDatabase } from "../../../../../src/transfers/index/database/postgres-database.js";
import { PostgresFailure } from "../../../../../src/transfers/index/database/postgres-failures.js";
import { parsePostgresUrl } from "../../../../../src/transfers/index/database/postgres-location.js";

// How requests wait for a server, without one. test/replicas has the rest.

const NEVER = new AbortController().signal;

/** A database whose server has answered. */
async function setup(read: () => Promise<unknown>, poolSize = 4) {
  const primary = parsePostgresUrl("postgres://user@localhost/hop");
  if (primary === undefined) throw new Error("no URL");
  const usage = { active: 0, idle: 0, waiting: 0 };
  const pool = {
    query: () => Promise.reject(new Error("unexpected statement")),
    connect: () => Promise.reject(new Error("unexpected connection")),
    usage: () => usage,
    end: async () => {},
  };
  const onAvailability = vi.fn();
  const location = { primary, read: undefined, listen: undefined, poolSize, statementTimeoutMs: 1_000 };
  const database = new PostgresDatabase(location, { read: pool, write: pool }, new Map(), onAvailability);
  await database.probe(() => 1);
  onAvailability.mockClear();
  const ask = (caller = "a", signal = NEVER) => database.admit({ caller, signal }, read);
  return { database, onAvailability, ask };
}

test("returns what the index knows", async () => {
  expect(await (await setup(async () => 7)).ask()).toBe(7);
});

test("asks no server that is known to be away, until it answers again", async () => {
  const read = vi.fn(async () => 7);
  const { database, ask } = await setup(read);
  await expect(database.probe(() => Promise.reject(new PostgresFailure("57P03")))).rejects.toThrow();
  await expect(ask()).rejects.toMatchObject({ name: "IndexUnavailableError", isTemporary: true });
  expect(read).not.toHaveBeenCalled();
  await database.probe(() => 1);
  expect(await ask()).toBe(7);
});

test("a lost connection means that the server is away, a refused statement and an error of the query do not", async () => {
  const failure = new PostgresFailure("ECONNRESET");
  const lost = await setup(() => Promise.reject(failure));
  await expect(lost.ask()).rejects.toBe(failure);
  expect(lost.onAvailability).toHaveBeenCalledExactlyOnceWith(false, failure);
  for (const error of [new PostgresFailure("57014"), new Error("ambiguous")]) {
    const refused = await setup(() => Promise.reject(error));
    await expect(refused.ask()).rejects.toBe(error);
    expect(refused.onAvailability).not.toHaveBeenCalled();
  }
});

test.each([
  ["a read waits", 1_000, ({ ask }: Awaited<ReturnType<typeof setup>>) => ask()],
  [
    "a probe waits",
    2_000,
    ({ database }: Awaited<ReturnType<typeof setup>>) => database.probe(() => new Promise(() => {})),
  ],
])("%s %i ms for a server that does not answer", async (_, timeoutMs, wait) => {
  const database = await setup(() => new Promise(() => {}));
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const outcome = expect(wait(database)).rejects.toMatchObject({ code: "ETIMEDOUT" });
  await vi.advanceTimersByTimeAsync(timeoutMs - 1);
  expect(database.onAvailability).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  await outcome;
  expect(database.onAvailability).toHaveBeenCalledWith(false, expect.objectContaining({ code: "ETIMEDOUT" }));
});

test("a read that fails at once leaves no timer, which would reject with nobody to handle it", async () => {
  const { ask } = await setup(() => {
    throw new Error("no such list");
  });
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  await expect(ask()).rejects.toThrow("no such list");
  expect(vi.getTimerCount()).toBe(0);
});

test("one caller takes half of the connections, however much it asks for", async () => {
  const open: (() => void)[] = [];
  const { ask } = await setup(() => new Promise<void>((resolve) => void open.push(resolve)), 10);
  const many = Array.from({ length: 10_000 }, () => ask("greedy"));
  expect(open).toHaveLength(5);
  const other = ask("other");
  expect(open).toHaveLength(6);
  open[5]?.();
  await other;
  for (let next = 0; next < many.length + 1; next++) {
    while (open.length <= next) await setImmediate();
    open[next]?.();
  }
  await Promise.all(many);
});

test("a read that waits for its turn ends with its request", async () => {
  const { ask } = await setup(() => new Promise(() => {}), 2);
  ask().catch(() => {});
  const leaving = new AbortController();
  const waiting = ask("a", leaving.signal);
  leaving.abort(new Error("the caller has left"));
  await expect(waiting).rejects.toThrow("the caller has left");
});
