import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { joinWaiters, Waiters } from "../../../src/resilience/waiters.js";

function createWaiters(...callers: readonly string[]): Waiters {
  const waiters = new Waiters();
  for (const caller of callers) waiters.add(caller);
  return waiters;
}

describe("waiters", () => {
  test("report each caller once, however often it waits", () => {
    const waiters = createWaiters("a");
    const seen: string[] = [];
    const observer = {
      onJoin: (caller: string) => void seen.push(`+${caller}`),
      onLeave: (caller: string) => void seen.push(`-${caller}`),
    };
    waiters.observe(observer);
    for (const caller of ["a", "b", "b"]) waiters.add(caller);
    for (const caller of ["b", "b", "a"]) waiters.remove(caller);
    waiters.unobserve(observer);
    waiters.add("c");
    expect(seen).toEqual(["+b", "-b"]);
  });

  test("have the callers of a group for as long as they wait there", () => {
    const waiters = createWaiters("a");
    const group = createWaiters("b", "c");
    const leave = joinWaiters(waiters, { caller: "", signal: group.signal, waiters: group });
    group.add("d");
    group.remove("b");
    expect([...waiters]).toEqual(["a", "c", "d"]);
    leave();
    group.add("e");
    expect([...waiters]).toEqual(["a"]);
  });

  test("abort their work when everything is closed, and leave no listener there", () => {
    const closing = new AbortController();
    const [closed, done] = [new Waiters(closing.signal), new Waiters(closing.signal)];
    done.close();
    closing.abort();
    expect([closed.signal.aborted, new Waiters(closing.signal).signal.aborted]).toEqual([true, true]);
    expect(getEventListeners(closing.signal, "abort")).toEqual([]);
  });
});
