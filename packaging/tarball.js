// Packs the npm package into a folder, by default dist/: `npm run tarball [folder]`.
//
// The package is assembled in a new folder, so that it contains nothing of an earlier build. The SDK is bundled as it is
// installed here: npm ignores `overrides` of an installed dependency, and without them the SDK installs Hardhat (300 MB
// that nothing imports) and packages with known vulnerabilities.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** Bundled with all their dependencies. */
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

/** Without nested packages, which have separate entries. */
function copyPackage(path) {
  const from = join(project, path);
  const inside = join(from, "node_modules");
  cpSync(from, join(stage, path), { recursive: true, filter: (source) => source !== inside });
}
