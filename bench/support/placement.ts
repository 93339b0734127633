import { spawnSync } from "node:child_process";

/**
 * On which cores server and generator run. On one core, CPU per request is that of the work itself. With a core of their own,
 * each write of a server wakes up an idle generator: two thirds of the system time of a small response.
 */
export type Placement = "one core" | "all cores";

/** The cores that this process could use when it started, such as "0-3"; undefined: they cannot be set. */
const allowedCores = readAllowedCores();

/** Returns the placements to measure: one core, and with UNPINNED=1 all cores after it. */
export function listPlacements(): readonly Placement[] {
  if (allowedCores === undefined) {
    console.log("(taskset is not installed: nothing is pinned to a core)");
    return ["all cores"];
  }
  return process.env.UNPINNED ? ["one core", "all cores"] : ["one core"];
}

/** Places this process, what it starts from now on, and servers that it has started. */
export function placeProcesses(placement: Placement, servers: readonly { readonly pid: number }[] = []): void {
  if (allowedCores === undefined) return;
  const cores = placement === "one core" ? (/\d+$/.exec(allowedCores)?.[0] ?? "") : allowedCores;
  for (const pid of [process.pid, ...servers.map((server) => server.pid)])
    runTaskset("-a", "-p", "-c", cores, `${pid}`);
}

function readAllowedCores(): string | undefined {
  return /: (\S+)$/m.exec(runTaskset("-p", "-c", `${process.pid}`))?.[1];
}

/** Returns what it prints; nothing if it is not installed. */
function runTaskset(...args: readonly string[]): string {
  return spawnSync("taskset", args, { encoding: "utf8" }).stdout ?? "";
}
