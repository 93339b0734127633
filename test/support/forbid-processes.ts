import childProcess from "node:child_process";
import { syncBuiltinESMExports } from "node:module";

// Vitest's setupFile of the unit project: its tests start no process, so that they stay fast. A test that has to start
// one belongs in test/process, or in test/e2e where it also needs the local Hop network.

function forbid(): never {
  throw new Error("a unit test must not start a process: move it to test/process");
}

// spawn, fork, exec and execFile all end in this method, which Node's types do not declare; the synchronous functions do not.
Object.assign(childProcess.ChildProcess.prototype, { spawn: forbid });
Object.assign(childProcess, { spawnSync: forbid, execSync: forbid, execFileSync: forbid });
syncBuiltinESMExports();
