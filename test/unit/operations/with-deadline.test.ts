import { describe, expect, test } from "vitest";
import type { CallContext } from "../../../src/operations/operation.js";
import { type DeadlineOptions, withDeadline } from "../../../src/operations/with-deadline.js";
import { createFairQuota } from "../../../src/resilience/fair-quota.js";

const contextOf = (more: Partial<CallContext> = {}): CallContext => ({
  requestId: "r",
  caller: "127.0.0.1",
  signal: new AbortController().signal,
  timeoutMs: undefined,
  addLogFields: () => {},
  setCachePolicy: () => {},
  setResponseMetadata: () => {},
  ...more,
});
const within = (maxTimeoutMs: number, most = 100): DeadlineOptions => ({
  maxTimeoutMs,
  callerQuota: createFairQuota(() => most),
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
    expect(await withDeadline(async (x: number) => x + 1, within(1000))(1, contextOf())).toBe(2);
    const failing = withDeadline(async () => {
      throw new Error("mine");
    }, within(1000));
    await expect(failing(null, contextOf())).rejects.toThrow("mine");
  });

  test("ends an operation that does not end by itself, and fires its signal", async () => {
    const { operation, signals } = stuck();
    await expect(withDeadline(operation, within(20))(null, contextOf())).rejects.toMatchObject(late);
    expect(signals[0]?.aborted).toBe(true);
  });

  test("is the caller's where that is shorter", async () => {
    const { operation } = stuck();
    await expect(withDeadline(operation, within(60_000))(null, contextOf({ timeoutMs: 20 }))).rejects.toMatchObject(
      late,
    );
  });

  test("is ours where the caller's is longer", async () => {
    const { operation } = stuck();
    await expect(withDeadline(operation, within(20))(null, contextOf({ timeoutMs: 60_000 }))).rejects.toMatchObject(
      late,
    );
  });

  test("says so even when the operation itself fails of the signal", async () => {
    const operation = (_: null, { signal }: CallContext) =>
      new Promise<string>((_resolve, reject) => signal.addEventListener("abort", () => reject(new Error("aborted"))));
    await expect(withDeadline(operation, within(20))(null, contextOf())).rejects.toMatchObject(late);
  });

  test("the signal fires when the caller leaves", async () => {
    const { operation, signals } = stuck();
    const caller = new AbortController();
    Promise.resolve(withDeadline(operation, within(50))(null, contextOf({ signal: caller.signal }))).catch(() => {});
    expect(signals[0]?.aborted).toBe(false);
    caller.abort();
    expect(signals[0]?.aborted).toBe(true);
  });

  test("an operation that answers at once is answered at once, without a signal", () => {
    const context = contextOf();
    Object.defineProperty(context, "signal", {
      get: () => {
        throw new Error("nobody asked for the signal");
      },
    });
    expect(withDeadline((x: number) => x + 1, within(1000))(1, context)).toBe(2);
    expect(() => withDeadline(() => 1, within(1000))(null, contextOf({ timeoutMs: 0 }))).toThrow("had passed");
  });

  test("the signal of one that answers at once fires with the answer, and of one that fails", () => {
    const signals: AbortSignal[] = [];
    const note = (_: null, { signal }: CallContext) => signals.push(signal);
    withDeadline(note, within(1000))(null, contextOf());
    const failing = (_: null, context: CallContext) => {
      note(null, context);
      throw new Error("mine");
    };
    expect(() => withDeadline(failing, within(1000))(null, contextOf())).toThrow("mine");
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  });

  test("what an operation says of its answer and for the log is passed on", () => {
    const said: unknown[] = [];
    const context = contextOf({
      addLogFields: (facts) => said.push(facts),
      setCachePolicy: (policy) => said.push(policy),
    });
    const operation = (_: null, { addLogFields, setCachePolicy, caller }: CallContext) => {
      addLogFields({ token: "ETH" });
      setCachePolicy("private");
      return caller;
    };
    expect(withDeadline(operation, within(1000))(null, context)).toBe("127.0.0.1");
    expect(said).toEqual([{ token: "ETH" }, "private"]);
  });

  test("has a place for so many who wait, of any operation; who is answered at once needs none", async () => {
    const rules = within(60_000, 4);
    const { operation, signals } = stuck();
    const [waiting, atOnce] = [withDeadline(operation, rules), withDeadline((x: number) => x + 1, rules)];
    const first = new AbortController();
    const [one, two] = [first, new AbortController()].map(({ signal }) => waiting(null, contextOf({ signal })));
    expect([one, two].every((each) => each instanceof Promise)).toBe(true);
    expect(() => waiting(null, contextOf())).toThrow(
      expect.objectContaining({ reason: "OVERLOADED", retryAfterSeconds: 1 }),
    );
    // What it had begun is broken off.
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, false, true]);
    expect(atOnce(1, contextOf())).toBe(2);
    expect(waiting(null, contextOf({ caller: "192.0.2.1" }))).toBeInstanceOf(Promise);
  });

  test.each([
    ["is answered", () => Promise.resolve(1)],
    ["fails", () => Promise.reject(new Error("mine"))],
    ["is late", () => new Promise<number>(() => {})],
  ])("gives the place back when a call %s", async (_, operation) => {
    const call = withDeadline(operation, within(20, 2));
    for (let turn = 0; turn < 3; turn += 1) await Promise.resolve(call(null, contextOf())).catch(() => {});
    const last = call(null, contextOf());
    expect(last).toBeInstanceOf(Promise);
    await Promise.resolve(last).catch(() => {});
  });

  test("leaves no failure without an ear of a call that found no place", async () => {
    const failing = withDeadline(async () => Promise.reject(new Error("mine")), within(1000, 0));
    expect(() => failing(null, contextOf())).toThrow("too many calls are waiting here");
    await new Promise((resolve) => setImmediate(resolve));
  });
});
