import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { CanonicalAnswer } from "../../src/chain/quorum/canonical-answer.js";
import { countEqualVotes, countQuantityVotes, countTagVotes, type Tally } from "../../src/chain/quorum/count-votes.js";

// Whatever endpoints say, in whatever order: an answer that counts has enough votes, and a minority of liars has none.

const exact = (text: string): CanonicalAnswer => ({ text });
const quantity = (value: bigint): CanonicalAnswer => ({ text: "quantity", quantity: value });
const HEAD = 10_000n;
/** Returns whether two quantities are more than 1.5 times apart. */
const isFar = (a: bigint, b: bigint): boolean => 2n * (a > b ? a : b) > 3n * (a < b ? a : b);

type Count = (ballots: readonly CanonicalAnswer[], needed: number) => Tally;
const text = fc.constantFrom("a", "b", "c").map(exact);
const amount = fc.bigInt({ min: -1n, max: 20_000n }).map(quantity);
const counters: readonly (readonly [name: string, Count, fc.Arbitrary<CanonicalAnswer>])[] = [
  ["equal", countEqualVotes, text],
  ["quantity", countQuantityVotes, fc.oneof(amount, fc.constant(exact("revert")))],
  ["tag", (ballots, needed) => countTagVotes(ballots, needed, HEAD), amount],
];
const neededVotes = fc.integer({ min: 2, max: 4 });

describe.each(counters)("counting %s votes", (_, count, ballot) => {
  const anyBallots = fc.array(ballot, { maxLength: 6 });

  test("does not depend on the order of the ballots", () => {
    fc.assert(
      fc.property(anyBallots, neededVotes, fc.infiniteStream(fc.nat()), (ballots, needed, keys) => {
        const shuffled = ballots
          .map((each) => ({ each, key: keys.next().value as number }))
          .sort((x, y) => x.key - y.key)
          .map(({ each }) => each);
        const say = ({ winner, outvoted }: Tally, of: readonly CanonicalAnswer[]) => ({
          winner: winner === undefined ? undefined : [of[winner]?.text, of[winner]?.quantity],
          outvoted: outvoted.map((index) => `${of[index]?.text} ${of[index]?.quantity}`).sort(),
        });
        expect(say(count(shuffled, needed), shuffled)).toEqual(say(count(ballots, needed), ballots));
      }),
    );
  });

  test("outvotes nobody without a winner, and never the winner", () => {
    fc.assert(
      fc.property(anyBallots, neededVotes, (ballots, needed) => {
        const { winner, outvoted, agreeing, isSettled } = count(ballots, needed);
        if (winner === undefined) expect({ outvoted, isSettled }).toEqual({ outvoted: [], isSettled: false });
        else {
          expect(agreeing).toBeGreaterThanOrEqual(needed);
          expect(outvoted).not.toContain(winner);
          expect(ballots.length - outvoted.length).toBeGreaterThanOrEqual(1);
        }
      }),
    );
  });
});

test("one liar among three decides nothing that has to be equal, and is outvoted", () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.nat(2), (truth, lie, place) => {
      fc.pre(truth !== lie);
      const ballots = [exact(truth), exact(truth), exact(truth)].with(place, exact(lie));
      const { winner, outvoted } = countEqualVotes(ballots, 2);
      expect(ballots[winner ?? 3]?.text).toBe(truth);
      expect(outvoted).toEqual([place]);
    }),
  );
});

test("one liar among three moves a quantity by no more than honest endpoints differ", () => {
  const honest = fc.bigInt({ min: 100_000n, max: 150_000n });
  fc.assert(
    fc.property(honest, honest, fc.bigInt({ min: 0n, max: 10n ** 12n }), fc.nat(2), (first, second, lie, place) => {
      const ballots = [quantity(first), quantity(second)];
      ballots.splice(place, 0, quantity(lie));
      const { winner, outvoted } = countQuantityVotes(ballots, 2);
      const [low, high] = first < second ? [first, second] : [second, first];
      expect(winner).toBeDefined();
      const value = ballots[winner ?? 3]?.quantity ?? -1n;
      expect(value >= low && value <= high).toBe(true);
      expect(outvoted.includes(place)).toBe(isFar(lie, value));
    }),
  );
});

test("of two quantities the higher wins if it is at most 1.5 times the other, and beyond a tenth a third is asked for", () => {
  const count = (...values: readonly bigint[]) => countQuantityVotes(values.map(quantity), 2);
  expect(count(100n, 110n)).toMatchObject({ winner: 1, agreeing: 2, isSettled: true });
  expect(count(100n, 111n)).toMatchObject({ winner: 1, agreeing: 2, isSettled: false });
  expect(count(150n, 100n)).toMatchObject({ winner: 0, agreeing: 2, isSettled: false });
  expect(count(100n, 151n)).toMatchObject({ winner: undefined, agreeing: 1, isSettled: false });
  expect(count(0n, 0n)).toMatchObject({ winner: 1, outvoted: [], isSettled: true });
});

test("of three quantities the median wins, and one that is more than 1.5 times off is outvoted", () => {
  const count = (...values: readonly bigint[]) => countQuantityVotes(values.map(quantity), 2);
  expect(count(70n, 100n, 101n)).toMatchObject({ winner: 1, outvoted: [], isSettled: true });
  expect(count(100n, 151n, 100n)).toMatchObject({ outvoted: [1], isSettled: true });
  expect(count(130n, 70n, 100n)).toMatchObject({ winner: 2, outvoted: [], isSettled: false });
});

test("calls that revert are outvoted by estimates, and the other way round", () => {
  const revert = exact("revert 0x");
  expect(countQuantityVotes([revert, quantity(5n), quantity(5n)], 2)).toMatchObject({ winner: 2, outvoted: [0] });
  expect(countQuantityVotes([revert, quantity(5n), revert], 2)).toMatchObject({ winner: 0, outvoted: [1] });
});

test("a final block is one that two of three call final", () => {
  const honest = fc.bigInt({ min: 9_800n, max: 9_900n });
  fc.assert(
    fc.property(honest, honest, fc.bigInt({ min: -1n, max: 30_000n }), fc.nat(2), (first, second, lie, place) => {
      const ballots = [quantity(first), quantity(second)];
      ballots.splice(place, 0, quantity(lie));
      const { winner, outvoted } = countTagVotes(ballots, 2, HEAD);
      const value = ballots[winner ?? 3]?.quantity ?? -1n;
      expect(ballots.filter((ballot) => (ballot.quantity ?? -1n) >= value).length).toBeGreaterThanOrEqual(2);
      expect(outvoted.every((index) => index === place)).toBe(true);
      if (lie > HEAD || lie > HEAD - 20n) expect(outvoted).toEqual([place]);
    }),
  );
  expect(countTagVotes([quantity(9_900n), quantity(9_900n), quantity(10n)], 2, HEAD).outvoted).toEqual([2]);
});
