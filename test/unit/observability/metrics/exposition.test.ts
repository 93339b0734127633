import { expect, test, vi } from "vitest";
import { createThrottledScrape } from "../../../../src/observability/metrics/exposition.js";

function setup() {
  const renders: { resolve(text: string): void; reject(error: Error): void }[] = [];
  const scrape = createThrottledScrape(() => new Promise((resolve, reject) => void renders.push({ resolve, reject })));
  return {
    scrape,
    renders,
    untilRendered: (count: number) => vi.waitFor(() => expect(renders).toHaveLength(count), { timeout: 60_000 }),
  };
}

test("shares the next render among callers that arrive before it starts", async () => {
  const { scrape, renders, untilRendered } = setup();
  const first = scrape();
  await untilRendered(1);
  const others = [scrape(), scrape(), scrape()];
  renders[0]?.resolve("first");
  expect(await first).toBe("first");
  await untilRendered(2);
  renders[1]?.resolve("second");
  expect(await Promise.all(others)).toEqual(["second", "second", "second"]);
  expect(renders).toHaveLength(2);
});

test("rejects for the callers of a failed render and renders again for the next", async () => {
  const { scrape, renders, untilRendered } = setup();
  const first = scrape();
  await untilRendered(1);
  renders[0]?.reject(new Error("no"));
  await expect(first).rejects.toThrow("no");
  const second = scrape();
  await untilRendered(2);
  renders[1]?.resolve("second");
  expect(await second).toBe("second");
});

test("renders for at most a tenth of the time under constant load", async () => {
  const renders: { readonly startedAt: number; readonly tookMs: number }[] = [];
  const scrape = createThrottledScrape(async () => {
    const startedAt = performance.now();
    while (performance.now() - startedAt < 5);
    renders.push({ startedAt, tookMs: performance.now() - startedAt });
    return "";
  });
  for (let n = 0; n < 5; n++) await scrape();
  for (const [index, { startedAt, tookMs }] of renders.slice(0, -1).entries()) {
    // Of a render that the machine interrupts, too, except for what is above a second. Timers count whole milliseconds.
    const dueAt = startedAt + tookMs + Math.min(9 * tookMs, 1_000) - 2;
    expect(renders[index + 1]?.startedAt).toBeGreaterThan(dueAt);
  }
});
