import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";

const vulnerability = (name: string, severity: string) => ({
  name,
  severity,
  title: "a vulnerability",
  url: "https://example.org/1",
});

/** Runs the check of CI on output of `npm audit --json`. */
function checkAudit(auditOutput: string): { status: number | null; stdout: string } {
  return spawnSync(process.execPath, [".ci/audit.mjs"], { input: auditOutput, encoding: "utf8" });
}

test.each([
  [
    "fails for a high severity",
    { a: { via: [vulnerability("a", "high")] }, b: { via: ["a"] } },
    1,
    "a: a vulnerability",
  ],
  ["fails for a critical severity", { a: { via: [vulnerability("a", "critical")] } }, 1, "a: a vulnerability"],
  ["passes for a moderate severity", { a: { via: [vulnerability("a", "moderate")] } }, 0, "none known"],
  ["passes without vulnerabilities", {}, 0, "none known"],
])("%s", (_, vulnerabilities, status, output) => {
  expect(checkAudit(JSON.stringify({ vulnerabilities }))).toMatchObject({
    status,
    stdout: expect.stringContaining(output) as unknown,
  });
});

test.each([
  ["an error", '{"error":{"summary":""}}'],
  ["nothing", ""],
])("passes if the registry returns %s", (_, auditOutput) => {
  expect(checkAudit(auditOutput)).toMatchObject({ status: 0, stdout: "unknown: the registry returned no audit\n" });
});
