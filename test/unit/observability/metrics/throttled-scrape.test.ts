import { expect, test, vi } from "vitest";
import { createThrottledScrape } from "../../../../src/observability/metrics/throttled-scrape.js";

function setup() {
  const made: { resolve(text: string): void; reject(error: Error): void }[] = [];
  const ask = createThrottledScrape(() => new Promise((resolve, reject) => void made.push({ resolve, reject })));
  return { ask, made, until: (count: number) => vi.waitFor(() => expect(made).toHaveLength(count), 10_000) };
}

test("those who ask meanwhile share the next text, which is begun after they asked", async () => {
  const { ask, made, until } = setup();
  const first = ask();
  await until(1);
  const others = [ask(), ask(), ask()];
  made[0]?.resolve("first");
  expect(await first).toBe("first");
  await until(2);
  made[1]?.resolve("second");
  expect(await Promise.all(others)).toEqual(["second", "second", "second"]);
  expect(made).toHaveLength(2);
});

test("a text that cannot be had is told to those who asked for it, and the next one is made", async () => {
  const { ask, made, until } = setup();
  const first = ask();
  await until(1);
  made[0]?.reject(new Error("no"));
  await expect(first).rejects.toThrow("no");
  const second = ask();
  await until(2);
  made[1]?.resolve("second");
  expect(await second).toBe("second");
});

test("who asks again and again has it made a tenth of the time", async () => {
  let busyMs = 0;
  const ask = createThrottledScrape(async () => {
    const beganAt = performance.now();
    while (performance.now() - beganAt < 5);
    busyMs += performance.now() - beganAt;
    return "";
  });
  const beganAt = performance.now();
  for (let n = 0; n < 5; n++) await ask();
  // The last one's rest is still to come.
  expect(busyMs).toBeLessThan(0.3 * (performance.now() - beganAt));
});
