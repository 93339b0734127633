// Mutates source files and reports which changes no test notices: `npm run test:mutation -- src/quotes/math/fees.ts ...`;
// without files, src/quotes and src/transfers. What did not change since the last run is not tested again.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL(".", import.meta.url));
const project = fileURLToPath(new URL("../..", import.meta.url));
const files = process.argv.slice(2).filter((argument) => !argument.startsWith("-"));
const options = process.argv.slice(2).filter((argument) => argument.startsWith("-"));

if (!existsSync(`${folder}node_modules`)) run("npm", ["ci"], folder);
const stryker = `${folder}node_modules/@stryker-mutator/core/bin/stryker.js`;
const selection = files.length > 0 ? ["--mutate", files.join()] : [];
run(process.execPath, [stryker, "run", `${folder}stryker.config.json`, ...selection, ...options], project);

/**
 * @param {string} command
 * @param {string[]} args
 * @param {string} cwd
 */
function run(command, args, cwd) {
  const { status } = spawnSync(command, args, { cwd, stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}
