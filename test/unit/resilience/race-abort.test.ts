import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { raceAbort } from "../../../src/resilience/race-abort.js";

test("gives what the work comes to, and leaves no listener", async () => {
  const { signal } = new AbortController();
  expect(await raceAbort(Promise.resolve(7), signal)).toBe(7);
  await expect(raceAbort(Promise.reject(new Error("no")), signal)).rejects.toThrow("no");
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
});

test("ends with the signal's reason, whenever it fires", async () => {
  const controller = new AbortController();
  const waiting = raceAbort(new Promise(() => {}), controller.signal);
  controller.abort(new Error("left"));
  await expect(waiting).rejects.toThrow("left");
  await expect(raceAbort(new Promise(() => {}), controller.signal)).rejects.toThrow("left");
});
