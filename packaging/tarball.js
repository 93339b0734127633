// Packs the npm package into a folder, by default the project: `npm run tarball [folder]`.
//
// The package is assembled in a new folder, so that it contains nothing of an earlier build. The SDK is bundled as it is
// installed here: npm ignores `overrides` of an installed dependency, and without them the SDK installs Hardhat (300 MB
// that nothing imports) and packages with known vulnerabilities.
import { execFileSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { listShippedPackages } from "./shipped-packages.js";

/** Bundled with all their dependencies. */
const bundled = ["@hop-protocol/sdk", "ethers"];
const documents = ["README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md"];
const copied = [...documents, "proto", "gen/openapi.json"];

const project = fileURLToPath(new URL("..", import.meta.url));
const target = resolve(process.argv[2] ?? project);
const stage = mkdtempSync(join(tmpdir(), "hop-gateway-package-"));
const readJson = (file) => JSON.parse(readFileSync(join(project, file), "utf8"));
const copy = (path) => cpSync(join(project, path), join(stage, path), { recursive: true });

try {
  execFileSync(process.execPath, [join(project, "packaging/build.js")], { stdio: "inherit" });
  const build = realpathSync(join(project, "dist"));
  for (const part of ["src", "gen", "web"]) copyBuild(join(build, part), join(stage, "dist", part));
  for (const path of copied) copy(path);

  const { scripts, devDependencies, overrides, ...manifest } = readJson("package.json");
  writeFileSync(join(stage, "package.json"), JSON.stringify({ ...manifest, bundleDependencies: bundled }, null, 2));
  for (const { path, isOptional, isInPages } of listShippedPackages()) {
    if (!isOptional && !isInPages) copyPackage(path);
  }
  execFileSync(process.execPath, [join(project, "packaging/licences.js"), stage], { stdio: "inherit" });

  mkdirSync(target, { recursive: true });
  const packing = ["pack", "--ignore-scripts", "--loglevel=error", "--pack-destination", target];
  execFileSync("npm", packing, { cwd: stage, stdio: "inherit" });
} finally {
  rmSync(stage, { recursive: true, force: true });
}

/** Without source maps: the sources that they lead to are not in the package. */
function copyBuild(from, to) {
  cpSync(from, to, { recursive: true, filter: (source) => !source.endsWith(".map") });
  for (const name of readdirSync(to, { recursive: true }).filter((name) => name.endsWith(".js"))) {
    const file = join(to, name);
    writeFileSync(file, readFileSync(file, "utf8").replace(/^\/\/# sourceMappingURL=.*\n?/m, ""));
  }
}

/** Without nested packages, which have separate entries. */
function copyPackage(path) {
  const from = join(project, path);
  const inside = join(from, "node_modules");
  cpSync(from, join(stage, path), { recursive: true, filter: (source) => source !== inside });
}
