// Mutates source files and reports which changes no test notices: `npm run test:mutation -- src/quotes/math/fees.ts ...`;
// without files, src/quotes and src/transfers. What did not change since the last run is not tested again.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { installPackages } from "../support/install-packages.js";

const folder = fileURLToPath(new URL(".", import.meta.url));
const project = fileURLToPath(new URL("../..", import.meta.url));
const files = process.argv.slice(2).filter((argument) => !argument.startsWith("-"));
const options = process.argv.slice(2).filter((argument) => argument.startsWith("-"));

if (!installPackages(folder)) process.exit(1);
const stryker = `${folder}node_modules/@stryker-mutator/core/bin/stryker.js`;
const selection = files.length > 0 ? ["--mutate", files.join()] : [];
const command = [stryker, "run", `${folder}stryker.config.json`, ...selection, ...options];
process.exitCode = spawnSync(process.execPath, command, { cwd: project, stdio: "inherit" }).status ?? 1;
