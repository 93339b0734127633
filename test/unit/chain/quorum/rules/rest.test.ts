import { expect, test } from "vitest";
import { INITIAL_REST_STATE, isResting, onOutvoted } from "../../../../../src/chain/quorum/rules/rest.js";

const HOUR = 60 * 60_000;

test("an endpoint that is outvoted rests twice as long each time, half an hour at most", () => {
  let state = INITIAL_REST_STATE;
  let now = 0;
  const rests = Array.from({ length: 8 }, () => {
    state = onOutvoted(state, now);
    const restMs = state.restUntil - now;
    expect(isResting(state, now + restMs - 1)).toBe(true);
    expect(isResting(state, now + restMs)).toBe(false);
    now = state.restUntil;
    return restMs / 1_000;
  });
  expect(rests).toEqual([30, 60, 120, 240, 480, 960, 1_800, 1_800]);
});

test("an endpoint that is outvoted while it rests does not rest longer", () => {
  const state = onOutvoted(INITIAL_REST_STATE, 0);
  expect(onOutvoted(state, 10_000)).toBe(state);
});

test("after an hour without being outvoted, a rest is as short as the first", () => {
  const often = onOutvoted(onOutvoted(INITIAL_REST_STATE, 0), 30_000);
  expect(often.restUntil).toBe(90_000);
  const later = often.restUntil + HOUR + 1;
  expect(onOutvoted(often, later).restUntil - later).toBe(30_000);
});
