import { existsSync } from "node:fs";

/**
 * Where a program that npm does not install is: the first of the places that exists, or undefined, for a test that is
 * then skipped. Throws instead where the variable REQUIRE_TOOLS is set, as CI does, so that no test is left out there.
 * @param name as a newcomer would look for it, for the message
 */
export function findTool(name: string, ...places: readonly string[]): string | undefined {
  const found = places.find((place) => existsSync(place));
  if (found === undefined && process.env.REQUIRE_TOOLS) {
    throw new Error(`${name} is not on this machine: none of ${places.join(", ")}`);
  }
  return found;
}
