import { fileURLToPath } from "node:url";
import { afterEach, expect, test, vi } from "vitest";
import { findTool } from "../../support/find-tool.js";

const here = fileURLToPath(import.meta.url);

afterEach(() => {
  vi.unstubAllEnvs();
});

test("a tool is where the first place is that exists", () => {
  expect(findTool("me", "/nowhere/me", here, process.execPath)).toBe(here);
});

test("a tool that is nowhere leaves a test out, but where none may be", () => {
  vi.stubEnv("REQUIRE_TOOLS", "");
  expect(findTool("me", "/nowhere/me")).toBeUndefined();
  vi.stubEnv("REQUIRE_TOOLS", "1");
  expect(() => findTool("me", "/nowhere/me", "/elsewhere/me")).toThrow("me is not on this machine");
});
