// What browsers are given, put together in dist/web: compiled scripts, static files, and packages' files as they are.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "../dist/web");
const require = createRequire(import.meta.url);

/**
 * Files of packages, and under which names. They are copied, so that whoever runs the service needs none of these
 * packages; what their licences want to come along does.
 */
const borrowed = {
  "swagger-ui-dist/swagger-ui-bundle.js": "swagger-ui-bundle.js",
  "swagger-ui-dist/swagger-ui-bundle.js.LICENSE.txt": "swagger-ui-bundle.js.LICENSE.txt",
  "swagger-ui-dist/swagger-ui.css": "swagger-ui.css",
  "swagger-ui-dist/LICENSE": "swagger-ui.LICENSE.txt",
  "swagger-ui-dist/NOTICE": "swagger-ui.NOTICE.txt",
  "uplot/dist/uPlot.esm.js": "uPlot.esm.js",
  "uplot/dist/uPlot.min.css": "uPlot.min.css",
  "uplot/LICENSE": "uPlot.LICENSE.txt",
};

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
cpSync(join(here, "static"), out, { recursive: true });
for (const [file, name] of Object.entries(borrowed)) cpSync(require.resolve(file), join(out, name));
writeFileSync(join(out, "tokens.json"), JSON.stringify(tokenDecimals()));
execFileSync(
  process.execPath,
  [
    require.resolve("typescript/bin/tsc"),
    ...["-p", here, "--noEmit", "false", "--incremental", "false", "--outDir", out, "--rootDir", here],
  ],
  { stdio: "inherit" },
);

/** Decimals by token symbol: the interface does not tell them, and amounts are typed in whole tokens. */
function tokenDecimals() {
  const { HopBridge } = require("@hop-protocol/sdk");
  const { addresses } = require("@hop-protocol/sdk/addresses");
  const networks = ["mainnet", "goerli"];
  const symbols = networks.flatMap((network) =>
    Object.keys(addresses[network].bridges).map((token) => ({ network, token })),
  );
  return Object.fromEntries(symbols.map((each) => [each.token, new HopBridge(each).getTokenDecimals()]));
}
