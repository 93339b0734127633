import { fileURLToPath } from "node:url";
import { afterEach, expect, test, vi } from "vitest";
import { findTool } from "../../support/find-tool.js";

const here = fileURLToPath(import.meta.url);

afterEach(() => {
  vi.unstubAllEnvs();
});

test("returns the first path that exists", () => {
  expect(findTool("me", "/nowhere/me", here, process.execPath)).toBe(here);
});

test("returns undefined for a missing tool, but throws with REQUIRE_TOOLS", () => {
  vi.stubEnv("REQUIRE_TOOLS", "");
  expect(findTool("me", "/nowhere/me")).toBeUndefined();
  vi.stubEnv("REQUIRE_TOOLS", "1");
  expect(() => findTool("me", "/nowhere/me", "/elsewhere/me")).toThrow("me is not on this machine");
});
