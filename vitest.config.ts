import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    testTimeout: 30_000,
    projects: [
      { extends: true, test: { name: "unit", include: ["test/{unit,property}/**/*.test.ts"] } },
      {
        extends: true,
        // One local Hop network for all of these.
        test: { name: "network", include: ["test/{e2e,parity}/**/*.test.ts"], globalSetup: "test/support/network.ts" },
      },
    ],
  },
});
