import { existsSync } from "node:fs";

/**
 * Returns the first existing path of a program that npm does not install, or undefined, so that its test is skipped.
 * Throws instead if REQUIRE_TOOLS is set, as in CI, so that no test is skipped there.
 * @param name Name of the program or package, for the error message.
 */
export function findTool(name: string, ...paths: readonly string[]): string | undefined {
  const path = paths.find((candidate) => existsSync(candidate));
  if (path === undefined && process.env.REQUIRE_TOOLS) {
    throw new Error(`${name} is not on this machine: none of ${paths.join(", ")}`);
  }
  return path;
}
