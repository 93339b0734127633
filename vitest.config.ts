import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** One local Hop network for all tests of a project. */
const globalSetup = "test/support/service/local-network-setup.ts";
/** Every answer of a gateway is held against the OpenAPI description. */
const setupFiles = ["test/support/contract/contract-setup.ts"];

export default defineConfig({
  // What the examples import from the package by its name, without a build.
  resolve: {
    alias: [
      {
        find: /^hop-gateway\/(client|node-client)$/,
        replacement: fileURLToPath(new URL("src/$1.ts", import.meta.url)),
      },
    ],
  },
  test: {
    testTimeout: 30_000,
    // Also on two cores: many tests only wait.
    maxWorkers: 2,
    projects: [
      { extends: true, test: { name: "unit", include: ["test/{unit,property,package}/**/*.test.ts"] } },
      {
        extends: true,
        test: {
          name: "network",
          include: ["test/{e2e,parity,browser,examples}/**/*.test.ts"],
          globalSetup,
          setupFiles,
        },
      },
      // One of its own, on which nothing happens meanwhile: what is right stays right.
      {
        extends: true,
        test: { name: "hostile", include: ["test/{fault-injection,fuzz}/**/*.test.ts"], globalSetup, setupFiles },
      },
    ],
  },
});
