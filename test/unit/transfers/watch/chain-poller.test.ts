import { describe, expect, test, vi } from "vitest";
import type { ChainClient } from "../../../../src/chain/chain-client.js";
import { Scheduler } from "../../../../src/resilience/scheduler.js";
import {
  ChainPoller,
  getRetryDelayMs,
  getTransferPollMs,
  type Probe,
} from "../../../../src/transfers/watch/chain-poller.js";
import { getChain } from "../../../support/stubs/transfer-fixtures.js";
import { hashOf } from "./watch-world.js";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

test.each([
  ["in each block for ten minutes, but no more often than every two seconds", 250, 10 * MINUTE_MS, 2_000],
  ["in each block of a chain with slow blocks for ten minutes", 12_000, 10 * MINUTE_MS, 12_000],
  ["more slowly then", 250, 10 * MINUTE_MS + 20_000, 3_000],
  ["more slowly then, from the time of a block on", 12_000, 10 * MINUTE_MS + 20_000, 13_000],
  ["every 30 seconds in the end", 250, DAY_MS, 30_000],
  ["in each block in the end where blocks take longer than that", 60_000, DAY_MS, 60_000],
])("a transfer is polled %s", (_, blockTimeMs, ageMs, pollMs) => {
  expect(getTransferPollMs({ blockTimeMs }, ageMs)).toBe(pollMs);
});

test("failed work is done again after 1, 2, 4 seconds, and after half a minute at most", () => {
  expect([1, 2, 3, 6, 1_000].map((failures) => getRetryDelayMs(failures))).toEqual([1e3, 2e3, 4e3, 30e3, 30e3]);
  expect(getRetryDelayMs(9, 4_000)).toBe(4_000);
});

describe("a poll", () => {
  /** A poller of a chain that never answers, the signals of its polls, and how they ended. */
  function setup() {
    vi.useFakeTimers();
    const signals: AbortSignal[] = [];
    const outcomes: string[] = [];
    const sendBatch: ChainClient["sendBatch"] = (_calls, signal) =>
      new Promise((_, reject) => {
        signals.push(signal);
        signal.addEventListener("abort", () => reject(signal.reason));
      });
    const chain = getChain("optimism");
    const client = { slug: chain.slug, sendBatch } as ChainClient;
    const now = () => Date.now();
    const onPoll = (outcome: string) => outcomes.push(outcome);
    const poller = new ChainPoller({ chain, client, scheduler: new Scheduler(), now, onPoll });
    const createProbe = (): Probe => ({
      chain,
      question: { kind: "receipt", hash: hashOf(1) },
      dueAt: now(),
      since: now(),
      searchedTo: undefined,
      onAnswer: () => 2_000,
    });
    return { poller, signals, outcomes, createProbe };
  }

  test("ends with the last who asks, and is no failure of the chain", async () => {
    const { poller, signals, outcomes, createProbe } = setup();
    const [first, second] = [createProbe(), createProbe()];
    poller.add(first);
    poller.add(second);
    await vi.advanceTimersByTimeAsync(0);
    poller.remove(first);
    await vi.advanceTimersByTimeAsync(0);
    expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
    poller.remove(second);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    expect([outcomes, vi.getTimerCount()]).toEqual([[], 0]);
  });

  test("goes on while one question takes the place of another", async () => {
    const { poller, signals, createProbe } = setup();
    const probe = createProbe();
    poller.add(probe);
    await vi.advanceTimersByTimeAsync(0);
    poller.remove(probe);
    poller.add(createProbe());
    await vi.advanceTimersByTimeAsync(1_000);
    expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
  });
});
