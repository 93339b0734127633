// Assembles the package hop-gateway-client from a build: `node packaging/client.js <build> <folder>`, a step of
// packaging/build.js. `npm run tarball:client [folder]` packs the one of dist.
//
// It contains the files that its entries reach. Those of two dependencies are copied too: complete, they would be half of
// what npm installs, and a few files of them are used.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { renderLicences } from "./shipped-packages.js";

const ENTRIES = ["src/client.js", "gen/openapi.js"];
const COPIED_PACKAGES = ["@connectrpc/connect", "@noble/hashes"];
const IMPORT = /\b(from |import |import\()"([^"]+)"/g;

const project = fileURLToPath(new URL("..", import.meta.url));
const packages = join(project, "node_modules");

if (process.argv[2] === "pack") pack(resolve(process.argv[3] ?? project));
else assemble(resolve(process.argv[2]), resolve(process.argv[3]));

function assemble(build, folder) {
  rmSync(folder, { recursive: true, force: true });
  cpSync(join(project, "packages/client"), folder, { recursive: true });
  cpSync(join(project, "LICENSE"), join(folder, "LICENSE"));
  writeFileSync(join(folder, "THIRD_PARTY_LICENSES.txt"), renderLicences(COPIED_PACKAGES));
  const copied = new Set();
  for (const entry of ENTRIES) {
    copyReached(join(build, entry));
    copyReached(toTypes(join(build, entry)));
  }

  /** Copies a module and what it imports, or the types of a module and what they import. */
  function copyReached(file) {
    if (copied.has(file)) return;
    copied.add(file);
    const target = toTarget(file);
    const text = readFileSync(file, "utf8").replace(/^\/\/# sourceMappingURL=.*\n?/m, "");
    const redirected = text.replace(IMPORT, (statement, keyword, specifier) => {
      const module = locate(specifier, dirname(file));
      if (module === undefined) return statement;
      copyReached(file.endsWith(".d.ts") ? toTypes(module) : module);
      const path = relative(dirname(target), toTarget(module));
      return `${keyword}"${path.startsWith(".") ? path : `./${path}`}"`;
    });
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, redirected);
  }

  function toTarget(file) {
    const isCopied = file.startsWith(packages);
    return join(folder, "dist", isCopied ? join("vendor", relative(packages, file)) : relative(build, file));
  }
}

function toTypes(module) {
  return module.replace(/\.js$/, ".d.ts");
}

/** Returns the path of an imported module; undefined if it belongs to a package that npm installs. */
function locate(specifier, folder) {
  if (specifier.startsWith(".")) return join(folder, specifier);
  const name = specifier.split("/").slice(0, 2).join("/");
  if (!COPIED_PACKAGES.includes(name)) return undefined;
  const entry = `.${specifier.slice(name.length)}`;
  const target = JSON.parse(readFileSync(join(packages, name, "package.json"), "utf8")).exports[entry];
  return join(packages, name, target.import ?? target);
}

function pack(target) {
  execFileSync(process.execPath, [join(project, "packaging/build.js")], { stdio: "inherit" });
  const folder = join(project, "dist/node_modules/hop-gateway-client");
  mkdirSync(target, { recursive: true });
  const options = ["--ignore-scripts", "--loglevel=error", "--pack-destination", target];
  execFileSync("npm", ["pack", ...options], { cwd: folder, stdio: "inherit" });
}
