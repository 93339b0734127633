/**
 * Whether tests run in their long form: TEST_EFFORT=full, which .ci/run sets. Otherwise a test with thousands of cases
 * runs a selection of them.
 */
export const isFullEffort: boolean = process.env.TEST_EFFORT === "full";
