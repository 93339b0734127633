import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import { quoteAmounts, sampleAmounts, selectQuotedPoints } from "../../../../web/quote/rate-curve.js";

const amounts = Array.from({ length: 20 }, (_, index) => BigInt(index + 1));
const never = new AbortController().signal;

test("a few quotes are asked for at a time, and come in the order of their amounts", async () => {
  let open = 0;
  let most = 0;
  const points = await quoteAmounts(
    amounts,
    async (sent) => {
      open += 1;
      most = Math.max(most, open);
      await sleep(Number(20n - sent) % 5);
      open -= 1;
      return sent === 3n ? { sent, problem: "no" } : { sent, quote: { sent, received: sent, fee: 0n } };
    },
    never,
  );
  expect(most).toBe(4);
  expect(points.map(({ sent }) => sent)).toEqual(amounts);
  expect(selectQuotedPoints(points).map(({ sent }) => sent)).toEqual(amounts.filter((sent) => sent !== 3n));
});

test("nothing more is asked for once nobody wants the curve", async () => {
  const closing = new AbortController();
  let asked = 0;
  const points = quoteAmounts(
    amounts,
    async (sent, signal) => {
      asked += 1;
      if (sent === 6n) closing.abort(new Error("another amount"));
      signal.throwIfAborted();
      return { sent, problem: "" };
    },
    closing.signal,
  );
  await expect(points).rejects.toThrow("another amount");
  await sleep(5);
  expect(asked).toBeLessThan(11);
});

const max = 2n ** 256n - 1n;

test("33 amounts lie around one, from a hundredth to a hundred times as much", () => {
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

test.each([1n, 2n, 99n, 10n ** 18n, max / 100n, max])(
  "around %s they are valid, in order, and none is there twice",
  (amount) => {
    const amounts = sampleAmounts(amount);
    expect(amounts).toContain(amount);
    expect(amounts.length).toBeGreaterThan(1);
    expect([...new Set(amounts)].toSorted((a, b) => (a < b ? -1 : 1))).toEqual(amounts);
  },
);

test("no amount is out of bounds", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 1n, max }), (amount) => {
      const amounts = sampleAmounts(amount);
      expect(amounts).toContain(amount);
      for (const [index, each] of amounts.entries()) {
        expect(each >= 1n && each <= max && each * 102n >= amount && each <= amount * 100n).toBe(true);
        if (index > 0) expect(each > (amounts[index - 1] ?? each)).toBe(true);
      }
    }),
  );
});
