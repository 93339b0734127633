import { describe, expect, test, vi } from "vitest";
import { BlockAgeMonitor, type StallEvent } from "../../../../src/chain/heads/block-age-monitor.js";
import type { ClockEstimate } from "../../../../src/chain/heads/chain-clock.js";
import { STATE_SOURCE } from "../../../../src/chain/heads/head-tracker.js";

const MINUTE = 60_000;
const START_MS = 1_795_000_000_000;

/** A monitor of chains with a limit of two minutes, and a time that passes by hand. */
function setup() {
  /** The right time, and what the clocks of this machine show beside it. */
  const time = { ms: START_MS, wallOffsetMs: 0, suspendedMs: 0 };
  const now = (): number => time.ms + time.wallOffsetMs;
  const monotonicNow = (): number => time.ms - START_MS - time.suspendedMs;
  const limit = { maxBlockAgeMs: 2 * MINUTE, blockTimeMs: 2_000 };
  const names = ["polygon", "base", "optimism"];
  const onStall = vi.fn<(event: StallEvent) => void>();
  const onClock = vi.fn<(estimate: ClockEstimate) => void>();
  const limits = { mainnet: new Map(names.map((name) => [name, limit])) };
  const monitor = new BlockAgeMonitor({ limits, clocks: { now, monotonicNow }, onStall, onClock });
  /** Begins a read of a block of this age, and returns a function that ends it. */
  function beginRead(chain: string, ageMs: number, source = STATE_SOURCE): () => void {
    const [head, readAt] = [{ number: 1, timestamp: (time.ms - ageMs) / 1000 }, monotonicNow()];
    return () => monitor.getHeadTracker("mainnet", chain).record(source, head, readAt);
  }
  return {
    ...{ monitor, time, onStall, onClock, beginRead },
    read: (...args: Parameters<typeof beginRead>) => beginRead(...args)(),
    listStalled: () => names.filter((chain) => monitor.findStalled("mainnet", chain) !== undefined),
    /** Reads all chains every two seconds; those in `still` get no new blocks. */
    run(ms: number, still: readonly string[] = []) {
      const stopped = new Map(still.map((chain) => [chain, time.ms]));
      for (const end = time.ms + ms; time.ms < end; ) {
        time.ms += 2_000;
        for (const chain of names) beginRead(chain, time.ms - (stopped.get(chain) ?? time.ms - 500))();
      }
    },
  };
}

test("a chain is stalled from its limit on, until it has a new block", () => {
  const { run, time, read, monitor, listStalled, onStall } = setup();
  run(2 * MINUTE, ["polygon"]);
  expect(listStalled()).toEqual([]);
  run(2_000, ["base"]);
  expect(monitor.stalledCount()).toBe(0);
  read("polygon", 2 * MINUTE + 1_000);
  expect(monitor.findStalled("mainnet", "polygon")).toEqual({
    timestamp: (time.ms - 2 * MINUTE - 1_000) / 1000,
    ageMs: 2 * MINUTE + 1_000,
  });
  expect(monitor.stalledCount()).toBe(1);
  expect(listStalled()).toEqual(["polygon"]);
  read("polygon", 1_000);
  expect(listStalled()).toEqual([]);
  expect(onStall.mock.calls.map(([{ chain, block }]) => [chain, block !== undefined])).toEqual([
    ["polygon", true],
    ["polygon", false],
  ]);
});

test("a chain is stalled within its limit while it is read, also if all are", () => {
  const { run, listStalled } = setup();
  run(2 * MINUTE + 2_000, ["polygon"]);
  expect(listStalled()).toEqual(["polygon"]);
  const others = setup();
  others.run(3 * MINUTE, ["polygon", "base", "optimism"]);
  expect(others.monitor.stalledCount()).toBe(3);
});

describe("blocks of several endpoints", () => {
  test("the newest counts", () => {
    const { read, listStalled } = setup();
    read("polygon", 10 * MINUTE, "a");
    expect(listStalled()).toEqual(["polygon"]);
    read("polygon", 1_000, "b");
    expect(listStalled()).toEqual([]);
    read("polygon", 10 * MINUTE, "a");
    expect(listStalled()).toEqual([]);
  });

  test("a block from the future does not hide that the chain is stalled", () => {
    const { read, listStalled } = setup();
    read("polygon", -10 * MINUTE, "liar");
    read("polygon", 10 * MINUTE, "honest");
    expect(listStalled()).toEqual(["polygon"]);
  });

  test("chain state of an old block is refused even if an endpoint has a newer one", () => {
    const { read, time, listStalled } = setup();
    read("polygon", 1_000, "a");
    read("polygon", 10 * MINUTE);
    expect(listStalled()).toEqual(["polygon"]);
    // Quotes are not asked for any more.
    time.ms += 11_000;
    read("polygon", 1_000, "a");
    expect(listStalled()).toEqual([]);
  });

  test("reads that end in another order than they began do not set the time back", () => {
    const { beginRead, time, listStalled } = setup();
    const early = beginRead("polygon", 3 * MINUTE);
    time.ms += 1_000;
    beginRead("polygon", 1_000)();
    early();
    expect(listStalled()).toEqual([]);
  });
});

describe("a wrong clock", () => {
  test("is reported once", () => {
    const { time, run, monitor, onClock } = setup();
    time.wallOffsetMs = 10 * MINUTE;
    run(5 * MINUTE);
    expect(Math.abs(monitor.clock().offsetMs + 10 * MINUTE)).toBeLessThan(1_000);
    expect(onClock).toHaveBeenCalledOnce();
  });

  test("refuses nothing, whether it is slow or fast, and is right at once when it is set right", () => {
    const { time, run, monitor } = setup();
    time.wallOffsetMs = -10 * MINUTE;
    run(MINUTE);
    expect(monitor.clock().evidence).toBe("blocks");
    time.wallOffsetMs = 10 * MINUTE;
    run(5 * MINUTE);
    expect([monitor.stalledCount(), monitor.clock().evidence]).toEqual([0, "blocks"]);
    time.wallOffsetMs = 0;
    run(4_000);
    expect([monitor.stalledCount(), monitor.clock().evidence]).toEqual([0, undefined]);
  });

  test("does not hide a chain that is stalled", () => {
    const { time, run, listStalled } = setup();
    time.wallOffsetMs = 10 * MINUTE;
    run(3 * MINUTE, ["polygon"]);
    expect(listStalled()).toEqual(["polygon"]);
  });

  test("does not change the age of a block", () => {
    const { time, run, monitor } = setup();
    time.wallOffsetMs = 10 * MINUTE;
    run(2_000);
    const block = { timestamp: (time.ms - 3 * MINUTE) / 1000, readAt: time.ms - START_MS };
    expect(Math.abs(monitor.getAgeMs(block) - 3 * MINUTE)).toBeLessThan(1_000);
    expect(monitor.isTooOld("mainnet", "polygon", block)).toBe(true);
  });

  test("makes a read meaningless that began before it was set", () => {
    const { time, beginRead, read, listStalled } = setup();
    time.wallOffsetMs = 10 * MINUTE;
    read("base", 1_000);
    time.ms += 100;
    const inFlight = beginRead("polygon", 1_000);
    time.ms += 100;
    time.wallOffsetMs = 0;
    read("base", 1_000);
    inFlight();
    expect(listStalled()).toEqual([]);
  });

  test.each([20 * MINUTE, -20 * MINUTE])("by %i ms does not keep the right time from being told", (offset) => {
    const { read, monitor, time } = setup();
    time.wallOffsetMs = offset;
    // The clock was wrong from the start: that is no jump.
    read("polygon", 500);
    time.ms += 2_000;
    read("base", 500);
    read("optimism", 500);
    expect(Math.abs(monitor.now() - time.ms)).toBeLessThanOrEqual(1_000);
    time.ms += 10 * MINUTE;
    expect(Math.abs(monitor.now() - time.ms)).toBeLessThanOrEqual(1_000);
    // Once the clock is set, it is believed.
    time.wallOffsetMs = 0;
    expect(monitor.now()).toBe(time.ms);
  });
});

describe("a machine that was suspended", () => {
  // The monotonic clock counts the time between SIGSTOP and SIGCONT.
  test.each([60 * MINUTE, 0])("refuses nothing before it has read again (%i ms not counted)", (suspendedMs) => {
    const { time, run, beginRead, monitor, listStalled } = setup();
    run(MINUTE);
    const inFlight = beginRead("polygon", 1_000);
    time.ms += 60 * MINUTE;
    time.suspendedMs = suspendedMs;
    expect(monitor.stalledCount()).toBe(0);
    inFlight();
    run(4_000);
    expect(monitor.stalledCount()).toBe(0);
    run(3 * MINUTE, ["polygon"]);
    expect(listStalled()).toEqual(["polygon"]);
  });

  test("judges a block by the time after it, and none that was read before", () => {
    const { time, monitor } = setup();
    const early = { timestamp: (time.ms - 1_000) / 1000, readAt: time.ms - START_MS };
    time.ms += 60 * MINUTE;
    time.suspendedMs = 60 * MINUTE - 1_000;
    const late = { ...early, readAt: time.ms - START_MS - time.suspendedMs };
    const isTooOld = (block: typeof early): boolean => monitor.isTooOld("mainnet", "polygon", block);
    expect([isTooOld(late), isTooOld(early)]).toEqual([true, false]);
  });
});

test("a chain without a limit is never stalled", () => {
  const { monitor } = setup();
  const heads = monitor.getHeadTracker("goerli", "optimism");
  heads.record(STATE_SOURCE, { number: 1, timestamp: 0 }, 0);
  const block = { timestamp: 0, readAt: 0 };
  expect([monitor.stalledCount(), monitor.isTooOld("goerli", "optimism", block)]).toEqual([0, false]);
  expect(heads.needsRead(0)).toBe(false);
});

// One read of each chain, of a block of this age in seconds.
test.each<[string, Record<string, number>, number, string[]]>([
  ["nothing, of chains that are well", { a: 2, b: 12, c: 1 }, 0, []],
  ["two chains that look equally old", { a: 600, b: 612 }, 600, []],
  ["two chains in the future", { a: -600, b: -590 }, -590, []],
  ["not one chain alone: nobody knows whether it is stalled", { a: 600 }, 0, ["a"]],
  ["not one of two chains", { a: 600, b: 2 }, 0, ["a"]],
  ["not two chains of different ages", { a: 600, b: 900 }, 0, ["a", "b"]],
  ["the majority, and one chain is stalled beside that", { a: 600, b: 605, c: 900 }, 605, ["c"]],
  ["not a minority", { a: 600, b: 605, c: 1, d: 2, e: 3 }, 0, ["a", "b"]],
  ["not an age that chains reach", { a: 59, b: 59 }, 0, []],
])("what tells that the clock is wrong: %s", (_, ages, slowSeconds, stalled) => {
  const chains = Object.keys(ages);
  const limits = { mainnet: new Map(chains.map((chain) => [chain, { maxBlockAgeMs: 2 * MINUTE, blockTimeMs: 1 }])) };
  const monitor = new BlockAgeMonitor({ limits, clocks: { now: () => START_MS, monotonicNow: () => 0 } });
  for (const [chain, age] of Object.entries(ages))
    monitor.getHeadTracker("mainnet", chain).record(STATE_SOURCE, { number: 1, timestamp: START_MS / 1000 - age }, 0);
  expect(chains.filter((chain) => monitor.findStalled("mainnet", chain) !== undefined)).toEqual(stalled);
  expect(monitor.clock().offsetMs / 1000 + slowSeconds).toBe(0);
});
