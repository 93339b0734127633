import fc from "fast-check";
import { expect, test } from "vitest";
import { matchCompletions } from "../../../../../src/transfers/index/store/completion-matching.js";

const sends = (...times: number[]) => times.map((timestamp) => ({ timestamp }));

/** Place of the completion that each send got. */
function match(sentAt: readonly number[], completedAt: readonly (number | null)[]): (number | undefined)[] {
  const all = sends(...sentAt);
  const completions = completedAt.map((timestamp, place) => ({ timestamp, place }));
  const matched = matchCompletions(all, completions);
  return all.map((send) => matched.get(send)?.place);
}

test.each<[string, number[], (number | null)[], (number | undefined)[]]>([
  ["nothing arrived", [1_000], [], [undefined]],
  ["one each", [1_000, 2_000], [1_500, 2_500], [0, 1]],
  ["two alike and one arrival: the earlier", [1_000, 1_010], [1_500], [0, undefined]],
  ["order, not nearness", [1_000, 2_000], [2_500], [0, undefined]],
  ["an arrival before the first belongs to none of them", [1_000], [900, 1_500], [1]],
  ["and so does one between, once all before it are served", [1_000, 9_000], [1_100, 1_200, 9_100], [0, 2]],
  ["clocks differ by a little", [1_000], [941], [0]],
  ["not by more", [1_000], [939], [undefined]],
  ["without times order is all there is", [1_000, 2_000], [null, null, null], [0, 1]],
])("%s", (_, sentAt, completedAt, expected) => {
  expect(match(sentAt, completedAt)).toEqual(expected);
});

test("each arrival serves one at most, in order, and none that is much later", () => {
  const times = fc.array(fc.nat(5_000), { maxLength: 12 }).map((all) => all.sort((a, b) => a - b));
  fc.assert(
    fc.property(times, times, (sentAt, completedAt) => {
      const places = match(sentAt, completedAt);
      const used = places.filter((place) => place !== undefined);
      expect(used).toEqual([...new Set(used)].sort((a, b) => a - b));
      for (const [index, place] of places.entries()) {
        if (place !== undefined) expect(completedAt[place]).toBeGreaterThanOrEqual((sentAt[index] ?? 0) - 60);
        // A later one is never served before an earlier one.
        else expect(places.slice(index).every((later) => later === undefined)).toBe(true);
      }
    }),
  );
});
