import { defineConfig } from "vitest/config";

/**
 * The unit and property tests that are about quotes and transfers. Tests of the server over them, which notice the same
 * changes late or by a time limit, are left out.
 */
export default defineConfig({
  test: {
    name: "unit",
    include: ["test/unit/{quotes,transfers,operations}/**/*.test.ts", "test/property/**/*.test.ts"],
    setupFiles: ["test/support/random-seed.ts", "test/support/unit-setup.ts", "test/mutation/setup.ts"],
    isolate: false,
    runner: "test/mutation/failing-imports.ts",
    // Many changes make a test wait for what never comes.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 10_000, interval: 20 } },
  },
});
