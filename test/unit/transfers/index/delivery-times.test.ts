import { describe, expect, test, vi } from "vitest";
import { Scheduler } from "../../../../src/resilience/scheduler.js";
import { DeliveryTimes } from "../../../../src/transfers/index/delivery-times.js";
import type { IndexReader } from "../../../../src/transfers/index/index-reader.js";
import type { DeliveredRow } from "../../../../src/transfers/index/statements.js";
import { closeAfterTest } from "../../../support/close-after-test.js";
import { useTestIndexes } from "../../../support/index/open-index.js";
import { explainQuery, openRecordedIndex } from "../../../support/index/recorded-statements.js";
import { getChain, mainnetNetwork } from "../index/support/hop-events.js";
import {
  ARBITRUM_CHAIN_ID,
  bytesFromName,
  createDeliveryRow,
  createSendRow,
  OPTIMISM_CHAIN_ID,
} from "../index/support/index-rows.js";
import { createIndexWriter } from "./list/list-harness.js";

const indexes = useTestIndexes();
const SENT_AT = 1_700_000_000;
const NEVER = new AbortController().signal;
const route = { token: "USDT", source: getChain("optimism"), destination: getChain("arbitrum") };

type DeliveredReader = IndexReader["readDelivered"];

/** Measures once. */
async function measure(readDelivered: DeliveredReader, { now = SENT_AT + 3_600 } = {}) {
  const pauses: number[] = [];
  const sleep = async (ms: number): Promise<void> => void pauses.push(ms);
  const clock = { now: () => now * 1_000, monotonicNow: () => 0, sleep };
  const times = new DeliveryTimes(mainnetNetwork, { readDelivered }, clock);
  await times.measure(NEVER);
  return { times, pauses };
}

/** Deliveries of optimism's transfers on Arbitrum that took these seconds, newest first. */
function readFrom(seconds: readonly number[], more: Partial<DeliveredRow> = {}): DeliveredReader {
  const rows = seconds.map((duration, index) => ({
    ...{ chain_id: ARBITRUM_CHAIN_ID, block_number: seconds.length - index, log_index: 0, token: "USDT" },
    ...{ source_chain_id: OPTIMISM_CHAIN_ID, sent_at: SENT_AT, delivered_at: SENT_AT + duration, ...more },
  }));
  return (chainId, { block }, limit) =>
    chainId === ARBITRUM_CHAIN_ID ? rows.filter((row) => row.block_number < block).slice(0, limit) : [];
}

describe("delivery times", () => {
  test("are quantiles of all deliveries of a route, by nearest rank", async () => {
    const { times } = await measure(readFrom(Array.from({ length: 10 }, (_, index) => 100 - 10 * index)));
    expect(times.get(route)).toEqual({ p50Seconds: 50, p90Seconds: 90, samples: 10 });
    expect(times.get({ ...route, token: "DAI" })).toBeUndefined();
    expect(times.get({ ...route, source: getChain("base") })).toBeUndefined();
  });

  test("are not negative when the clocks of two chains differ", async () => {
    const { times } = await measure(readFrom([-3]));
    expect(times.get(route)).toEqual({ p50Seconds: 0, p90Seconds: 0, samples: 1 });
  });

  test("leave out deliveries of unknown times and transfers, and those of more than 30 days ago", async () => {
    for (const more of [{ delivered_at: null }, { source_chain_id: null }, { sent_at: null }])
      expect((await measure(readFrom([1, 2], more))).times.get(route)).toBeUndefined();
    const atLimit = await measure(readFrom([20, 10]), { now: SENT_AT + 10 + 30 * 86_400 });
    expect(atLimit.times.get(route)).toMatchObject({ samples: 2 });
    const { times } = await measure(readFrom([20, 10]), { now: SENT_AT + 15 + 30 * 86_400 });
    expect(times.get(route)).toEqual({ p50Seconds: 20, p90Seconds: 20, samples: 1 });
  });

  test("read at most 50,000 deliveries of a chain, a part at a time", async () => {
    const read = vi.fn(readFrom(Array(60_000).fill(7)));
    const { times, pauses } = await measure(read);
    expect(times.get(route)).toEqual({ p50Seconds: 7, p90Seconds: 7, samples: 50_000 });
    expect(pauses.filter((ms) => ms === 100)).toHaveLength(100);
    expect(read.mock.calls.every(([, , limit]) => limit === 500)).toBe(true);
  });

  test("stay what they were while the index cannot be read", async () => {
    const working = readFrom([5]);
    let isBroken = false;
    const { times } = await measure((...range) => {
      if (isBroken) throw new Error("disk I/O error");
      return working(...range);
    });
    isBroken = true;
    await expect(times.measure(NEVER)).rejects.toThrow("disk I/O error");
    expect(times.get(route)).toMatchObject({ samples: 1 });
  });
});

describe("a measurement", () => {
  test.each([
    [0, 10_000],
    [499, 10_000],
    [501, 10_020],
    [29_999, 599_980],
    [30_001, 600_000],
  ])("that took %i ms is repeated after %i ms", async (durationMs, intervalMs) => {
    let now = 5_000;
    const readDelivered: DeliveredReader = (chainId) => {
      if (chainId === ARBITRUM_CHAIN_ID) now += durationMs;
      return [];
    };
    const clock = { now: () => SENT_AT * 1_000, monotonicNow: () => now, sleep: async () => {} };
    const times = new DeliveryTimes(mainnetNetwork, { readDelivered }, clock);
    const scheduler = new Scheduler();
    const every = vi.spyOn(scheduler, "every");
    times.schedule(scheduler);
    await times.measure(NEVER);
    const [, getIntervalMs, , options] = every.mock.calls[0] ?? [];
    expect(options).toEqual({ firstDelayMs: 0 });
    expect(typeof getIntervalMs === "function" && getIntervalMs()).toBe(intervalMs);
    scheduler.close();
  });

  test("reads a chain until a part is not full, or ends with a delivery of more than 30 days ago", async () => {
    const read = vi.fn(readFrom(Array(999).fill(7)));
    const onArbitrum = () => read.mock.calls.filter(([chainId]) => chainId === ARBITRUM_CHAIN_ID);
    await measure(read);
    const start = { block: Number.MAX_SAFE_INTEGER, logIndex: Number.MAX_SAFE_INTEGER };
    expect(onArbitrum().map(([, before]) => before)).toEqual([start, { block: 500, logIndex: 0 }]);
    read.mockClear();
    await measure(read, { now: SENT_AT + 7 + 30 * 86_400 });
    expect(onArbitrum()).toHaveLength(2);
    read.mockClear();
    await measure(read, { now: SENT_AT + 8 + 30 * 86_400 });
    expect(onArbitrum()).toHaveLength(1);
  });

  test("goes on behind a delivery whose time is not known", async () => {
    const read = vi.fn(readFrom(Array(500).fill(7), { delivered_at: null }));
    await measure(read);
    expect(read.mock.calls.filter(([chainId]) => chainId === ARBITRUM_CHAIN_ID)).toHaveLength(2);
  });

  test("that is stopped changes nothing", async () => {
    const stopping = new AbortController();
    const working = readFrom(Array(1_000).fill(7));
    let isStopped = false;
    const { times } = await measure((...range) => {
      if (isStopped) stopping.abort();
      return isStopped ? [] : working(...range);
    });
    isStopped = true;
    await times.measure(stopping.signal);
    expect(times.get(route)).toMatchObject({ samples: 1_000 });
  });
});

describe("the deliveries of a chain", () => {
  async function fill() {
    const index = await indexes.open();
    const writer = createIndexWriter(index);
    await writer.initialize([OPTIMISM_CHAIN_ID, ARBITRUM_CHAIN_ID]);
    const names = ["a", "b", "c"];
    const equal = ["first", "second"].map((name) => createSendRow(bytesFromName("values"), name, { kind: "l1" }));
    const single = createSendRow(bytesFromName("single"), "single", { kind: "l1" });
    const sends = names.map((name) => createSendRow(bytesFromName(name), `sends ${name}`, { timestamp: SENT_AT }));
    await writer.advance(OPTIMISM_CHAIN_ID, 2, { sends: [...sends, ...equal, single] });
    const delivered = [...names, "values", "single", "unknown"];
    const deliveries = delivered.map((name, position) => ({
      ...createDeliveryRow(bytesFromName(name), `bonds ${name}`, 2 + position),
      timestamp: SENT_AT + 60 + position,
    }));
    await writer.advance(ARBITRUM_CHAIN_ID, 9, { deliveries });
    return index;
  }

  test("are read newest first with their sends, where these are certain", async () => {
    const index = await fill();
    const all = await index.reader.readDelivered(ARBITRUM_CHAIN_ID, { block: 100, logIndex: 0 }, 10);
    expect(all.map(({ delivered_at, sent_at }) => [delivered_at, sent_at])).toEqual([
      [SENT_AT + 65, null],
      [SENT_AT + 64, SENT_AT],
      [SENT_AT + 63, null],
      ...[62, 61, 60].map((seconds) => [SENT_AT + seconds, SENT_AT]),
    ]);
    const [, second] = all;
    const before = { block: second?.block_number ?? 0, logIndex: second?.log_index ?? 0 };
    expect(await index.reader.readDelivered(ARBITRUM_CHAIN_ID, before, 2)).toEqual(all.slice(2, 4));

    const executed: string[] = [];
    const recorded = closeAfterTest(await openRecordedIndex(index.file, executed));
    await recorded.reader.readDelivered(ARBITRUM_CHAIN_ID, { block: 100, logIndex: 0 }, 10);
    const plan = (await explainQuery(index.file, executed[0])).filter((detail) => /^(SEARCH|SCAN) (?!d$)/.test(detail));
    expect(plan).toEqual([
      expect.stringMatching(
        /^SEARCH deliveries USING INDEX sqlite_autoindex_deliveries_1 \(chain_id=\? AND block_number<\?/,
      ),
      expect.stringMatching(/^SEARCH s USING INDEX sends_arrival_key /),
      expect.stringMatching(/^SEARCH o USING COVERING INDEX sends_arrival_key /),
      expect.stringMatching(/^SEARCH e USING COVERING INDEX deliveries_arrival_key /),
    ]);
  });
});
