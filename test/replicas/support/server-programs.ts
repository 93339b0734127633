import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { findTool } from "../../support/find-tool.js";

const POSTGRES_VERSIONS = "/usr/lib/postgresql";

/** Folder of PostgreSQL's programs, the newest version; undefined: they are missing, and the tests are left out. */
export const postgresPrograms: string | undefined = findPostgresPrograms();
export const pgBouncerProgram: string | undefined = findTool("pgbouncer", "/usr/sbin/pgbouncer", "/usr/bin/pgbouncer");

export const redisProgram: string | undefined = findTool("redis-server", "/usr/bin/redis-server");
export const haproxyProgram: string | undefined = findTool("haproxy", "/usr/sbin/haproxy");

/** Appended to the name of a suite, so that the report says why it was skipped. */
export function leftOut(...programs: readonly (string | undefined)[]): string {
  return programs.includes(undefined) ? " (left out: a server program of Debian's packages is missing)" : "";
}

/** User and group that a server runs as; none unless this process is root. */
export function findServerUser(name: string): { readonly uid?: number; readonly gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string): number => Number(execFileSync("id", [flag, name], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

function findPostgresPrograms(): string | undefined {
  let versions: string[] = [];
  try {
    versions = readdirSync(POSTGRES_VERSIONS).toSorted((a, b) => Number(b) - Number(a));
  } catch {
    // Not installed.
  }
  const paths = versions.map((version) => join(POSTGRES_VERSIONS, version, "bin"));
  return findTool("PostgreSQL", ...paths, ...(paths.length > 0 ? [] : [join(POSTGRES_VERSIONS, "15/bin")]));
}
