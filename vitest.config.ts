import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { FlakyTestsReporter } from "./test/support/flaky-tests-reporter.js";

/**
 * Left out unless TEST_EFFORT=full, which .ci/run sets: most pages in a browser, builds and installations of packages, and
 * what waits for outages. The others fail first on most mistakes, and end while one still remembers what was changed.
 */
const FULL_EFFORT_ONLY = [
  "test/browser/{docs,page-account,page-budgets,page-chains,page-compare,page-curve}.test.ts",
  "test/browser/{page-quote-failures,page-routes,page-transfer,page-views,page-withdrawal}.test.ts",
  "test/counts/**",
  "test/examples/{integrate,page-examples}.test.ts",
  "test/fault-injection/slow-chains.test.ts",
  "test/process/{backfill-index,limits/memory}.test.ts",
  "test/process/{openapi,package}/*.test.ts",
  "test/replicas/{leader-chaos,outages,redis-gateways,rolling-restart}.test.ts",
];

/** Starts one local Hop network for all tests of a project. */
const globalSetup = "test/support/service/local-network-setup.ts";
/** Checks every response of a gateway against the OpenAPI description. */
const setupFiles = ["test/support/contract/contract-setup.ts"];

export default defineConfig({
  // What the examples import from the package by its name, without a build.
  resolve: {
    alias: [
      {
        find: /^hop-gateway(\/|-)client$/,
        replacement: fileURLToPath(new URL("src/client.ts", import.meta.url)),
      },
    ],
  },
  test: {
    // Bounds that only a hang exceeds: no verdict may depend on how busy the machine is.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 60_000, interval: 20 } },
    // More than two cores have work for: many tests only wait.
    maxWorkers: 4,
    setupFiles: ["test/support/random-seed.ts"],
    exclude: process.env.TEST_EFFORT === "full" ? [] : FULL_EFFORT_ONLY,
    // One worker loads the modules once for all its files: state lives in objects that each test makes.
    isolate: false,
    // Set by .ci/run alone: one flaky test of nine thousand must not hold up a change, but it is named.
    retry: Number(process.env.TEST_RETRIES ?? 0),
    reporters: ["default", new FlakyTestsReporter()],
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["test/unit/**/*.test.ts"],
          exclude: ["test/unit/http/**"],
          setupFiles: ["test/support/unit-setup.ts"],
        },
      },
      // Their servers and connections end some seconds after a test, with timers that must not fire in those of another file.
      {
        extends: true,
        test: {
          name: "http",
          include: ["test/{unit/http,property}/**/*.test.ts"],
          isolate: true,
          setupFiles: ["test/support/unit-setup.ts"],
        },
      },
      { extends: true, test: { name: "process", include: ["test/process/**/*.test.ts"] } },
      // Counts what requests cost: `npm run counts:pin` writes the pinned numbers again.
      { extends: true, test: { name: "counts", include: ["test/counts/**/*.test.ts"] } },
      {
        extends: true,
        test: {
          name: "network",
          include: ["test/{e2e,parity,browser,examples}/**/*.test.ts"],
          globalSetup,
          setupFiles,
        },
      },
      // Each has a network of its own on which no other test acts, so that correct answers stay correct.
      {
        extends: true,
        test: { name: "fault-injection", include: ["test/fault-injection/**/*.test.ts"], globalSetup, setupFiles },
      },
      // Starts real servers from Debian's packages. Left out of `npm test` where they are missing.
      { extends: true, test: { name: "replicas", include: ["test/replicas/**/*.test.ts"], globalSetup, setupFiles } },
      { extends: true, test: { name: "fuzz", include: ["test/fuzz/**/*.test.ts"], globalSetup, setupFiles } },
    ],
  },
});
