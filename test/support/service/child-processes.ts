import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Returns the IDs of all processes with those of their parents. */
async function listProcesses(): Promise<readonly (readonly number[])[]> {
  const { stdout } = await promisify(execFile)("ps", ["-A", "-o", "pid=,ppid="]);
  return stdout
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number));
}

/** Returns the IDs of the child processes of a process. */
export async function listChildProcesses(pid: number): Promise<number[]> {
  return (await listProcesses()).flatMap(([child = 0, parent]) => (parent === pid ? [child] : []));
}

/** Returns the IDs of the child processes of a process, of theirs, and so on. */
export async function listDescendants(pid: number): Promise<number[]> {
  const processes = await listProcesses();
  const below = (ancestor: number): number[] =>
    processes.flatMap(([child = 0, parent]) => (parent === ancestor ? [child, ...below(child)] : []));
  return below(pid);
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
