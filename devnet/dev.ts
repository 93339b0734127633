import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { findPackageRoot } from "../src/app/package-files.js";
import { stopOnSignals } from "../src/app/process-lifecycle.js";
import { startLocalNetwork } from "./network.js";
import { runCleanups } from "./run-cleanups.js";

// Runs the service over a local Hop network, and starts it again when a source file has changed: npm run dev.

/** The compiler's output. The builds of packaging/build.js never change, so nothing could be watched there. */
const OUTPUT_FOLDER = ".dist/dev";
const BLOCK_TIME_MS = 1_000;
/** What the compiler prints when it waits for the next change. */
const COMPILED_PATTERN = /Watching for file changes/;

async function main(): Promise<void> {
  const { url: root } = findPackageRoot();
  const network = await startLocalNetwork({ log: console.log, blockTimeMs: BLOCK_TIME_MS });
  const children: ChildProcess[] = [];
  const run = (args: readonly string[], options: { readonly isPiped: boolean }): ChildProcess => {
    const { HOST = "127.0.0.1" } = process.env;
    const child = spawn(process.execPath, args, {
      cwd: fileURLToPath(root),
      env: { ...process.env, HOST, ...network.environment },
      stdio: ["ignore", options.isPiped ? "pipe" : "inherit", "inherit"],
    });
    children.push(child);
    return child;
  };
  stopOnSignals(async () => {
    await Promise.all(children.map(endChild));
    await runCleanups([network.stop]);
  });
  network.bonder.start();
  // Only what has changed since the last build is compiled.
  const folder = fileURLToPath(new URL(OUTPUT_FOLDER, root));
  cpSync(realpathSync(new URL("dist", root)), folder, { recursive: true });
  const compiler = createRequire(import.meta.url).resolve("typescript/bin/tsc");
  // Types are checked by `npm run check`.
  const output = ["--outDir", OUTPUT_FOLDER, "--tsBuildInfoFile", `${OUTPUT_FOLDER}/.tsbuildinfo`, "--noCheck"];
  const watch = ["--project", "tsconfig.build.json", "--watch", "--preserveWatchOutput"];
  await waitForOutput(run([compiler, ...watch, ...output], { isPiped: true }), COMPILED_PATTERN);
  run(["--watch", "--watch-preserve-output", `${OUTPUT_FOLDER}/src/main.js`], { isPiped: false });
}

/** Prints what a process writes, and waits until it matches. */
async function waitForOutput({ stdout }: ChildProcess, pattern: RegExp): Promise<void> {
  stdout?.on("data", (chunk: Buffer) => process.stdout.write(chunk));
  await new Promise<void>((resolve) => stdout?.on("data", (chunk: Buffer) => pattern.test(String(chunk)) && resolve()));
}

async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, "exit");
  child.kill("SIGTERM");
  await exit;
}

await main();
