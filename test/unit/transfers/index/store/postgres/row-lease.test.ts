import { getEventListeners } from "node:events";
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { sleep } from "../../../../../../src/resilience/clock.js";
import { createRowLeases } from "../../../../../../src/transfers/index/store/postgres/row-lease.js";

function createLeases() {
  const pool = { query: async () => [] };
  return createRowLeases({ pool: pool as never, holder: "a", host: "h", pid: 1, now: () => 0, onReleased: () => {} });
}

test("what waits for leases leaves no listener when it is woken, and causes no warning", async () => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);
  process.on("warning", onWarning);
  const leases = createLeases();
  const { signal } = new AbortController();
  for (let round = 0; round < 3; round += 1) {
    const waits = Array.from({ length: 20 }, () => leases.waitForRelease(sleep, signal));
    expect(getEventListeners(signal, "abort")).toHaveLength(20);
    leases.wake();
    await Promise.all(waits);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  }
  // Warnings are reported in the next turn.
  await setImmediate();
  process.off("warning", onWarning);
  expect(warnings).toEqual([]);
});

test("a wait ends by itself, and when it is aborted", async () => {
  const leases = createLeases();
  const closing = new AbortController();
  const aborted = leases.waitForRelease((_, signal) => sleep(60_000, signal), closing.signal);
  await leases.waitForRelease(async () => {}, closing.signal);
  closing.abort();
  await aborted;
});
