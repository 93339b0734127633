import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";

const hole = (name: string, severity: string) => ({ name, severity, title: "a hole", url: "https://example.org/1" });

/** What .ci/run makes of what `npm audit --json` says. */
function judge(said: string): { status: number | null; stdout: string } {
  return spawnSync(process.execPath, [".ci/audit.mjs"], { input: said, encoding: "utf8" });
}

test.each([
  ["a hole in what runs here", { a: { via: [hole("a", "high")] }, b: { via: ["a"] } }, 1, "a: a hole"],
  ["a critical one", { a: { via: [hole("a", "critical")] } }, 1, "a: a hole"],
  ["small holes", { a: { via: [hole("a", "moderate")] } }, 0, "0 known"],
  ["a hole in what does not run", { a: { via: [hole("@openzeppelin/contracts", "high")] } }, 0, "1 known"],
  ["none", {}, 0, "0 known"],
])("%s", (_, vulnerabilities, status, says) => {
  expect(judge(JSON.stringify({ vulnerabilities }))).toMatchObject({
    status,
    stdout: expect.stringContaining(says) as unknown,
  });
});

test.each([
  ["an error", '{"error":{"summary":""}}'],
  ["nothing", ""],
])("%s from the registry is no failure", (_, said) => {
  expect(judge(said)).toMatchObject({ status: 0, stdout: "not known: the registry does not answer\n" });
});
