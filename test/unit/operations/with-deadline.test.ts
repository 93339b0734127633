import { describe, expect, test } from "vitest";
import type { CallContext } from "../../../src/operations/operation.js";
import { withDeadline } from "../../../src/operations/with-deadline.js";
import { FairQuota } from "../../../src/resilience/fair-quota.js";
import { createCallContext } from "./call-context.js";

const createOptions = (maxTimeoutMs: number, capacity = 100) => ({
  maxTimeoutMs,
  callerQuota: new FairQuota(() => capacity),
});
const deadlineExceeded = { reason: "DEADLINE_EXCEEDED" };

/** An operation that never responds and ignores its signal. */
function createHangingOperation() {
  const signals: AbortSignal[] = [];
  const operation = (_: null, { signal }: CallContext) => {
    signals.push(signal);
    return new Promise<string>(() => {});
  };
  return { operation, signals };
}

describe("withDeadline", () => {
  test("passes responses and errors through", async () => {
    expect(await withDeadline(async (x: number) => x + 1, createOptions(1000))(1, createCallContext())).toBe(2);
    const failing = withDeadline(async () => {
      throw new Error("mine");
    }, createOptions(1000));
    await expect(failing(null, createCallContext())).rejects.toThrow("mine");
  });

  test.each([
    ["an operation that hangs", 20, undefined],
    ["it after the caller's timeout if that is shorter", 60_000, 20],
    ["it after the configured maximum if the caller's timeout is longer", 20, 60_000],
  ])("ends %s, and fires its signal", async (_, maxTimeoutMs, timeoutMs) => {
    const { operation, signals } = createHangingOperation();
    const call = withDeadline(operation, createOptions(maxTimeoutMs))(null, createCallContext({ timeoutMs }));
    await expect(call).rejects.toMatchObject(deadlineExceeded);
    expect(signals[0]?.aborted).toBe(true);
  });

  test("reports DEADLINE_EXCEEDED even if the operation rejects because of the signal", async () => {
    const operation = (_: null, { signal }: CallContext) =>
      new Promise<string>((_resolve, reject) => signal.addEventListener("abort", () => reject(new Error("aborted"))));
    await expect(withDeadline(operation, createOptions(20))(null, createCallContext())).rejects.toMatchObject(
      deadlineExceeded,
    );
  });

  test("returns a synchronous response synchronously, without reading the signal", () => {
    const context = createCallContext();
    Object.defineProperty(context, "signal", {
      get: () => {
        throw new Error("the signal was read");
      },
    });
    expect(withDeadline((x: number) => x + 1, createOptions(1000))(1, context)).toBe(2);
    expect(() => withDeadline(() => 1, createOptions(1000))(null, createCallContext({ timeoutMs: 0 }))).toThrow(
      "the deadline passed before the call arrived",
    );
  });

  test("fires the signal when a synchronous operation returns or throws", () => {
    const signals: AbortSignal[] = [];
    const recordSignal = (_: null, { signal }: CallContext) => signals.push(signal);
    withDeadline(recordSignal, createOptions(1000))(null, createCallContext());
    const failing = (_: null, context: CallContext) => {
      recordSignal(null, context);
      throw new Error("mine");
    };
    expect(() => withDeadline(failing, createOptions(1000))(null, createCallContext())).toThrow("mine");
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  });

  test("limits the waiting calls of all operations together, but not synchronous ones", async () => {
    const options = createOptions(20, 4);
    const { operation, signals } = createHangingOperation();
    const [waiting, synchronous] = [withDeadline(operation, options), withDeadline((x: number) => x + 1, options)];
    const [one, two] = [1, 2].map(() => waiting(null, createCallContext()));
    expect([one, two].every((call) => call instanceof Promise)).toBe(true);
    expect(() => waiting(null, createCallContext())).toThrow(
      expect.objectContaining({ reason: "OVERLOADED", retryAfterSeconds: 1 }),
    );
    // The rejected call is aborted.
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, false, true]);
    expect(synchronous(1, createCallContext())).toBe(2);
    const other = waiting(null, createCallContext({ caller: "192.0.2.1" }));
    expect(other).toBeInstanceOf(Promise);
    for (const call of [one, two, other]) await expect(call).rejects.toMatchObject(deadlineExceeded);
  });

  test.each([
    ["succeeds", () => Promise.resolve(1)],
    ["fails", () => Promise.reject(new Error("mine"))],
    ["times out", () => new Promise<number>(() => {})],
  ])("releases the slot when a call %s", async (_, operation) => {
    const call = withDeadline(operation, createOptions(20, 2));
    for (let turn = 0; turn < 3; turn += 1) await Promise.resolve(call(null, createCallContext())).catch(() => {});
    const last = call(null, createCallContext());
    expect(last).toBeInstanceOf(Promise);
    await Promise.resolve(last).catch(() => {});
  });

  test("causes no unhandled rejection when a rejected call fails later", async () => {
    const failing = withDeadline(async () => Promise.reject(new Error("mine")), createOptions(1000, 0));
    expect(() => failing(null, createCallContext())).toThrow("too many calls are waiting here");
    await new Promise((resolve) => setImmediate(resolve));
  });
});
