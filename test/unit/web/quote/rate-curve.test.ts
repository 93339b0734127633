import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import { quoteAmounts, sampleAmounts, selectQuotedPoints } from "../../../../web/quote/rate-curve.js";

const amounts = Array.from({ length: 20 }, (_, index) => BigInt(index + 1));
const { signal } = new AbortController();

test("quoteAmounts runs four requests at a time and keeps the order of the amounts", async () => {
  let pending = 0;
  let maxPending = 0;
  const points = await quoteAmounts(
    amounts,
    async (sent) => {
      pending += 1;
      maxPending = Math.max(maxPending, pending);
      await sleep(Number(20n - sent) % 5);
      pending -= 1;
      return sent === 3n ? { sent, error: "no" } : { sent, quote: { sent, received: sent, fee: 0n } };
    },
    signal,
  );
  expect(maxPending).toBe(4);
  expect(points.map(({ sent }) => sent)).toEqual(amounts);
  expect(selectQuotedPoints(points).map(({ sent }) => sent)).toEqual(amounts.filter((sent) => sent !== 3n));
});

test("quoteAmounts sends no further requests after an abort", async () => {
  const controller = new AbortController();
  let requests = 0;
  const points = quoteAmounts(
    amounts,
    async (sent, signal) => {
      requests += 1;
      if (sent === 6n) controller.abort(new Error("another amount"));
      signal.throwIfAborted();
      return { sent, error: "" };
    },
    controller.signal,
  );
  await expect(points).rejects.toThrow("another amount");
  await sleep(5);
  expect(requests).toBeLessThan(11);
});

const MAX_UINT256 = 2n ** 256n - 1n;

test("sampleAmounts returns 33 amounts from a hundredth to a hundred times the amount", () => {
  const amounts = sampleAmounts(25_000_000n);
  expect(amounts).toHaveLength(33);
  expect(amounts[0]).toBe(250_000n);
  expect(amounts[16]).toBe(25_000_000n);
  expect(amounts[32]).toBe(2_500_000_000n);
  expect(amounts.slice(16, 25)).toEqual(
    [
      25_000_000, 33_300_000, 44_400_000, 59_200_000, 79_000_000, 105_000_000, 140_000_000, 187_000_000, 250_000_000,
    ].map(BigInt),
  );
});

test.each([1n, 2n, 99n, 10n ** 18n, MAX_UINT256 / 100n, MAX_UINT256])(
  "sampleAmounts returns ascending amounts without duplicates around %s",
  (amount) => {
    const amounts = sampleAmounts(amount);
    expect(amounts).toContain(amount);
    expect(amounts.length).toBeGreaterThan(1);
    expect([...new Set(amounts)].toSorted((a, b) => (a < b ? -1 : 1))).toEqual(amounts);
  },
);

test("sampleAmounts stays within its bounds for any amount", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 1n, max: MAX_UINT256 }), (amount) => {
      const amounts = sampleAmounts(amount);
      expect(amounts).toContain(amount);
      for (const [index, sample] of amounts.entries()) {
        expect(sample >= 1n && sample <= MAX_UINT256 && sample * 102n >= amount && sample <= amount * 100n).toBe(true);
        if (index > 0) expect(sample > (amounts[index - 1] ?? sample)).toBe(true);
      }
    }),
  );
});
