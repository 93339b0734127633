import { execFile } from "node:child_process";
import { statSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { findTool } from "../../support/find-tool.js";
import { listProjectFiles, readProjectFile, toProjectPath } from "./deploy-files.js";

const shellcheck = findTool("shellcheck", "/usr/bin/shellcheck", "/usr/local/bin/shellcheck");
const run = promisify(execFile);
const folders = ["deploy/", ".ci/", "examples/"];
const scripts = folders
  .flatMap(listProjectFiles)
  .filter(
    (name) => statSync(toProjectPath(name)).isFile() && /^#!.*sh$/m.test(readProjectFile(name).split("\n")[0] ?? ""),
  );

describe("shell scripts", () => {
  test("are detected by their shebang line", () => {
    expect([...scripts].sort()).toEqual([
      ".ci/deploy.sh",
      ".ci/run",
      ".ci/with-node",
      "deploy/build.sh",
      "examples/curl.sh",
    ]);
  });

  test.skipIf(shellcheck === undefined).each(scripts)(
    "%s passes shellcheck (skipped if not installed)",
    async (name) => {
      const { stdout } = await run(shellcheck ?? "", [toProjectPath(name)]);
      expect(stdout).toBe("");
    },
  );
});

describe("deploy/build.sh", () => {
  const build = (...args: string[]) =>
    run("bash", [toProjectPath("deploy/build.sh"), ...args]).then(
      () => ({ code: 0, stderr: "" }),
      (error: { code: number; stderr: string }) => ({ code: error.code, stderr: error.stderr }),
    );

  test("requires exactly one folder", async () => {
    expect(await build()).toEqual({ code: 2, stderr: "usage: deploy/build.sh <folder>\n" });
  });

  test("rejects a folder that is not empty", async () => {
    const folder = await mkdtemp(join(tmpdir(), "hop-gateway-build-"));
    try {
      await writeFile(join(folder, "mine"), "");
      expect(await build(folder)).toEqual({ code: 2, stderr: `${folder} is not empty\n` });
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
