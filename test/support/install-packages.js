import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Installs the packages of a folder's own lock file, unless that has been done since it last changed.
 * @param {string} folder
 * @returns {boolean} whether they are installed
 */
export function installPackages(folder) {
  const lock = join(folder, "package-lock.json");
  // `npm ci` removes node_modules first, so that the copy is only there after an installation that succeeded.
  const installed = join(folder, "node_modules", ".installed-lock.json");
  if (existsSync(installed) && readFileSync(installed, "utf8") === readFileSync(lock, "utf8")) return true;
  const { status } = spawnSync("npm", ["ci"], { cwd: folder, stdio: "inherit" });
  if (status === 0) copyFileSync(lock, installed);
  return status === 0;
}
