// Fuzzes the parsers with coverage as the guide: `npm run fuzz:parsers -- [target ...] [--seconds=60]`, that long for each.
//
// Inputs that reach new code are added to corpus/<target>.txt, one a line in base64; test/property/parsers.test.ts replays
// them. The first failure ends the run and is kept in dist/.
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { installPackages } from "../../support/install-packages.js";

const MAX_INPUT_BYTES = 2048;
/** An input that takes longer is a failure. */
const MAX_INPUT_SECONDS = 10;
const MAX_MEMORY_MIB = 1024;

const folder = fileURLToPath(new URL(".", import.meta.url));
const build = join(folder, "dist");
const corpora = join(folder, "corpus");
// The prebuilt fuzzer needs glibc 2.38. On an older system, this names a Node.js that runs with a newer one.
const node = process.env.FUZZ_NODE ?? process.execPath;

const { values, positionals } = parseArgs({
  options: { seconds: { type: "string", default: "60" } },
  allowPositionals: true,
});
const names = readdirSync(corpora).map((name) => name.replace(".txt", ""));
const targets = positionals.length > 0 ? positionals : names;
if (targets.some((target) => !names.includes(target))) exit(`targets: ${names.join(", ")}`);
if (!installPackages(folder)) exit("the fuzzer cannot be installed");
run("npx", ["--no-install", "tsc", "-p", folder], folder);
for (const target of targets) fuzz(target);

/** @param {string} target */
function fuzz(target) {
  const found = join(build, "corpus", target);
  const minimal = join(build, "minimal", target);
  const file = join(corpora, `${target}.txt`);
  for (const path of [found, minimal]) {
    rmSync(path, { recursive: true, force: true });
    mkdirSync(path, { recursive: true });
  }
  const inputs = readFileSync(file, "utf8").split("\n").filter(Boolean);
  inputs.forEach((input, index) => {
    writeFileSync(join(found, String(index)), Buffer.from(input, "base64"));
  });
  const artifacts = `-artifact_prefix=${join(build, target)}-`;
  startFuzzer(target, [found], [`-max_total_time=${values.seconds}`, "-print_final_stats=1", artifacts]);
  startFuzzer(target, [minimal, found], ["-merge=1"]);
  const kept = readdirSync(minimal).map((name) => readFileSync(join(minimal, name)).toString("base64"));
  if (kept.length === 0) exit("the corpus could not be minimized");
  writeFileSync(file, `${kept.sort((a, b) => a.length - b.length || (a < b ? -1 : 1)).join("\n")}\n`);
}

/**
 * @param {string} target
 * @param {string[]} folders
 * @param {string[]} options of libFuzzer
 */
function startFuzzer(target, folders, options) {
  const fuzzer = join(folder, "node_modules", "@jazzer.js", "core", "dist", "cli.js");
  const module = join(build, "test", "fuzz", "parsers", `${target}.js`);
  // The detectors look for calls of the shell and of files, which parsers do not make.
  // Of the targets too: an input that reaches one of their comparisons is worth keeping.
  const instrumented = ["-i", join(build, "src"), "-i", join(build, "test", "fuzz")];
  const instrumentation = ["--sync", ...instrumented, "--disableBugDetectors", ".*"];
  const limits = [`-max_len=${MAX_INPUT_BYTES}`, `-timeout=${MAX_INPUT_SECONDS}`, `-rss_limit_mb=${MAX_MEMORY_MIB}`];
  run(node, [fuzzer, module, ...folders, ...instrumentation, "--", ...limits, ...options], build);
}

/**
 * @param {string} command
 * @param {string[]} args
 * @param {string} cwd
 */
function run(command, args, cwd) {
  const { status } = spawnSync(command, args, { cwd, stdio: "inherit" });
  if (status !== 0) exit(`${command} ended with ${status}`);
}

/** @param {string} message */
function exit(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}
