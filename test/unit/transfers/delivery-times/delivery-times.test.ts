import { afterEach, describe, expect, test, vi } from "vitest";
import { createDeliveryTimes, NO_DELIVERIES } from "../../../../src/transfers/delivery-times/delivery-times.js";
import { openIndex } from "../../../../src/transfers/index/store/open-index.js";
import type { DeliveredReader, DeliveredRow } from "../../../../src/transfers/index/store/pages/delivered-statement.js";
import { openSqlite } from "../../../../src/transfers/index/store/sqlite/sqlite.js";
import { createDeliveredReader } from "../../../../src/transfers/index/store/sqlite/sqlite-statements.js";
import { useTemporaryFolder } from "../../../support/temporary-folder.js";
import { getChain, mainnetNetwork } from "../index/support/hop-events.js";
import {
  ARBITRUM_CHAIN_ID,
  bytesFromName,
  createDeliveryRow,
  createSendRow,
  OPTIMISM_CHAIN_ID,
} from "../index/support/index-rows.js";
import { createIndexWriter } from "../list/list-harness.js";

const folder = useTemporaryFolder();
const close: (() => void)[] = [];
afterEach(() => {
  for (const end of close.splice(0)) end();
});

const SENT_AT = 1_700_000_000;
const route = { token: "USDT", source: getChain("optimism"), destination: getChain("arbitrum") };

/** Runs measurements until `rounds` of them are done. */
async function measure(readDelivered: DeliveredReader, { now = SENT_AT + 3_600, rounds = 1 } = {}) {
  const stopping = new AbortController();
  const pauses: number[] = [];
  const errors: unknown[] = [];
  const times = createDeliveryTimes({
    network: mainnetNetwork,
    readDelivered,
    now: () => now * 1_000,
    monotonicNow: () => 0,
    async sleep(ms) {
      pauses.push(ms);
      if (ms >= 10_000 && pauses.filter((pause) => pause >= 10_000).length >= rounds) stopping.abort();
    },
    onError: (error) => errors.push(error),
  });
  await times.run(stopping.signal);
  return { times, pauses, errors };
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
    expect(times.get({ ...route, token: "DAI" })).toEqual({ p50Seconds: 0, p90Seconds: 0, samples: 0 });
    expect(times.get({ ...route, source: getChain("base") })).toBe(NO_DELIVERIES);
  });

  test("are not negative when the clocks of two chains differ", async () => {
    const { times } = await measure(readFrom([-3]));
    expect(times.get(route)).toEqual({ p50Seconds: 0, p90Seconds: 0, samples: 1 });
  });

  test("leave out deliveries of unknown times and transfers, and those of more than 30 days ago", async () => {
    for (const more of [{ delivered_at: null }, { source_chain_id: null }, { sent_at: null }])
      expect((await measure(readFrom([1, 2], more))).times.get(route)).toBe(NO_DELIVERIES);
    const atLimit = await measure(readFrom([20, 10]), { now: SENT_AT + 10 + 30 * 86_400 });
    expect(atLimit.times.get(route)).toMatchObject({ samples: 2 });
    const { times } = await measure(readFrom([20, 10]), { now: SENT_AT + 15 + 30 * 86_400 });
    expect(times.get(route)).toEqual({ p50Seconds: 20, p90Seconds: 20, samples: 1 });
  });

  test("read at most 50,000 deliveries of a chain, a part at a time", async () => {
    const read = vi.fn(readFrom(Array.from({ length: 60_000 }, () => 7)));
    const { times, pauses } = await measure(read);
    expect(times.get(route)).toEqual({ p50Seconds: 7, p90Seconds: 7, samples: 50_000 });
    expect(pauses.filter((ms) => ms === 100)).toHaveLength(100);
    expect(read.mock.calls.every(([, , limit]) => limit === 500)).toBe(true);
  });

  test("stay what they were while the index cannot be read", async () => {
    const working = readFrom([5]);
    let isBroken = false;
    const { times, errors } = await measure(
      (...range) => {
        if (isBroken) throw new Error("disk I/O error");
        isBroken = range[0] === [...mainnetNetwork.chains.values()].at(-1)?.chainId;
        return working(...range);
      },
      { rounds: 2 },
    );
    expect(errors).toHaveLength(1);
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
    const [clock, pauses, stopping] = [{ now: 5_000 }, [] as number[], new AbortController()];
    const times = createDeliveryTimes({
      network: mainnetNetwork,
      readDelivered(chainId) {
        if (chainId === ARBITRUM_CHAIN_ID) clock.now += durationMs;
        return [];
      },
      now: () => SENT_AT * 1_000,
      monotonicNow: () => clock.now,
      async sleep(ms) {
        pauses.push(ms);
        if (pauses.length === 2) stopping.abort();
      },
      onError: (error) => expect.unreachable(String(error)),
    });
    await times.run(stopping.signal);
    expect(pauses).toEqual([intervalMs, intervalMs]);
  });

  test("reads a chain until a part is not full, or ends with a delivery of more than 30 days ago", async () => {
    const read = vi.fn(readFrom(Array.from({ length: 999 }, () => 7)));
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
    const read = vi.fn(
      readFrom(
        Array.from({ length: 500 }, () => 7),
        { delivered_at: null },
      ),
    );
    await measure(read);
    expect(read.mock.calls.filter(([chainId]) => chainId === ARBITRUM_CHAIN_ID)).toHaveLength(2);
  });

  test.each([false, true])(
    "that is stopped changes nothing and reports no error, if its read fails: %s",
    async (isFailing) => {
      const stopping = new AbortController();
      const errors: unknown[] = [];
      const reads: number[] = [];
      const working = readFrom(Array.from({ length: 1_000 }, () => 7));
      let stopAfter = Number.POSITIVE_INFINITY;
      const times = createDeliveryTimes({
        network: mainnetNetwork,
        async readDelivered(chainId, before, limit) {
          reads.push(chainId);
          if (chainId === ARBITRUM_CHAIN_ID && reads.length > stopAfter) {
            stopping.abort();
            if (isFailing) throw new Error("closed");
          }
          return working(chainId, before, limit);
        },
        now: () => SENT_AT * 1_000,
        monotonicNow: () => 0,
        async sleep(ms) {
          if (ms >= 10_000) stopAfter = reads.length;
        },
        onError: (error) => errors.push(error),
      });
      await times.run(stopping.signal);
      expect(times.get(route)).toMatchObject({ samples: 1_000 });
      expect(reads.at(-1)).toBe(ARBITRUM_CHAIN_ID);
      expect(errors).toEqual([]);
    },
  );
});

describe("the deliveries of a chain", () => {
  async function fill() {
    const file = `${folder()}/index`;
    const index = await openIndex(file, mainnetNetwork);
    close.push(index.close);
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
    return { file, index };
  }

  test("are read newest first with their sends, where these are certain", async () => {
    const { file, index } = await fill();
    const all = await index.readDelivered(ARBITRUM_CHAIN_ID, { block: 100, logIndex: 0 }, 10);
    expect(all.map(({ delivered_at, sent_at }) => [delivered_at, sent_at])).toEqual([
      [SENT_AT + 65, null],
      [SENT_AT + 64, SENT_AT],
      [SENT_AT + 63, null],
      ...[62, 61, 60].map((seconds) => [SENT_AT + seconds, SENT_AT]),
    ]);
    const [, second] = all;
    const before = { block: second?.block_number ?? 0, logIndex: second?.log_index ?? 0 };
    expect(await index.readDelivered(ARBITRUM_CHAIN_ID, before, 2)).toEqual(all.slice(2, 4));

    const executed: string[] = [];
    const connection = await openSqlite(file, { readonly: true, verbose: (sql) => executed.push(String(sql)) });
    close.push(() => connection.close());
    await createDeliveredReader(connection)(ARBITRUM_CHAIN_ID, { block: 100, logIndex: 0 }, 10);
    const plan = connection
      .prepare<[], { detail: string }>(`explain query plan ${executed[0]}`)
      .all()
      .map(({ detail }) => detail)
      .filter((detail) => /^(SEARCH|SCAN) (?!d$)/.test(detail));
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
