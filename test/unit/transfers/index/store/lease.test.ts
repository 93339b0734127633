import { expect, test, vi } from "vitest";
import {
  type Lease,
  type LeaseHolder,
  type Leases,
  runWithLease,
} from "../../../../../src/transfers/index/store/lease.js";

/** Grants what the list says, one entry per attempt. */
function createScriptedLeases(attempts: readonly (Lease | LeaseHolder | Error)[]) {
  let attempt = 0;
  const leases: Leases = {
    async acquire() {
      const outcome = attempts[Math.min(attempt++, attempts.length - 1)];
      if (outcome === undefined || outcome instanceof Error) throw outcome ?? new Error("no attempt");
      return outcome;
    },
    waitForRelease: async () => {},
  };
  return { leases, attempts: () => attempt };
}

const createOptions = () => ({
  sleep: async () => {},
  onLeaseHeld: vi.fn(),
  onError: vi.fn(),
  signal: new AbortController().signal,
});

test("work begins again when its lease is lost, and only then", async () => {
  const lost = new AbortController();
  const release = vi.fn();
  const first: Lease = { lost: lost.signal, release };
  const second: Lease = { lost: new AbortController().signal, release };
  const { leases, attempts } = createScriptedLeases([
    first,
    { pid: 7, host: "other" },
    { pid: 7, host: "other" },
    second,
  ]);
  const options = createOptions();
  const signals: AbortSignal[] = [];
  await runWithLease(leases, "follow", options, async (signal) => {
    signals.push(signal);
    if (signals.length > 1) return;
    lost.abort();
    expect(signal.aborted).toBe(true);
  });
  expect(signals).toHaveLength(2);
  expect(attempts()).toBe(4);
  expect(release).toHaveBeenCalledTimes(2);
  expect(options.onLeaseHeld).toHaveBeenCalledExactlyOnceWith({ pid: 7, host: "other" });
});

test("work ends with the signal of the process, and releases its lease", async () => {
  const release = vi.fn();
  const { leases } = createScriptedLeases([{ lost: new AbortController().signal, release }]);
  const stopping = new AbortController();
  await runWithLease(leases, "follow", { ...createOptions(), signal: stopping.signal }, async (signal) => {
    stopping.abort();
    expect(signal.aborted).toBe(true);
  });
  expect(release).toHaveBeenCalledOnce();
});

test("a failure to read leases is reported again after they could be read", async () => {
  const held: LeaseHolder = { pid: 7 };
  const lease: Lease = { lost: new AbortController().signal, release: () => {} };
  const failure = new Error("unreachable");
  const { leases } = createScriptedLeases([failure, failure, held, failure, lease]);
  const options = createOptions();
  await runWithLease(leases, "follow", options, async () => {});
  expect(options.onError).toHaveBeenCalledTimes(2);
  expect(options.onLeaseHeld).toHaveBeenCalledOnce();
});
