import { TestRunner, test } from "vitest";

/** Counts a change with which a module cannot be loaded as noticed: to Stryker, a file of tests that has none does not fail. */
// biome-ignore lint/style/noDefaultExport: Vitest imports the default.
export default class FailingImports extends TestRunner {
  override async importFile(filepath: string, source: Parameters<TestRunner["importFile"]>[1]): Promise<unknown> {
    try {
      return await super.importFile(filepath, source);
    } catch (error) {
      if (source !== "collect") throw error;
      test("is loaded", () => {
        throw error;
      });
      return undefined;
    }
  }
}
