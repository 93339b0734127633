import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { sleep } from "../../../../web/shared/time.js";

test("a pause that is over leaves nothing on its signal, however many there are", async () => {
  const { signal } = new AbortController();
  for (let pauses = 0; pauses < 20; pauses++) await sleep(0, signal);
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

test("a pause ends with its signal", async () => {
  const closing = new AbortController();
  const hour = sleep(3_600_000, closing.signal);
  closing.abort();
  await hour;
  await sleep(3_600_000, closing.signal);
});
