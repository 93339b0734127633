/**
 * Whether tests run in their long form: TEST_EFFORT=full, which .ci/run sets. Otherwise a test with thousands of cases
 * runs a selection of them.
 */
export const isFullEffort: boolean = process.env.TEST_EFFORT === "full";

/** Returns all cases in the long form, and otherwise the first ones. */
export function takeCases<T>(cases: readonly T[], count = 1): readonly T[] {
  return isFullEffort ? cases : cases.slice(0, count);
}
