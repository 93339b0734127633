import fc from "fast-check";
import { beforeEach, expect, test, vi } from "vitest";
import { type PriceDocument, PriceSource } from "../../src/prices/price-source.js";
import { ComparedTokenPrices, type PriceTable } from "../../src/prices/token-prices.js";
import { StaleWhileRevalidateCache } from "../../src/resilience/stale-while-revalidate.js";

// Whatever two sources say and whenever they fail: a price that is used is one that a source gave in the last ten minutes,
// and not the one that jumped alone.

const MINUTE = 60_000;
const NOW = 1_795_000_000_000;

/** What the sources say in one minute: a price, or undefined while they fail. */
interface Minute {
  readonly preferred: number | undefined;
  readonly other: number | undefined;
}

const price = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(100, 101, 99, 103, 110) },
  { weight: 2, arbitrary: fc.constantFrom(40, 151, 1000, 0.001) },
  { weight: 1, arbitrary: fc.constant(undefined) },
);
const minutes = fc.array(fc.record<Minute>({ preferred: price, other: price }), { minLength: 1, maxLength: 30 });

/** What a source has given: prices with the time of their document. */
type Given = { readonly usd: number; readonly at: number }[];

function createScriptedSource(name: PriceSource["name"], say: () => number | undefined) {
  const given: Given = [];
  const cache = new StaleWhileRevalidateCache<PriceDocument>({
    load: async () => {
      const usd = say();
      if (usd === undefined) throw new Error("the source fails");
      given.push({ usd, at: Date.now() });
      return { timestamp: Date.now(), prices: new Map([["ETH", usd]]) };
    },
    now: Date.now,
    ...{ freshMs: 55_000, staleMs: 5 * MINUTE, errorTtlMs: 1_000 },
    onError: () => {},
  });
  return { given, source: new PriceSource({ name, cache, now: Date.now, monotonicNow: Date.now }) };
}

/** Starts two sources that say what the state has. */
function startSources() {
  vi.setSystemTime(NOW);
  const state: { minute: Minute } = { minute: { preferred: undefined, other: undefined } };
  const preferred = createScriptedSource("ASSETS", () => state.minute.preferred);
  const other = createScriptedSource("CHAINLINK", () => state.minute.other);
  const sources = [preferred.source, other.source];
  return { state, preferred, other, prices: new ComparedTokenPrices({ fixedPricesUsd: new Map(), sources }) };
}

function readPrice(
  table: PriceTable,
): { readonly usd: number; readonly source: string; readonly at: number } | undefined {
  try {
    const { source, updatedAtSeconds } = table.getOrigin("ETH");
    return { usd: table.getUsdPrice("ETH"), source, at: updatedAtSeconds * 1000 };
  } catch {
    return undefined;
  }
}

beforeEach(() => void vi.useFakeTimers({ now: NOW }));

test("a price that is used was given within ten minutes, by the source that is named", async () => {
  await fc.assert(
    fc.asyncProperty(minutes, async (script) => {
      const { state, preferred, other, prices } = startSources();
      for (const minute of script) {
        state.minute = minute;
        const used = readPrice(prices.peekTable(["ETH"]) ?? (await prices.getTable(["ETH"])));
        // Background reads end; the next answers use them.
        await vi.advanceTimersByTimeAsync(0);
        if (used !== undefined) {
          const { given } = used.source === "ASSETS" ? preferred : other;
          expect(given).toContainEqual({ usd: used.usd, at: used.at });
          expect(Date.now() - used.at).toBeLessThan(10 * MINUTE);
        } else {
          // Nothing is refused while the preferred source has just given a price that did not jump.
          const [last, before] = [preferred.given.at(-1), preferred.given.at(-2)];
          const isFresh = last?.at === Date.now();
          const isSteady = last !== undefined && (before === undefined || last.usd === before.usd);
          expect(isFresh && isSteady && prices.compareSources().distrustedTokens.length === 0).toBe(false);
        }
        await vi.advanceTimersByTimeAsync(MINUTE);
      }
    }),
  );
});

test("of a source that jumps alone, no price is used", async () => {
  const steady = fc.constantFrom(98, 99, 100, 101, 102);
  const jump = fc.oneof(fc.double({ min: 160, max: 1e6, noNaN: true }), fc.double({ min: 1e-6, max: 48, noNaN: true }));
  await fc.assert(
    fc.asyncProperty(fc.array(steady, { minLength: 1, maxLength: 6 }), jump, steady, async (before, wrong, usd) => {
      const { state, prices } = startSources();
      const ask = async () => {
        const table = prices.peekTable(["ETH"]) ?? (await prices.getTable(["ETH"]));
        await vi.advanceTimersByTimeAsync(0);
        return readPrice(prices.peekTable(["ETH"]) ?? table);
      };
      for (const minute of before) {
        state.minute = { preferred: minute, other: usd };
        expect((await ask())?.source).toBe("ASSETS");
        await vi.advanceTimersByTimeAsync(MINUTE);
      }
      state.minute = { preferred: wrong, other: usd };
      for (let times = 0; times < 5; times += 1) {
        expect(await ask()).toMatchObject({ source: "CHAINLINK", usd });
        await vi.advanceTimersByTimeAsync(MINUTE);
      }
    }),
  );
});
