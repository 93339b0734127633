import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { joinWaiters, Waiters } from "../../../src/resilience/waiters.js";

function createWaiters(...callers: readonly string[]): Waiters {
  const waiters = new Waiters();
  for (const caller of callers) waiters.add(caller);
  return waiters;
}

describe("waiters", () => {
  test("abort their work when the last one has left, and not before", () => {
    const waiters = createWaiters("a", "b", "a");
    waiters.remove("b");
    waiters.remove("a");
    expect([waiters.signal.aborted, [...waiters]]).toEqual([false, ["a"]]);
    waiters.remove("a");
    expect([waiters.signal.aborted, [...waiters]]).toEqual([true, []]);
  });

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

  test("abort their work at once when the last one of their only group leaves", () => {
    const waiters = createWaiters();
    const group = createWaiters("a");
    const leave = joinWaiters(waiters, { caller: "", signal: group.signal, waiters: group });
    group.remove("a");
    expect(waiters.signal.aborted).toBe(true);
    leave();
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
