// Builds the SQLite driver if it does not load: `npm run build:sqlite`, or for another folder with node_modules,
// `node packaging/sqlite.js <folder>`.
//
// The driver's package offers prebuilt binaries, which npm does not verify: they are not in the registry. Such a binary is
// used only if its archive has the SHA-256 of sqlite-hashes.json: file name -> hash, as the driver's page of releases shows
// it. Otherwise the driver is compiled from the sources in its package, whose hash is in the lock file; that takes a
// minute, Python, make and a C++ compiler.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const RELEASES = process.env.SQLITE_RELEASES_URL ?? "https://github.com/WiseLibs/better-sqlite3/releases/download";
const DOWNLOAD_TIMEOUT_MS = 60_000;

const project = fileURLToPath(new URL("..", import.meta.url));
const folder = resolve(process.argv[2] ?? project);
const driver = join(folder, "node_modules/better-sqlite3");

if (!loads()) {
  const isPrebuilt = (await installPrebuilt()) && loads();
  if (!isPrebuilt) compile();
}

function loads() {
  try {
    const program = `new (require(${JSON.stringify(driver)}))(":memory:")`;
    execFileSync(process.execPath, ["-e", program], { stdio: "ignore" });
    return true;
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

function compile() {
  // The warnings are not about our code.
  const env = {
    ...process.env,
    CFLAGS: `${process.env.CFLAGS ?? ""} -w`,
    CXXFLAGS: `${process.env.CXXFLAGS ?? ""} -w`,
  };
  const stdio = ["ignore", "ignore", "inherit"];
  execFileSync("npm", ["run", "--silent", "build-release"], { cwd: driver, env, stdio });
}

function report(problem) {
  process.stderr.write(`${problem}: the SQLite driver is compiled\n`);
  return false;
}
