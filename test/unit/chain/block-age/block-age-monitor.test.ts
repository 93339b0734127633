import { describe, expect, test, vi } from "vitest";
import { createBlockAgeMonitor, type StallEvent } from "../../../../src/chain/block-age/block-age-monitor.js";
import { STATE_SOURCE } from "../../../../src/chain/block-age/chain-history.js";
import type { ClockEstimate } from "../../../../src/chain/block-age/judge-block-ages.js";

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
  const monitor = createBlockAgeMonitor({ limits, clocks: { now, monotonicNow }, onStall, onClock });
  /** Begins a read of a block of this age, and returns a function that ends it. */
  function beginRead(chain: string, ageMs: number, source = STATE_SOURCE): () => void {
    const read = { source, timestamp: (time.ms - ageMs) / 1000, readAt: monotonicNow() };
    return () => monitor.recordHead("mainnet", chain, read);
  }
  return {
    ...{ monitor, time, onStall, onClock, beginRead },
    read: (...args: Parameters<typeof beginRead>) => beginRead(...args)(),
    /** A response whose header tells the right time. */
    receiveDate: (host: string) => monitor.recordDate(host, new Date(time.ms).toUTCString(), now()),
    isStalled: (chain: string) => monitor.findStalled("mainnet", chain) !== undefined,
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

test("a chain stands still from its limit on, until it has a new block", () => {
  const { run, time, read, monitor, isStalled, onStall } = setup();
  run(2 * MINUTE, ["polygon"]);
  expect(isStalled("polygon")).toBe(false);
  run(2_000, ["base"]);
  expect(monitor.stalledCount()).toBe(0);
  read("polygon", 2 * MINUTE + 1_000);
  expect(monitor.findStalled("mainnet", "polygon")).toEqual({
    timestamp: (time.ms - 2 * MINUTE - 1_000) / 1000,
    ageMs: 2 * MINUTE + 1_000,
  });
  expect(monitor.stalledCount()).toBe(1);
  expect(isStalled("base")).toBe(false);
  read("polygon", 1_000);
  expect(isStalled("polygon")).toBe(false);
  expect(onStall.mock.calls.map(([{ chain, block }]) => [chain, block !== undefined])).toEqual([
    ["polygon", true],
    ["polygon", false],
  ]);
});

test("is refused within its limit while it is read", () => {
  const { run, isStalled, monitor } = setup();
  run(2 * MINUTE + 2_000, ["polygon"]);
  expect([isStalled("polygon"), monitor.stalledCount()]).toEqual([true, 1]);
});

describe("blocks of several endpoints", () => {
  test("the newest counts", () => {
    const { read, isStalled } = setup();
    read("polygon", 10 * MINUTE, "a");
    expect(isStalled("polygon")).toBe(true);
    read("polygon", 1_000, "b");
    expect(isStalled("polygon")).toBe(false);
    read("polygon", 10 * MINUTE, "a");
    expect(isStalled("polygon")).toBe(false);
  });

  test("a block from the future does not hide that the chain stands still", () => {
    const { read, isStalled } = setup();
    read("polygon", -10 * MINUTE, "liar");
    read("polygon", 10 * MINUTE, "honest");
    expect(isStalled("polygon")).toBe(true);
  });

  test("chain state of an old block is refused even if an endpoint has a newer one", () => {
    const { read, time, isStalled } = setup();
    read("polygon", 1_000, "a");
    read("polygon", 10 * MINUTE);
    expect(isStalled("polygon")).toBe(true);
    // Quotes are not asked for any more.
    time.ms += 11_000;
    read("polygon", 1_000, "a");
    expect(isStalled("polygon")).toBe(false);
  });

  test("reads that end in another order than they began do not set the time back", () => {
    const { beginRead, time, isStalled } = setup();
    const early = beginRead("polygon", 3 * MINUTE);
    time.ms += 1_000;
    beginRead("polygon", 1_000)();
    early();
    expect(isStalled("polygon")).toBe(false);
  });
});

describe("a wrong clock", () => {
  test("refuses nothing where Date tells the right time, and is reported once", () => {
    const { time, receiveDate, run, monitor, onClock } = setup();
    time.wallOffsetMs = 10 * MINUTE;
    // The jump itself is seen with the first record.
    receiveDate("a");
    receiveDate("b");
    run(5 * MINUTE);
    expect(monitor.stalledCount()).toBe(0);
    expect(monitor.clock().evidence).toBe("date");
    expect(Math.abs(monitor.clock().offsetMs + 10 * MINUTE)).toBeLessThan(1_000);
    expect(onClock).toHaveBeenCalledOnce();
  });

  test("refuses nothing where only the blocks show it", () => {
    const { time, run, monitor } = setup();
    time.wallOffsetMs = -10 * MINUTE;
    run(MINUTE);
    expect(monitor.clock().evidence).toBe("blocks");
    time.wallOffsetMs = 10 * MINUTE;
    run(5 * MINUTE);
    expect([monitor.stalledCount(), monitor.clock().evidence]).toEqual([0, "blocks"]);
  });

  test("does not hide a chain that stands still", () => {
    const { time, receiveDate, run, isStalled, monitor } = setup();
    time.wallOffsetMs = 10 * MINUTE;
    receiveDate("a");
    receiveDate("a");
    run(3 * MINUTE, ["polygon"]);
    expect([isStalled("polygon"), monitor.stalledCount()]).toEqual([true, 1]);
  });

  test("does not change the age of a block", () => {
    const { time, receiveDate, monitor } = setup();
    time.wallOffsetMs = 10 * MINUTE;
    receiveDate("a");
    const block = { timestamp: (time.ms - 3 * MINUTE) / 1000, readAt: time.ms - START_MS };
    expect(Math.abs(monitor.getAgeMs(block) - 3 * MINUTE)).toBeLessThan(1_000);
    expect(monitor.isTooOld("mainnet", "polygon", block)).toBe(true);
  });

  test("that is set right is right at once", () => {
    const { time, run, monitor } = setup();
    time.wallOffsetMs = 10 * MINUTE;
    run(MINUTE);
    time.wallOffsetMs = 0;
    run(4_000);
    expect([monitor.stalledCount(), monitor.clock().evidence]).toEqual([0, undefined]);
  });
});

describe("a clock that is set", () => {
  test("makes what endpoints said about the time before meaningless", () => {
    const { time, receiveDate, read, isStalled, monitor } = setup();
    time.wallOffsetMs = -5 * MINUTE;
    receiveDate("a");
    expect(monitor.clock().evidence).toBe("date");
    time.wallOffsetMs = 0;
    read("polygon", 1_000);
    time.ms += 2_000;
    read("polygon", 1_000);
    expect([isStalled("polygon"), monitor.clock().evidence]).toEqual([false, undefined]);
  });

  test("makes a read that began before meaningless", () => {
    const { time, beginRead, read, isStalled } = setup();
    time.wallOffsetMs = 10 * MINUTE;
    read("base", 1_000);
    time.ms += 100;
    const inFlight = beginRead("polygon", 1_000);
    time.ms += 100;
    time.wallOffsetMs = 0;
    read("base", 1_000);
    inFlight();
    expect(isStalled("polygon")).toBe(false);
  });
});

describe("chains that all stand still", () => {
  test("are refused, although they look equally old", () => {
    const { run, monitor } = setup();
    run(3 * MINUTE, ["polygon", "base", "optimism"]);
    expect(monitor.stalledCount()).toBe(3);
  });
});

describe("a machine that was suspended", () => {
  test("refuses nothing before it has read again", () => {
    const { time, run, beginRead, monitor } = setup();
    run(MINUTE);
    const inFlight = beginRead("polygon", 1_000);
    time.ms += 60 * MINUTE;
    time.suspendedMs = 60 * MINUTE;
    expect(monitor.stalledCount()).toBe(0);
    inFlight();
    run(4_000);
    expect(monitor.stalledCount()).toBe(0);
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

  test("refuses nothing after SIGSTOP and SIGCONT either, which the monotonic clock counts", () => {
    const { time, run, beginRead, monitor } = setup();
    run(MINUTE);
    const inFlight = beginRead("polygon", 1_000);
    time.ms += 60 * MINUTE;
    inFlight();
    expect(monitor.stalledCount()).toBe(0);
    run(2_000);
    expect(monitor.stalledCount()).toBe(0);
  });

  test("refuses a chain that really stands still once it has read again", () => {
    const { time, run, isStalled } = setup();
    run(MINUTE);
    time.ms += 60 * MINUTE;
    time.suspendedMs = 60 * MINUTE;
    run(3 * MINUTE, ["polygon"]);
    expect(isStalled("polygon")).toBe(true);
  });
});

test("a chain without a limit never stands still", () => {
  const { monitor } = setup();
  const read = { source: STATE_SOURCE, timestamp: 0, readAt: 0 };
  monitor.recordHead("goerli", "optimism", read);
  expect([monitor.stalledCount(), monitor.isTooOld("goerli", "optimism", read)]).toEqual([0, false]);
  expect(monitor.needsRead("goerli", "optimism")).toBe(false);
});

test("responses that took long, or have no valid header, tell nothing about the clock", () => {
  const { monitor, time } = setup();
  monitor.recordDate("a", new Date(time.ms - 10 * MINUTE).toUTCString(), time.ms - 3_000);
  monitor.recordDate("b", "yesterday", time.ms);
  expect(monitor.clock().evidence).toBeUndefined();
  monitor.recordDate("c", new Date(time.ms - 10 * MINUTE).toUTCString(), time.ms - 1_000);
  expect(monitor.clock().evidence).toBe("date");
});
