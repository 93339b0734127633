// Builds dist/ if an input has changed since the last build: `npm run build`.
//
// dist is a link to a folder in .dist/ that is named after its inputs and never changed again. A running server, a second
// build at the same time and a killed build therefore do not affect each other.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  constants,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const PACKAGES = ["package.json", "package-lock.json", "node_modules/.package-lock.json", "packaging/build.js"];
// The pages contain a module of the client, and what it imports.
const CLIENT_INPUTS = ["src/client", "src/chain/abi", "src/chain/hex.ts", "src/hop", "gen/hop"];
const PAGE_INPUTS = [...PACKAGES, "tsconfig.json", "web", ...CLIENT_INPUTS];
// The benchmarks import from test/support.
const CODE_FOLDERS = ["src", "gen", "devnet", "bench", "examples", "test/support", "test/replicas/support"];
const CLIENT_PACKAGE = ["packages/client", "packaging/client.js", "packaging/shipped-packages.js", "LICENSE"];
const GUIDE = ["docs/integrate.md", "packaging/guide.js"];
const INPUTS = [...PAGE_INPUTS, "tsconfig.build.json", ...CODE_FOLDERS, ...CLIENT_PACKAGE, ...GUIDE];
/** Earlier builds that stay for the servers that were started from them. */
const KEPT_BUILDS = 8;
/** Without the lock, two builds at once would only do the same work twice. */
const MAX_LOCK_WAIT_MS = 120_000;
const LOCK_POLL_MS = 50;

const project = fileURLToPath(new URL("..", import.meta.url));
const dist = join(project, "dist");
const builds = join(project, ".dist");
const stage = join(builds, `stage-${process.pid}`);
const lock = join(builds, "lock");

if (!isCurrent(hashFiles(INPUTS))) {
  mkdirSync(builds, { recursive: true });
  await acquireLock();
  try {
    process.exitCode = await update();
  } finally {
    rmSync(stage, { recursive: true, force: true });
    rmSync(lock, { force: true });
  }
}

/** Builds what the inputs say when the build ends, and returns the exit code of the first step that fails, or 0. */
async function update() {
  for (;;) {
    const id = hashFiles(INPUTS);
    if (isCurrent(id)) return 0;
    const folder = join(builds, id);
    if (!existsSync(folder)) {
      const code = await build();
      if (code !== 0) return code;
      if (hashFiles(INPUTS) !== id) continue;
      if (!existsSync(folder)) renameSync(stage, folder);
    }
    publish(id);
    removeOldBuilds(id);
  }
}

/** Returns a hash of the paths and contents of all files in these files and folders. */
function hashFiles(inputs) {
  const hash = createHash("sha256");
  for (const file of inputs.flatMap((input) => listFiles(join(project, input)))) {
    const content = readFileSync(file);
    hash.update(`${relative(project, file)}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex").slice(0, 16);
}

function listFiles(path) {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats?.isDirectory()) return stats === undefined ? [] : [path];
  const entries = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return entries.map((entry) => join(entry.parentPath, entry.name)).sort();
}

function isCurrent(id) {
  const isLink = lstatSync(dist, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  return isLink && readlinkSync(dist) === join(".dist", id) && existsSync(dist);
}

/** Waits until no other process builds. The lock is a link, so that it names its holder from the moment it exists. */
async function acquireLock() {
  let isWaiting = false;
  for (const began = Date.now(); ; await sleep(LOCK_POLL_MS)) {
    try {
      symlinkSync(`${process.pid}`, lock);
      return;
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
    }
    const holder = readHolder();
    if (holder === undefined) continue;
    if (!isRunning(holder) || Date.now() - began > MAX_LOCK_WAIT_MS) rmSync(lock, { force: true });
    else if (!isWaiting) process.stderr.write(`waiting for the build of process ${holder}\n`);
    isWaiting = true;
  }
}

/** Returns the process that holds the lock; undefined if it has just been released. */
function readHolder() {
  try {
    return Number(readlinkSync(lock));
  } catch {
    return undefined;
  }
}

function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

/**
 * Builds into the stage and returns the exit code of the first step that fails, or 0. The stage begins as a copy of the
 * last build, so that only what changed is compiled.
 */
async function build() {
  const isFirst = !existsSync(join(dist, ".tsbuildinfo"));
  // Without it, a new user sees nothing until the build has ended.
  if (isFirst) process.stderr.write("compiling for the first time: this takes some ten seconds\n");
  else if (!existsSync(stage)) cpSync(realpathSync(dist), stage, { recursive: true, mode: constants.COPYFILE_FICLONE });
  const compiler = createRequire(import.meta.url).resolve("typescript/bin/tsc");
  const output = ["--outDir", stage, "--tsBuildInfoFile", join(stage, ".tsbuildinfo")];
  // Types are checked by `npm run check`.
  const steps = [runNode(compiler, "-p", join(project, "tsconfig.build.json"), "--noCheck", ...output)];
  const pages = hashFiles(PAGE_INPUTS);
  const stamp = join(stage, ".pages");
  const hasPages = existsSync(stamp) && readFileSync(stamp, "utf8") === pages;
  if (!hasPages) steps.push(runNode(join(project, "web/build.js"), join(stage, "web")));
  const code = (await Promise.all(steps)).find((code) => code !== 0) ?? 0;
  if (code !== 0) return code;
  writeFileSync(stamp, pages);
  for (const file of CODE_FOLDERS.flatMap((folder) => listFiles(join(stage, folder)))) {
    const source = join(project, relative(stage, file)).replace(/(\.d\.ts|\.js)(\.map)?$/, ".ts");
    if (!existsSync(source)) rmSync(file);
  }
  const guide = [join(project, "docs/integrate.md"), join(stage, "web/integrate.html")];
  // Where the examples, as built, find it.
  const client = [stage, join(stage, "node_modules/hop-gateway-client")];
  const made = [
    runNode(join(project, "packaging/guide.js"), ...guide),
    runNode(join(project, "packaging/client.js"), ...client),
  ];
  return (await Promise.all(made)).find((code) => code !== 0) ?? 0;
}

async function runNode(...args) {
  const [code] = await once(spawn(process.execPath, args, { stdio: "inherit" }), "exit");
  return code ?? 1;
}

/** Makes dist lead to this build, in one step. */
function publish(id) {
  const stats = lstatSync(dist, { throwIfNoEntry: false });
  // Before it was a link, dist was a folder.
  if (stats?.isDirectory()) renameSync(dist, join(builds, `folder-${process.pid}`));
  const link = join(builds, `link-${process.pid}`);
  symlinkSync(join(".dist", id), link);
  renameSync(link, dist);
}

/** Removes what killed builds left, and all builds but those that were published last and that of `npm run dev`. */
function removeOldBuilds(current) {
  const now = new Date();
  utimesSync(join(builds, current), now, now);
  const names = readdirSync(builds).filter((name) => name !== "lock" && name !== "dev");
  const isLeft = (name) => /^(stage|link)-/.test(name);
  const abandoned = names.filter((name) => isLeft(name) && !isRunning(Number(name.split("-")[1])));
  const byAge = names
    .filter((name) => !isLeft(name))
    .map((name) => ({ name, mtimeMs: statSync(join(builds, name)).mtimeMs }))
    .sort((one, other) => other.mtimeMs - one.mtimeMs)
    .map(({ name }) => name);
  for (const name of [...abandoned, ...byAge.slice(KEPT_BUILDS)])
    rmSync(join(builds, name), { recursive: true, force: true });
}
