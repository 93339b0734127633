import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { sleep } from "../../../../../web/shared/format/time.js";

test("sleep removes its abort listener when it ends", async () => {
  const { signal } = new AbortController();
  for (let count = 0; count < 20; count++) await sleep(0, signal);
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

test("sleep resolves when the signal aborts", async () => {
  const controller = new AbortController();
  const sleeping = sleep(3_600_000, controller.signal);
  controller.abort();
  await sleeping;
  await sleep(3_600_000, controller.signal);
});
