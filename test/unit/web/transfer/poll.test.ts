import { expect, test } from "vitest";
import { type PollResult, pollWithBackoff } from "../../../../web/transfer/poll.js";

/** Polls with given results. Returns the sequence of results, waits in milliseconds and visibility checks. */
async function recordPolls(results: readonly (PollResult | "abort")[]) {
  const controller = new AbortController();
  const events: string[] = [];
  let polls = 0;
  await pollWithBackoff({
    poll: async () => {
      const result = results[polls++] ?? "done";
      events.push(result);
      if (result === "abort") controller.abort();
      return result === "abort" ? "unchanged" : result;
    },
    sleep: async (ms) => void events.push(String(ms)),
    waitUntilVisible: async () => void events.push("visible"),
    onWait: () => {},
    signal: controller.signal,
  });
  return events;
}

test("polls less and less often and resets the interval after a change", async () => {
  expect(await recordPolls(["unchanged", "unchanged", "changed", "unchanged", "done"])).toEqual([
    ...["unchanged", "3000", "visible", "unchanged", "4500", "visible"],
    ...["changed", "2000", "visible", "unchanged", "3000", "visible", "done"],
  ]);
});

test("waits 30 seconds at most", async () => {
  const events = await recordPolls(Array.from({ length: 12 }, () => "unchanged" as const));
  const waits = events.map(Number).filter((ms) => ms > 0);
  expect(Math.max(...waits)).toBe(30_000);
  expect(waits.at(-1)).toBe(30_000);
});

test("ends when the signal aborts", async () => {
  expect(await recordPolls(["unchanged", "abort", "unchanged"])).toEqual(["unchanged", "3000", "visible", "abort"]);
});
