import childProcess from "node:child_process";
import { syncBuiltinESMExports } from "node:module";
import { afterEach, vi } from "vitest";
import { keepTimersSteady } from "./steady-timers.js";

// Vitest's setupFile of the unit project, run for each test file.

keepTimersSteady();

// A test that fails before it restores the timers must not affect the next ones.
afterEach(() => {
  vi.useRealTimers();
});

/** Keeps unit tests fast: one that starts a process belongs in test/process, or in test/e2e if it needs the network. */
function forbid(): never {
  throw new Error("a unit test must not start a process: move it to test/process");
}

// spawn, fork, exec and execFile all end in this method, which Node's types do not declare; the synchronous functions do not.
Object.assign(childProcess.ChildProcess.prototype, { spawn: forbid });
Object.assign(childProcess, { spawnSync: forbid, execSync: forbid, execFileSync: forbid });
syncBuiltinESMExports();
