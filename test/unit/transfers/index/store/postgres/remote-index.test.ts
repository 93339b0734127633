import { expect, test, vi } from "vitest";
import { PostgresFailure } from "../../../../../../src/transfers/index/store/postgres/connection/failures.js";
import type { PostgresReader } from "../../../../../../src/transfers/index/store/postgres/postgres-reader.js";
import { createRemoteIndex } from "../../../../../../src/transfers/index/store/postgres/remote-index.js";

const NEVER = new AbortController().signal;

function setup(read: () => Promise<unknown>, poolSize = 4) {
  const monitor = { isAvailable: vi.fn(() => true), reportFailure: vi.fn() };
  const reader: PostgresReader = { read: read as PostgresReader["read"] };
  const remote = createRemoteIndex(reader, monitor, poolSize);
  return { monitor, ask: (caller = "a", signal = NEVER) => remote.read(() => 1, { caller, signal }) };
}

test("returns what the index knows", async () => {
  expect(await setup(async () => 7).ask()).toEqual({ value: 7 });
});

test("asks no server that is known to be away", async () => {
  const read = vi.fn(async () => 7);
  const { monitor, ask } = setup(read);
  monitor.isAvailable.mockReturnValue(false);
  expect(await ask()).toBeUndefined();
  expect(read).not.toHaveBeenCalled();
});

test("a failure of the server is reported, and is no failure of the lookup; an error of the query is", async () => {
  const failure = new PostgresFailure("ECONNRESET");
  const failing = setup(() => Promise.reject(failure));
  expect(await failing.ask()).toBeUndefined();
  expect(failing.monitor.reportFailure).toHaveBeenCalledExactlyOnceWith(failure);
  const ambiguous = setup(() => Promise.reject(new Error("ambiguous")));
  await expect(ambiguous.ask()).rejects.toThrow("ambiguous");
});

test("waits for a server that does not answer for a second", async () => {
  vi.useFakeTimers();
  try {
    const { monitor, ask } = setup(() => new Promise(() => {}));
    const answer = ask();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await answer).toBeUndefined();
    expect(monitor.reportFailure).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: "ETIMEDOUT" }));
  } finally {
    vi.useRealTimers();
  }
});

test("one caller takes half of the connections, however much it asks for", async () => {
  const open: (() => void)[] = [];
  const { ask } = setup(() => new Promise<void>((resolve) => void open.push(resolve)), 10);
  const many = Array.from({ length: 10_000 }, () => ask("greedy"));
  expect(open).toHaveLength(5);
  const other = ask("other");
  expect(open).toHaveLength(6);
  open[5]?.();
  await other;
  for (let next = 0; next < many.length + 1; next++) {
    await vi.waitFor(() => expect(open.length).toBeGreaterThan(next), { timeout: 60_000 });
    open[next]?.();
  }
  await Promise.all(many);
});

test("a read that waits for its turn ends with its request", async () => {
  const { ask } = setup(() => new Promise(() => {}), 2);
  void ask();
  const leaving = new AbortController();
  const waiting = ask("a", leaving.signal);
  leaving.abort(new Error("the caller has left"));
  await expect(waiting).rejects.toThrow("the caller has left");
});
