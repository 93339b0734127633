import { getEventListeners } from "node:events";
import { describe, expect, test, vi } from "vitest";
import { createAbortScope, isTimedOut, raceAbort } from "../../../src/resilience/abort-scope.js";
import { FairSemaphore } from "../../../src/resilience/fair-semaphore.js";
import { flushEventLoop } from "../../support/stubs/transfer-fixtures.js";

test("raceAbort settles like the work and leaves no listener", async () => {
  const { signal } = new AbortController();
  expect(await raceAbort(Promise.resolve(7), signal)).toBe(7);
  await expect(raceAbort(Promise.reject(new Error("no")), signal)).rejects.toThrow("no");
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
});

test("raceAbort rejects with the signal's reason, also when it has already aborted", async () => {
  const controller = new AbortController();
  const waiting = raceAbort(new Promise(() => {}), controller.signal);
  controller.abort(new Error("left"));
  await expect(waiting).rejects.toThrow("left");
  await expect(raceAbort(new Promise(() => {}), controller.signal)).rejects.toThrow("left");
});

const fullSemaphore = new FairSemaphore(0);
test.each([
  ["work", (signal: AbortSignal) => raceAbort(new Promise(() => {}), signal)],
  ["abort scopes", async (signal: AbortSignal) => createAbortScope(signal)],
  ["waiting callers", (signal: AbortSignal) => fullSemaphore.acquire("", signal, async () => {})],
])("Node.js does not take twenty listeners of %s for a leak", async (_, listen) => {
  const [controller, warn] = [new AbortController(), vi.fn()];
  process.on("warning", warn);
  try {
    for (let count = 0; count < 20; count++) listen(controller.signal).catch(() => {});
    expect(getEventListeners(controller.signal, "abort")).toHaveLength(20);
    await flushEventLoop();
    expect(warn).not.toHaveBeenCalled();
  } finally {
    process.off("warning", warn);
    controller.abort();
  }
});

describe("an abort scope", () => {
  test("aborts with the reason of the outer signal", () => {
    const outer = new AbortController();
    const [early, late] = [createAbortScope(outer.signal), createAbortScope(AbortSignal.abort("gone"))];
    expect(early.signal.aborted).toBe(false);
    outer.abort("left");
    expect([early.signal.reason, late.signal.reason]).toEqual(["left", "gone"]);
    expect(isTimedOut(early.signal)).toBe(false);
  });

  test("aborts after its timeout", async () => {
    const scope = createAbortScope(new AbortController().signal, 1);
    await vi.waitFor(() => expect(scope.signal.aborted).toBe(true), { timeout: 60_000 });
    expect(isTimedOut(scope.signal)).toBe(true);
  });

  test("aborts on cancel and leaves no listener on the outer signal", () => {
    const { signal } = new AbortController();
    const scope = createAbortScope(signal, 60_000);
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    scope.cancel();
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
    expect([scope.signal.aborted, isTimedOut(scope.signal)]).toEqual([true, false]);
  });
});
