import { describe, expect, test } from "vitest";
import { createStaleWhileRevalidateCache } from "../../../src/resilience/stale-while-revalidate.js";

function setup() {
  let time = 1_000_000;
  const reads: { resolve: (value: string) => void; reject: (error: Error) => void; signal: AbortSignal }[] = [];
  const errors: unknown[] = [];
  const document = createStaleWhileRevalidateCache<string>({
    load: (signal) => new Promise((resolve, reject) => reads.push({ resolve, reject, signal })),
    now: () => time,
    freshMs: 100,
    staleMs: 1000,
    errorTtlMs: 10,
    onError: (error) => errors.push(error),
  });
  const latest = () => {
    const read = reads.at(-1);
    if (read === undefined) throw new Error("nothing was read");
    return read;
  };
  return { document, reads, errors, latest, pass: (ms: number) => (time += ms) };
}

describe("a remote document", () => {
  test("is read once for all who ask at once, and again when it is old", async () => {
    const { document, reads, latest, pass } = setup();
    const both = Promise.all([document.get(), document.get()]);
    latest().resolve("one");
    expect(await both).toEqual([
      { value: "one", readAt: 1_000_000 },
      { value: "one", readAt: 1_000_000 },
    ]);
    pass(99);
    await document.get();
    expect(reads).toHaveLength(1);
    pass(900);
    const again = document.get();
    expect(reads).toHaveLength(2);
    latest().resolve("two");
    // It is 999 ms old: too old in one more to be given out while it is read again.
    expect((await again).value).toBe("one");
    pass(1000);
    const waiting = document.get();
    latest().resolve("three");
    expect((await waiting).value).toBe("three");
  });

  test("keeps the last good value when a read fails, and lets the source rest", async () => {
    const { document, reads, errors, latest, pass } = setup();
    const first = document.get();
    latest().resolve("good");
    await first;
    pass(100);
    expect(await document.get()).toEqual({ value: "good", readAt: 1_000_000 });
    latest().reject(new Error("down"));
    await expect.poll(() => errors.length).toBe(1);
    await document.get();
    expect(reads).toHaveLength(2);
    pass(1000);
    // However old it is: the source may hang now, and nobody is to wait for that.
    expect((await document.get()).value).toBe("good");
    expect(reads).toHaveLength(3);
    latest().resolve("better");
    await expect.poll(async () => (await document.get()).value).toBe("better");
  });

  test("fails while there has never been a good value, and recovers", async () => {
    const { document, latest, pass } = setup();
    const first = document.get();
    latest().reject(new Error("down"));
    await expect(first).rejects.toThrow("down");
    await expect(document.get()).rejects.toThrow("down");
    pass(10);
    const again = document.get();
    latest().resolve("up");
    expect((await again).value).toBe("up");
  });

  test("aborts its read when closed", () => {
    const { document, latest } = setup();
    document.get().catch(() => {});
    document.close();
    expect(latest().signal.aborted).toBe(true);
  });

  test("is peeked at without a wait, and read again all the same", async () => {
    const { document, reads, latest, pass } = setup();
    expect(document.peek()).toBeUndefined();
    expect(reads).toHaveLength(1);
    latest().resolve("one");
    const reading = await document.get();
    expect(document.peek()).toBe(reading);
    pass(500);
    expect(document.peek()).toBe(reading);
    expect(reads).toHaveLength(2);
    pass(500);
    // Too old to be given out while it is read again.
    expect(document.peek()).toBeUndefined();
    latest().reject(new Error("gone"));
    await document.get();
    // It cannot be had newer: the last good one stands.
    expect(document.peek()).toBe(reading);
  });
});

test("the health of a document is what is known of it last, and asks nobody", async () => {
  const { document, reads, latest, pass } = setup();
  expect([document.health(), document.peekStale()]).toEqual([{ state: "unknown", ageMs: undefined }, undefined]);
  expect(reads).toHaveLength(0);
  const first = document.get();
  latest().resolve("one");
  await first;
  pass(70);
  expect(document.health()).toEqual({ state: "ok", ageMs: 70 });
  pass(1_000);
  const second = document.get();
  latest().reject(new Error("gone"));
  await second;
  expect(document.health()).toEqual({ state: "failing", ageMs: 1_070 });
  expect(document.peekStale()).toEqual({ value: "one", readAt: 1_000_000 });
});
