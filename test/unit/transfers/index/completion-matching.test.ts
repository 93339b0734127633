import fc from "fast-check";
import { expect, test } from "vitest";
import { matchCompletions } from "../../../../src/transfers/index/row-mapping.js";

const sends = (...times: number[]) => times.map((timestamp) => ({ timestamp }));

/** Returns for each send the index of its completion. */
function match(sentAt: readonly number[], completedAt: readonly (number | null)[]): (number | undefined)[] {
  const rows = sends(...sentAt);
  const completions = completedAt.map((timestamp, index) => ({ timestamp, index }));
  const matched = matchCompletions(rows, completions);
  return rows.map((send) => matched.get(send)?.index);
}

test.each<[string, number[], (number | null)[], (number | undefined)[]]>([
  ["no completion", [1_000], [], [undefined]],
  ["one each", [1_000, 2_000], [1_500, 2_500], [0, 1]],
  ["two equal sends and one completion: the earlier send", [1_000, 1_010], [1_500], [0, undefined]],
  ["order rather than proximity", [1_000, 2_000], [2_500], [0, undefined]],
  ["a completion before the first send belongs to none", [1_000], [900, 1_500], [1]],
  ["a surplus completion between two sends belongs to none", [1_000, 9_000], [1_100, 1_200, 9_100], [0, 2]],
  ["clocks that differ by a minute", [1_000], [941], [0]],
  ["clocks that differ by more than a minute", [1_000], [939], [undefined]],
  ["order alone without times", [1_000, 2_000], [null, null, null], [0, 1]],
])("matches %s", (_, sentAt, completedAt, expected) => {
  expect(match(sentAt, completedAt)).toEqual(expected);
});

test("each completion belongs to at most one send, in order, and never to a later one", () => {
  const times = fc.array(fc.nat(5_000), { maxLength: 12 }).map((all) => all.sort((a, b) => a - b));
  fc.assert(
    fc.property(times, times, (sentAt, completedAt) => {
      const indexes = match(sentAt, completedAt);
      const used = indexes.filter((index) => index !== undefined);
      expect(used).toEqual([...new Set(used)].sort((a, b) => a - b));
      for (const [position, index] of indexes.entries()) {
        if (index !== undefined) expect(completedAt[index]).toBeGreaterThanOrEqual((sentAt[position] ?? 0) - 60);
        // No later send is matched before an earlier one.
        else expect(indexes.slice(position).every((later) => later === undefined)).toBe(true);
      }
    }),
  );
});
