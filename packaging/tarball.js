// Packs what others install: `npm run tarball [folder]`, else into dist/.
//
// The package is laid out afresh in a folder of its own, so that nothing of an earlier build gets in. The SDK comes
// inside it as it is installed here: npm ignores `overrides` of a package that is installed for another one, and without
// them the SDK brings Hardhat (300 MB that nothing imports) and packages with known holes.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** These with all that they need. */
const bundled = ["@hop-protocol/sdk", "ethers"];
const copied = ["README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md", "proto", "gen/openapi.json"];

const project = fileURLToPath(new URL("..", import.meta.url));
const target = resolve(process.argv[2] ?? join(project, "dist"));
const stage = mkdtempSync(join(tmpdir(), "hop-gateway-package-"));
const require = createRequire(import.meta.url);
const readJson = (file) => JSON.parse(readFileSync(join(project, file), "utf8"));
const copy = (path) => cpSync(join(project, path), join(stage, path), { recursive: true });

try {
  const compiler = [require.resolve("typescript/bin/tsc"), "-p", join(project, "packaging")];
  execFileSync(process.execPath, [...compiler, "--outDir", join(stage, "dist")], { stdio: "inherit" });
  execFileSync(process.execPath, [join(project, "web/build.js"), join(stage, "dist/web")], { stdio: "inherit" });
  for (const path of copied) copy(path);

  const { scripts, devDependencies, overrides, ...manifest } = readJson("package.json");
  writeFileSync(join(stage, "package.json"), JSON.stringify({ ...manifest, bundleDependencies: bundled }, null, 2));
  for (const [path, { dev, devOptional, optional }] of Object.entries(readJson("package-lock.json").packages)) {
    if (path !== "" && !dev && !devOptional && !optional) copyPackage(path);
  }

  mkdirSync(target, { recursive: true });
  const packing = ["pack", "--ignore-scripts", "--loglevel=error", "--pack-destination", target];
  execFileSync("npm", packing, { cwd: stage, stdio: "inherit" });
} finally {
  rmSync(stage, { recursive: true, force: true });
}

/** Without the packages inside it: each has an entry of its own. */
function copyPackage(path) {
  const from = join(project, path);
  const inside = join(from, "node_modules");
  cpSync(from, join(stage, path), { recursive: true, filter: (source) => source !== inside });
}
