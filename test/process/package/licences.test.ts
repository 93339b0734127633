import { spawnSync } from "node:child_process";
import { copyFile, mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { useTemporaryFolder } from "../../support/temporary-folder.js";

const project = fileURLToPath(new URL("../../..", import.meta.url));
const folder = useTemporaryFolder();

/** Runs the licence gate in a project with one dependency. */
async function checkLicences(path: string, entry: Record<string, unknown>) {
  const checkout = await mkdtemp(join(folder(), "checkout-"));
  await mkdir(join(checkout, "packaging"));
  for (const name of ["licences.js", "shipped-packages.js"]) {
    await copyFile(join(project, "packaging", name), join(checkout, "packaging", name));
  }
  await writeFile(join(checkout, "package.json"), JSON.stringify({ type: "module" }));
  const packages = { "": { license: "UNLICENSED" }, [path]: { version: "1.0.0", ...entry } };
  await writeFile(join(checkout, "package-lock.json"), JSON.stringify({ packages }));
  const { status, stderr } = spawnSync(process.execPath, ["packaging/licences.js"], {
    cwd: checkout,
    encoding: "utf8",
  });
  return { status, stderr };
}

test.each(["MIT", "(MIT OR GPL-3.0)", "(Apache-2.0 AND BSD-3-Clause)", "BlueOak-1.0.0"])(
  "allows %s",
  async (license) => {
    expect(await checkLicences("node_modules/a", { license })).toEqual({ status: 0, stderr: "" });
  },
);

test.each(["GPL-3.0-or-later", "LGPL-3.0", "BUSL-1.1", "(MIT AND AGPL-3.0)", "MPL-2.0", "SEE LICENSE IN x", undefined])(
  "refuses %s",
  async (license) => {
    const stderr = `node_modules/a/node_modules/b 1.0.0: ${license ?? "no licence"} is not allowed\n`;
    expect(await checkLicences("node_modules/a/node_modules/b", { license })).toEqual({ status: 1, stderr });
    expect(await checkLicences("node_modules/a", { license, optional: true })).toMatchObject({ status: 1 });
  },
);

test("allows any licence of a development tool, but not of what is copied into the pages", async () => {
  const entry = { license: "GPL-3.0", dev: true };
  expect(await checkLicences("node_modules/a", entry)).toMatchObject({ status: 0 });
  expect(await checkLicences("node_modules/uplot", entry)).toMatchObject({ status: 1 });
});

test("finds nothing in this project", () => {
  const { status, stderr } = spawnSync(process.execPath, ["packaging/licences.js"], { cwd: project, encoding: "utf8" });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
});
