import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type ChainBlockAge,
  judgeBlockAges,
  MIN_CLOCK_OFFSET_MS,
} from "../../../../src/chain/block-age/judge-block-ages.js";

const MINUTE = 60_000;
const LIMIT = 2 * MINUTE;

function chain(name: string, ageMs: number, fields: Partial<ChainBlockAge> = {}): ChainBlockAge {
  return { chain: name, ageMs, maxAgeMs: LIMIT, isAdvancing: true, isConfirmed: false, ...fields };
}

const judge = (...input: Parameters<typeof judgeBlockAges>) => {
  const { clock, stalled } = judgeBlockAges(...input);
  return { offsetMs: clock.offsetMs, evidence: clock.evidence, stalled: [...stalled] };
};
const RIGHT_CLOCK = { offsetMs: 0, evidence: undefined };

describe("one old chain among young ones", () => {
  test("stands still, and the clock is right", () => {
    const chains = [chain("polygon", 3 * MINUTE), chain("base", 2_000), chain("optimism", 1_000)];
    expect(judge(chains, [])).toEqual({ ...RIGHT_CLOCK, stalled: ["polygon"] });
  });

  test("stands still even if it is the only one of two", () => {
    expect(judge([chain("polygon", 3 * MINUTE), chain("base", 2_000)], [])).toEqual({
      ...RIGHT_CLOCK,
      stalled: ["polygon"],
    });
  });

  test("is not refused at its limit, but beyond", () => {
    expect(judge([chain("polygon", LIMIT), chain("base", 0)], []).stalled).toEqual([]);
    expect(judge([chain("polygon", LIMIT + 1), chain("base", 0)], []).stalled).toEqual(["polygon"]);
  });
});

describe("chains that look equally old", () => {
  const old = [chain("polygon", 10 * MINUTE), chain("base", 10 * MINUTE + 2_000), chain("nova", 10 * MINUTE + 900)];

  test("show a clock that is ahead while new blocks arrive", () => {
    expect(judge(old, [])).toEqual({ offsetMs: -10 * MINUTE, evidence: "blocks", stalled: [] });
  });

  test("show it even if a proxy on this machine tells the same wrong time", () => {
    expect(judge(old, [0, 300])).toEqual({ offsetMs: -10 * MINUTE, evidence: "blocks", stalled: [] });
  });

  test("stand still together if no new blocks arrive", () => {
    const still = old.map((member) => ({ ...member, isAdvancing: false }));
    expect(judge(still, [])).toEqual({ ...RIGHT_CLOCK, stalled: ["polygon", "base", "nova"] });
  });

  test("show a clock that is behind if their blocks are in the future", () => {
    const future = [chain("polygon", -5 * MINUTE), chain("base", -5 * MINUTE + 2_000)];
    expect(judge(future, [])).toEqual({ offsetMs: 5 * MINUTE, evidence: "blocks", stalled: [] });
  });

  test("prove nothing as a minority", () => {
    const others = [chain("optimism", 1_000), chain("linea", 2_000), chain("gnosis", 3_000)];
    const both = [chain("polygon", 10 * MINUTE), chain("base", 10 * MINUTE)];
    expect(judge([...both, ...others], [])).toEqual({ ...RIGHT_CLOCK, stalled: ["polygon", "base"] });
  });

  test("prove nothing if the others have other ages", () => {
    const others = [chain("optimism", 1_000), chain("linea", 130_000), chain("gnosis", 40 * MINUTE)];
    const chains = [chain("polygon", 5 * MINUTE), chain("base", 5 * MINUTE), ...others];
    expect(judge(chains, [])).toEqual({ ...RIGHT_CLOCK, stalled: ["polygon", "base", "linea", "gnosis"] });
  });

  test("stand out if one of them is older than the clock is wrong", () => {
    const chains = [...old, chain("optimism", 14 * MINUTE, { isAdvancing: false })];
    expect(judge(chains, [])).toEqual({ offsetMs: -10 * MINUTE, evidence: "blocks", stalled: ["optimism"] });
  });
});

describe("a single chain", () => {
  test("stands still if one endpoint reports old blocks", () => {
    expect(judge([chain("polygon", 10 * MINUTE)], [])).toEqual({ ...RIGHT_CLOCK, stalled: ["polygon"] });
  });

  test("shows a wrong clock if several endpoints agree about newer and newer blocks", () => {
    const confirmed = chain("polygon", 10 * MINUTE, { isConfirmed: true });
    expect(judge([confirmed], [])).toEqual({ offsetMs: -10 * MINUTE, evidence: "blocks", stalled: [] });
  });
});

describe("the header Date", () => {
  test("corrects the ages", () => {
    const chains = [chain("polygon", 10 * MINUTE + 3_000), chain("base", 10 * MINUTE + 1_000)];
    expect(judge(chains, [-10 * MINUTE])).toEqual({ offsetMs: -10 * MINUTE, evidence: "date", stalled: [] });
  });

  test("leaves a chain that stands still refused", () => {
    const chains = [chain("polygon", 14 * MINUTE), chain("base", 10 * MINUTE)];
    expect(judge(chains, [-10 * MINUTE]).stalled).toEqual(["polygon"]);
  });

  test("finds a stopped chain that a slow clock would hide", () => {
    expect(judge([chain("polygon", 1 * MINUTE)], [5 * MINUTE]).stalled).toEqual(["polygon"]);
  });

  test("does not count below five seconds", () => {
    expect(judge([chain("polygon", 0)], [MIN_CLOCK_OFFSET_MS - 1])).toEqual({ ...RIGHT_CLOCK, stalled: [] });
    expect(judge([chain("polygon", 0)], [MIN_CLOCK_OFFSET_MS]).evidence).toBe("date");
  });

  test("of a minority of hosts does not count", () => {
    expect(judge([chain("polygon", 0)], [-10 * MINUTE, 0]).evidence).toBeUndefined();
    expect(judge([chain("polygon", 0)], [-10 * MINUTE, 0, 100]).evidence).toBeUndefined();
  });
});

describe("for any chains", () => {
  const youngAge = fc.integer({ min: 0, max: 12_000 });
  const ages = fc.array(youngAge, { minLength: 2, maxLength: 9 });
  const offset = fc
    .integer({ min: -24 * 60 * MINUTE, max: 24 * 60 * MINUTE })
    .filter((ms) => Math.abs(ms) > 2 * MINUTE);
  const toChains = (values: readonly number[]) => values.map((ageMs, index) => chain(`chain${index}`, ageMs));

  test("a wrong clock refuses no chain that is well, whatever shows it", () => {
    fc.assert(
      fc.property(ages, offset, fc.boolean(), (values, offsetMs, hasDates) => {
        // The clock is wrong by as much as every block seems to be younger.
        const seen = toChains(values.map((ageMs) => ageMs - offsetMs));
        const { clock, stalled } = judgeBlockAges(seen, hasDates ? [offsetMs, offsetMs + 400] : []);
        expect([...stalled]).toEqual([]);
        expect(Math.abs(clock.offsetMs - offsetMs)).toBeLessThanOrEqual(12_000);
      }),
    );
  });

  test("a right clock refuses exactly the chains beyond their limit if a majority is well", () => {
    fc.assert(
      fc.property(ages, fc.array(fc.integer({ min: LIMIT + 1, max: 1e9 })), (values, old) => {
        fc.pre(old.length < values.length);
        const stopped = old.map((ageMs, index) => chain(`old${index}`, ageMs, { isAdvancing: false }));
        const { clock, stalled } = judgeBlockAges([...toChains(values), ...stopped], [0]);
        expect(clock).toEqual({ offsetMs: 0, evidence: undefined });
        expect([...stalled]).toEqual(stopped.map((member) => member.chain));
      }),
    );
  });

  test("a chain without new blocks is refused beyond its limit, with a right clock and with a wrong one", () => {
    fc.assert(
      fc.property(ages, offset, fc.integer({ min: LIMIT + MINUTE, max: 1e8 }), (values, offsetMs, ageMs) => {
        const seen = [...values, ageMs].map((value) => value - offsetMs);
        const chains = toChains(seen).map((member, index) => ({ ...member, isAdvancing: index < values.length }));
        expect([...judgeBlockAges(chains, [offsetMs]).stalled]).toEqual([`chain${values.length}`]);
        expect([...judgeBlockAges(chains, []).stalled]).toEqual([`chain${values.length}`]);
      }),
    );
  });

  test("the order of chains and hosts does not matter", () => {
    const anyAge = fc.integer({ min: -30 * MINUTE, max: 30 * MINUTE });
    const input = fc.record({ values: fc.array(anyAge, { maxLength: 9 }), dates: fc.array(anyAge, { maxLength: 5 }) });
    fc.assert(
      fc.property(input, ({ values, dates }) => {
        const { clock, stalled } = judgeBlockAges(toChains(values), dates);
        const reversed = judgeBlockAges(toChains(values).reverse(), [...dates].reverse());
        expect(reversed.clock).toEqual(clock);
        expect(new Set(reversed.stalled)).toEqual(new Set(stalled));
      }),
    );
  });
});
