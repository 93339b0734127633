// Builds the SQLite driver if it does not load: `npm run build:sqlite`; where the package is installed,
// `node node_modules/hop-gateway/packaging/sqlite.js`; for another folder with node_modules, `node packaging/sqlite.js <folder>`.
// A binary works with one ABI of Node.js: each is kept in a folder of its own, so that several versions can use the same
// node_modules.
//
// The driver's package offers prebuilt binaries, which npm does not verify: they are not in the registry. Such a binary is
// used only if its archive has the SHA-256 of sqlite-hashes.json: file name -> hash, as the driver's page of releases shows
// it. Otherwise the driver is compiled from the sources in its package, whose hash is in the lock file; that takes a
// minute, Python, make and a C++ compiler.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";

const RELEASES = process.env.SQLITE_RELEASES_URL ?? "https://github.com/WiseLibs/better-sqlite3/releases/download";
const DOWNLOAD_TIMEOUT_MS = 60_000;

const [, , folder] = process.argv;
const driver =
  folder === undefined
    ? dirname(createRequire(import.meta.url).resolve("better-sqlite3/package.json"))
    : resolve(folder, "node_modules/better-sqlite3");
/** Where a build leaves the binary. The driver looks here first, and no further if it is one for another ABI. */
const output = join(driver, "build");
const BUILT = "build/Release/better_sqlite3.node";
const built = join(driver, BUILT);
/** Where the driver looks last: in a folder named after the ABI, the system and the processor. */
const abi = `node-v${process.versions.modules}-${process.platform}-${process.arch}`;
const kept = join(driver, "lib/binding", abi, "better_sqlite3.node");

if (!isUsable()) {
  rmSync(output, { recursive: true, force: true });
  const isPrebuilt = (await installPrebuilt()) && isUsable();
  if (!isPrebuilt) compile();
}
if (existsSync(built)) {
  mkdirSync(dirname(kept), { recursive: true });
  renameSync(built, kept);
  rmSync(output, { recursive: true });
}

function isUsable() {
  try {
    const program = `new (require(${JSON.stringify(driver)}))(":memory:")`;
    execFileSync(process.execPath, ["-e", program], { stdio: "ignore" });
    // What sqlite-object-wrap.h keeps out of it. Node.js 26 does not need that.
    const binary = readFileSync(existsSync(built) ? built : kept);
    return !(process.version.startsWith("v24.") && binary.includes("RemoveEnvironmentCleanupHook"));
  } catch {
    return false;
  }
}

/** Downloads the binary for this platform and returns whether it is the one whose hash is known. */
async function installPrebuilt() {
  const hashes = JSON.parse(readFileSync(new URL("sqlite-hashes.json", import.meta.url), "utf8"));
  const { version } = JSON.parse(readFileSync(join(driver, "package.json"), "utf8"));
  const { glibcVersionRuntime } = process.report.getReport().header;
  const libc = process.platform === "linux" && glibcVersionRuntime === undefined ? "musl" : "";
  const target = `node-v${process.versions.modules}-${process.platform}${libc}-${process.arch}`;
  const archive = `better-sqlite3-v${version}-${target}.tar.gz`;
  if (hashes[archive] === undefined) return report(`no hash of ${archive} is known`);
  try {
    const signal = AbortSignal.timeout(DOWNLOAD_TIMEOUT_MS);
    const response = await fetch(`${RELEASES}/v${version}/${archive}`, { signal });
    if (!response.ok) return report(`${archive}: status ${response.status}`);
    const bytes = Buffer.from(await response.arrayBuffer());
    const hash = createHash("sha256").update(bytes).digest("hex");
    if (hash !== hashes[archive]) return report(`${archive} has the SHA-256 ${hash}, which is not the known one`);
    execFileSync("tar", ["-xzf", "-", "-C", driver], { input: bytes });
    return true;
  } catch (error) {
    return report(`${archive} cannot be downloaded: ${error.cause?.code ?? error.message}`);
  }
}

/** Compiles a copy in the folder for temporary files: the driver's makefile fails where a path has a space or a quote. */
function compile() {
  const copy = mkdtempSync(join(tmpdir(), "sqlite-driver-"));
  try {
    cpSync(driver, copy, { recursive: true });
    const objectWrap = join(copy, "sqlite-object-wrap.h");
    copyFileSync(new URL("sqlite-object-wrap.h", import.meta.url), objectWrap);
    const headers = findHeaders();
    // The warnings are not about our code.
    const env = {
      ...process.env,
      CFLAGS: `${process.env.CFLAGS ?? ""} -w`,
      CXXFLAGS: `${process.env.CXXFLAGS ?? ""} -w -include ${objectWrap}`,
      ...(headers === undefined ? {} : { npm_config_nodedir: headers }),
    };
    const stdio = ["ignore", "ignore", "inherit"];
    execFileSync("npm", ["run", "--silent", "build-release"], { cwd: copy, env, stdio });
    mkdirSync(dirname(built), { recursive: true });
    copyFileSync(join(copy, BUILT), built);
  } finally {
    rmSync(copy, { recursive: true });
  }
}

/** Returns the folder that Node.js is installed in if its headers are there. Otherwise node-gyp downloads them. */
function findHeaders() {
  const installed = dirname(dirname(process.execPath));
  try {
    const version = readFileSync(join(installed, "include/node/node_version.h"), "utf8");
    return version.includes(`#define NODE_MODULE_VERSION ${process.versions.modules}\n`) ? installed : undefined;
  } catch {
    return undefined;
  }
}

function report(problem) {
  process.stderr.write(`${problem}: the SQLite driver is compiled\n`);
  return false;
}
