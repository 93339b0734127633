import { describe, expect, test } from "vitest";
import { RequestContext } from "../../../../src/http/request/request-context.js";
import type { CallContext, Operation } from "../../../../src/operations/operation.js";
import { FairQuota } from "../../../../src/resilience/fair-quota.js";
import { FairScheduler } from "../../../../src/resilience/fair-scheduler.js";

interface Setup {
  readonly maxTimeoutMs?: number;
  /** Slots of calls that wait; half of them for one caller. */
  readonly slots?: number;
}

/** Returns a function that runs an operation in a call of its own. */
function setup({ maxTimeoutMs = 1_000, slots = 100 }: Setup = {}) {
  const options = {
    log() {},
    onInternalError() {},
    trustProxy: false,
    eventLoop: new FairScheduler(),
    maxTimeoutMs,
    pendingCalls: new FairQuota(() => slots),
  };
  return <Response>(
    operation: Operation<null, Response>,
    { timeoutMs, remoteAddress }: { readonly timeoutMs?: number; readonly remoteAddress?: string } = {},
  ) => new RequestContext({}, { remoteAddress }, options).run(operation, null, timeoutMs);
}
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

describe("the deadline of a call", () => {
  test("passes responses and errors through", async () => {
    const run = setup();
    expect(await run(async () => 2)).toBe(2);
    const failing = run(async () => {
      throw new Error("mine");
    });
    await expect(failing).rejects.toThrow("mine");
  });

  test.each([
    ["an operation that hangs", 20, undefined],
    ["it after the caller's timeout if that is shorter", 60_000, 20],
    ["it after the configured maximum if the caller's timeout is longer", 20, 60_000],
  ])("ends %s, and fires its signal", async (_, maxTimeoutMs, timeoutMs) => {
    const { operation, signals } = createHangingOperation();
    const call = setup({ maxTimeoutMs })(operation, timeoutMs === undefined ? {} : { timeoutMs });
    await expect(call).rejects.toMatchObject(deadlineExceeded);
    expect(signals[0]?.aborted).toBe(true);
  });

  test.each([
    [undefined, 10_000],
    [400, 400],
    [60_000, 10_000],
  ])("for a timeout of %s ms is %i ms", (timeoutMs, expectedMs) => {
    const readRemaining: Operation<null, number> = (_, context) => context.remainingMs();
    const remainingMs = setup({ maxTimeoutMs: 10_000 })(readRemaining, timeoutMs === undefined ? {} : { timeoutMs });
    expect(remainingMs).toBeLessThanOrEqual(expectedMs);
    expect(remainingMs).toBeGreaterThan(expectedMs - 300);
  });

  test("reports DEADLINE_EXCEEDED even if the operation rejects because of the signal", async () => {
    const operation = (_: null, { signal }: CallContext) =>
      new Promise<string>((_resolve, reject) => signal.addEventListener("abort", () => reject(new Error("aborted"))));
    await expect(setup({ maxTimeoutMs: 20 })(operation)).rejects.toMatchObject(deadlineExceeded);
  });

  test("returns a synchronous response synchronously, and none after the deadline", () => {
    const run = setup();
    expect(run(() => 2)).toBe(2);
    expect(() => run(() => 1, { timeoutMs: 0 })).toThrow("the deadline passed before the call arrived");
  });

  test("fires the signal when a synchronous operation returns or throws", () => {
    const run = setup();
    const signals: AbortSignal[] = [];
    const recordSignal = (_: null, { signal }: CallContext) => signals.push(signal);
    run(recordSignal);
    const failing = (_: null, context: CallContext) => {
      recordSignal(null, context);
      throw new Error("mine");
    };
    expect(() => run(failing)).toThrow("mine");
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  });

  test("limits the waiting calls of all operations together, but not synchronous ones", async () => {
    const run = setup({ maxTimeoutMs: 20, slots: 4 });
    const { operation, signals } = createHangingOperation();
    const [one, two] = [1, 2].map(() => run(operation));
    expect([one, two].every((call) => call instanceof Promise)).toBe(true);
    expect(() => run(operation)).toThrow(expect.objectContaining({ reason: "OVERLOADED", retryAfterSeconds: 1 }));
    // The rejected call is aborted.
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, false, true]);
    expect(run(() => 2)).toBe(2);
    const other = run(operation, { remoteAddress: "192.0.2.1" });
    expect(other).toBeInstanceOf(Promise);
    for (const call of [one, two, other]) await expect(call).rejects.toMatchObject(deadlineExceeded);
  });

  test.each([
    ["succeeds", () => Promise.resolve(1)],
    ["fails", () => Promise.reject(new Error("mine"))],
    ["times out", () => new Promise<number>(() => {})],
  ])("releases the slot when a call %s", async (_, operation) => {
    const run = setup({ maxTimeoutMs: 20, slots: 2 });
    for (let turn = 0; turn < 3; turn += 1) await Promise.resolve(run(operation)).catch(() => {});
    const last = run(operation);
    expect(last).toBeInstanceOf(Promise);
    await Promise.resolve(last).catch(() => {});
  });

  test("causes no unhandled rejection when a rejected call fails later", async () => {
    const run = setup({ slots: 0 });
    expect(() => run(async () => Promise.reject(new Error("mine")))).toThrow("too many calls are waiting here");
    await new Promise((resolve) => setImmediate(resolve));
  });
});
