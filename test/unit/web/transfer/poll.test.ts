import { expect, test } from "vitest";
import { type PollResult, pollWithBackoff } from "../../../../web/transfer/poll.js";

/** Watches what is given in turn; returns what happened. */
async function watching(looks: readonly (PollResult | "abort")[]) {
  const closing = new AbortController();
  const happened: string[] = [];
  let looked = 0;
  await pollWithBackoff({
    look: async () => {
      const found = looks[looked++] ?? "over";
      happened.push(found);
      if (found === "abort") closing.abort();
      return found === "abort" ? "same" : found;
    },
    sleep: async (ms) => void happened.push(String(ms)),
    waitUntilVisible: async () => void happened.push("seen"),
    onPause: () => {},
    signal: closing.signal,
  });
  return happened;
}

test("looks less and less often, and soon again after a change", async () => {
  expect(await watching(["same", "same", "changed", "same", "over"])).toEqual([
    ...["same", "3000", "seen", "same", "4500", "seen"],
    ...["changed", "2000", "seen", "same", "3000", "seen", "over"],
  ]);
});

test("pauses for half a minute at most", async () => {
  const happened = await watching(Array.from({ length: 12 }, () => "same" as const));
  const pauses = happened.map(Number).filter((ms) => ms > 0);
  expect(Math.max(...pauses)).toBe(30_000);
  expect(pauses.at(-1)).toBe(30_000);
});

test("ends with its signal", async () => {
  expect(await watching(["same", "abort", "same"])).toEqual(["same", "3000", "seen", "abort"]);
});
