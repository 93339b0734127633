import { describe, expect, test } from "vitest";
import type { CallContext } from "../../../src/operations/operation.js";
import { withDeadline } from "../../../src/operations/with-deadline.js";

const contextOf = (more: Partial<CallContext> = {}): CallContext => ({
  requestId: "r",
  caller: "127.0.0.1",
  signal: new AbortController().signal,
  timeoutMs: undefined,
  note: () => {},
  ...more,
});
const late = { reason: "DEADLINE_EXCEEDED" };

/** Never answers, whatever its signal says. */
function stuck() {
  const signals: AbortSignal[] = [];
  const operation = (_: null, { signal }: CallContext) => {
    signals.push(signal);
    return new Promise<string>(() => {});
  };
  return { operation, signals };
}

describe("the deadline of an operation", () => {
  test("passes an answer and an error through", async () => {
    expect(await withDeadline(async (x: number) => x + 1, 1000)(1, contextOf())).toBe(2);
    const failing = withDeadline(async () => {
      throw new Error("mine");
    }, 1000);
    await expect(failing(null, contextOf())).rejects.toThrow("mine");
  });

  test("ends an operation that does not end by itself, and fires its signal", async () => {
    const { operation, signals } = stuck();
    await expect(withDeadline(operation, 20)(null, contextOf())).rejects.toMatchObject(late);
    expect(signals[0]?.aborted).toBe(true);
  });

  test("is the caller's where that is shorter", async () => {
    const { operation } = stuck();
    await expect(withDeadline(operation, 60_000)(null, contextOf({ timeoutMs: 20 }))).rejects.toMatchObject(late);
  });

  test("is ours where the caller's is longer", async () => {
    const { operation } = stuck();
    await expect(withDeadline(operation, 20)(null, contextOf({ timeoutMs: 60_000 }))).rejects.toMatchObject(late);
  });

  test("says so even when the operation itself fails of the signal", async () => {
    const operation = (_: null, { signal }: CallContext) =>
      new Promise<string>((_resolve, reject) => signal.addEventListener("abort", () => reject(new Error("aborted"))));
    await expect(withDeadline(operation, 20)(null, contextOf())).rejects.toMatchObject(late);
  });

  test("the signal fires when the caller leaves", async () => {
    const { operation, signals } = stuck();
    const caller = new AbortController();
    withDeadline(operation, 50)(null, contextOf({ signal: caller.signal })).catch(() => {});
    expect(signals[0]?.aborted).toBe(false);
    caller.abort();
    expect(signals[0]?.aborted).toBe(true);
  });
});
