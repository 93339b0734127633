import { defineConfig } from "vitest/config";

/** One local Hop network for all tests of a project. */
const globalSetup = "test/support/network.ts";

export default defineConfig({
  test: {
    testTimeout: 30_000,
    // Also on two cores: many tests only wait.
    maxWorkers: 2,
    projects: [
      { extends: true, test: { name: "unit", include: ["test/{unit,property}/**/*.test.ts"] } },
      { extends: true, test: { name: "network", include: ["test/{e2e,parity}/**/*.test.ts"], globalSetup } },
      // One of its own, on which nothing happens meanwhile: what is right stays right.
      { extends: true, test: { name: "hostile", include: ["test/{faults,attack}/**/*.test.ts"], globalSetup } },
    ],
  },
});
