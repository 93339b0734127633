import type { Reporter, TestModule } from "vitest/node";

/**
 * Names the tests that passed only when they were run again, at the end of a run with TEST_RETRIES: each is a fault, of
 * the test or of what it tests.
 */
export class FlakyTestsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const flaky = modules.flatMap((module) =>
      [...module.children.allTests("passed")]
        .filter((test) => test.diagnostic()?.flaky)
        .map((test) => `  ${module.relativeModuleId} > ${test.fullName}`),
    );
    if (flaky.length > 0) {
      process.stderr.write(
        `${["FLAKY: these tests passed only at a second attempt. Mend them:", ...flaky].join("\n")}\n`,
      );
    }
  }
}
