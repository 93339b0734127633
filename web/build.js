// Assembles the pages in a folder: compiled scripts, static files, style sheets, and files copied from packages. Run by
// packaging/build.js.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import typescript from "typescript";

const here = dirname(fileURLToPath(import.meta.url));
const [, , out] = process.argv;
const require = createRequire(import.meta.url);

/** Files of packages -> names in dist/web, with their licences. They are copied, so that these stay development dependencies. */
const VENDORED_FILES = {
  "swagger-ui-dist/swagger-ui-bundle.js": "swagger-ui-bundle.js",
  "swagger-ui-dist/swagger-ui-bundle.js.LICENSE.txt": "swagger-ui-bundle.js.LICENSE.txt",
  "swagger-ui-dist/swagger-ui.css": "swagger-ui.css",
  "swagger-ui-dist/LICENSE": "swagger-ui.LICENSE.txt",
  "swagger-ui-dist/NOTICE": "swagger-ui.NOTICE.txt",
  "uplot/dist/uPlot.min.css": "uPlot.min.css",
  "uplot/LICENSE": "uPlot.LICENSE.txt",
  // What hashes, for the client's module.
  "@noble/hashes/sha3.js": "noble-hashes/sha3.js",
  "@noble/hashes/utils.js": "noble-hashes/utils.js",
  "@noble/hashes/_u64.js": "noble-hashes/_u64.js",
  "@noble/hashes/LICENSE": "noble-hashes.LICENSE.txt",
};

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
cpSync(join(here, "static"), out, { recursive: true });
cpSync(join(here, "styles"), out, { recursive: true, filter: (source) => !source.endsWith(".md") });
for (const [file, name] of Object.entries(VENDORED_FILES)) cpSync(join(here, "../node_modules", file), join(out, name));
// Only the script that defines a global variable is minified: half of the bytes of the module.
const plot = readFileSync(require.resolve("uplot/dist/uPlot.iife.min.js"), "utf8");
writeFileSync(join(out, "uPlot.esm.js"), `${plot}\nexport default uPlot;\n`);
compileForBrowser("src/client/withdrawal.ts", new Set());
writeFileSync(join(out, "withdrawal.js"), 'export * from "./client/src/client/withdrawal.js";\n');
writeFileSync(join(out, "tokens.json"), JSON.stringify(readTokenDecimals()));
execFileSync(
  process.execPath,
  [
    require.resolve("typescript/bin/tsc"),
    ...["-p", here, "--noEmit", "false", "--incremental", "false", "--outDir", out, "--rootDir", here],
  ],
  { stdio: "inherit" },
);

/** Compiles a file of the package, and what it imports, into out/client/. */
function compileForBrowser(file, compiled) {
  if (compiled.has(file)) return;
  compiled.add(file);
  const { target, module } = { target: typescript.ScriptTarget.ES2023, module: typescript.ModuleKind.ES2022 };
  const source = readFileSync(join(here, "..", file), "utf8");
  const compilerOptions = { target, module, verbatimModuleSyntax: true, removeComments: true };
  const { outputText } = typescript.transpileModule(source, { compilerOptions });
  const path = join(out, "client", file.replace(/\.ts$/, ".js"));
  mkdirSync(dirname(path), { recursive: true });
  // No bundler resolves the package.
  writeFileSync(path, outputText.replaceAll('"@noble/hashes/', '"/assets/noble-hashes/'));
  for (const [, imported] of outputText.matchAll(/ from "(\.[^"]+)\.js"/g))
    compileForBrowser(`${join(dirname(file), imported)}.ts`, compiled);
}

/** Returns decimals by token symbol: the API does not return them, and users type amounts in whole tokens. */
function readTokenDecimals() {
  const { HopBridge } = require("@hop-protocol/sdk");
  const { addresses } = require("@hop-protocol/sdk/addresses");
  const networks = ["mainnet", "goerli"];
  const tokens = networks.flatMap((network) =>
    Object.keys(addresses[network].bridges).map((token) => ({ network, token })),
  );
  return Object.fromEntries(tokens.map((token) => [token.token, new HopBridge(token).getTokenDecimals()]));
}
