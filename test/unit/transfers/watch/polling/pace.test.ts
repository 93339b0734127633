import { describe, expect, test } from "vitest";
import {
  getPollIntervalMs,
  getRetryDelayMs,
  getTransferPollMs,
} from "../../../../../src/transfers/watch/polling/pace.js";

const arbitrum = { blockTimeMs: 250 };
const ethereum = { blockTimeMs: 12_000 };
const slow = { blockTimeMs: 60_000 };
const MINUTE_MS = 60_000;

describe("a transfer is polled", () => {
  test("in each block for ten minutes, but no more often than every two seconds", () => {
    expect(getPollIntervalMs(arbitrum)).toBe(2_000);
    expect(getPollIntervalMs(ethereum)).toBe(12_000);
    for (const ageMs of [0, 10 * MINUTE_MS]) {
      expect(getTransferPollMs(arbitrum, ageMs)).toBe(2_000);
      expect(getTransferPollMs(ethereum, ageMs)).toBe(12_000);
    }
  });

  test("more and more slowly then, up to every 30 seconds", () => {
    expect(getTransferPollMs(arbitrum, 10 * MINUTE_MS + 20_000)).toBe(3_000);
    expect(getTransferPollMs(ethereum, 10 * MINUTE_MS + 20_000)).toBe(13_000);
    expect(getTransferPollMs(arbitrum, 24 * 60 * MINUTE_MS)).toBe(30_000);
  });

  test("in each block of a chain whose blocks take longer than that", () => {
    expect(getTransferPollMs(slow, 24 * 60 * MINUTE_MS)).toBe(60_000);
  });
});

test("failed work is done again after 1, 2, 4 seconds, and after half a minute at most", () => {
  expect([1, 2, 3, 6, 1_000].map((failures) => getRetryDelayMs(failures))).toEqual([1e3, 2e3, 4e3, 30e3, 30e3]);
  expect(getRetryDelayMs(9, 4_000)).toBe(4_000);
});
