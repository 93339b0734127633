import { execFile } from "node:child_process";
import { mkdir, rm, stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const projectFolder = fileURLToPath(new URL("../../..", import.meta.url));
const OUT = `${projectFolder}node_modules/.cache/test-service`;
const LOCK = `${OUT}.lock`;
/** Older locks belong to a test run that was killed. */
const LOCK_EXPIRY_MS = 120_000;
const LOCK_POLL_MS = 100;

/** Compiles the service for tests that start it as a process, and returns the path of its command. */
export async function buildService(): Promise<string> {
  await acquireLock();
  try {
    const args = [
      "-p",
      "tsconfig.build.json",
      "--noCheck",
      "--outDir",
      OUT,
      "--tsBuildInfoFile",
      `${OUT}/.tsbuildinfo`,
    ];
    const compiler = `${projectFolder}node_modules/typescript/bin/tsc`;
    await promisify(execFile)(process.execPath, [compiler, ...args], { cwd: projectFolder });
  } finally {
    await rm(LOCK, { recursive: true, force: true });
  }
  return `${OUT}/src/main.js`;
}

/** Serializes builds, because test files of several workers build at the same time; later builds find nothing to do. */
async function acquireLock(): Promise<void> {
  await mkdir(OUT, { recursive: true });
  for (;;) {
    try {
      await mkdir(LOCK);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const createdMs = await stat(LOCK).then(
      ({ mtimeMs }) => mtimeMs,
      () => Number.POSITIVE_INFINITY,
    );
    if (Date.now() - createdMs > LOCK_EXPIRY_MS) await rm(LOCK, { recursive: true, force: true });
    await sleep(LOCK_POLL_MS);
  }
}
