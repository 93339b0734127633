import { createHash, randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, utimesSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { findProjectFolder, getCacheFolder } from "./project-folders.js";

export interface ContractArtifact {
  readonly abi: readonly unknown[];
  /** Creation code, 0x-prefixed hex. */
  readonly bytecode: string;
  /** Runtime code, 0x-prefixed hex. Our contracts have no immutables, so it can be placed as it is. */
  readonly deployedBytecode: string;
}

interface CompilerOutput {
  readonly errors?: readonly { readonly severity: string; readonly formattedMessage: string }[];
  readonly contracts?: Record<
    string,
    Record<
      string,
      {
        readonly abi: readonly unknown[];
        readonly evm: {
          readonly bytecode: { readonly object: string };
          readonly deployedBytecode: { readonly object: string };
        };
      }
    >
  >;
}

const require = createRequire(import.meta.url);

/** Code for `london` runs on every later hard fork too, so nodes may use any of them. */
const COMPILER_SETTINGS = {
  evmVersion: "london",
  optimizer: { enabled: true, runs: 200 },
  outputSelection: { "*": { "*": ["abi", "evm.bytecode.object", "evm.deployedBytecode.object"] } },
};

/**
 * Returns the contracts by name. Compiles once and caches the result in `.devnet/`, keyed by a hash of sources, settings and
 * compiler version.
 * @throws Error with the compiler's messages when a source does not compile
 */
export function compileContracts(): Record<string, ContractArtifact> {
  // Read from the project folder: the sources are not copied to dist/.
  const sources = readSources(join(findProjectFolder(), "devnet", "contracts"));
  const { version } = JSON.parse(readFileSync(require.resolve("solc/package.json"), "utf8")) as { version: string };
  const key = createHash("sha256")
    .update(JSON.stringify([version, COMPILER_SETTINGS, sources]))
    .digest("hex")
    .slice(0, 16);
  const cache = join(getCacheFolder(), `artifacts-${key}.json`);
  if (existsSync(cache)) {
    // Marks the file as used; unused files are deleted after a day.
    utimesSync(cache, new Date(), new Date());
    return JSON.parse(readFileSync(cache, "utf8")) as Record<string, ContractArtifact>;
  }

  const artifacts = compile(sources);
  mkdirSync(getCacheFolder(), { recursive: true });
  // Written to a draft and renamed: another process may compile at the same time and must not read half a file.
  const draft = `${cache}.${randomUUID()}`;
  writeFileSync(draft, JSON.stringify(artifacts));
  renameSync(draft, cache);
  return artifacts;
}

function compile(sources: Record<string, { content: string }>): Record<string, ContractArtifact> {
  // Loaded lazily: the compiler takes a second to load and is needed only when a source changed.
  const solc = require("solc") as { compile(input: string): string };
  const input = JSON.stringify({ language: "Solidity", sources, settings: COMPILER_SETTINGS });
  const output = JSON.parse(solc.compile(input)) as CompilerOutput;
  const errors = (output.errors ?? []).filter((error) => error.severity === "error");
  if (errors.length > 0) throw new Error(errors.map((error) => error.formattedMessage).join("\n"));
  const artifacts: Record<string, ContractArtifact> = {};
  for (const contracts of Object.values(output.contracts ?? {})) {
    for (const [name, { abi, evm }] of Object.entries(contracts)) {
      artifacts[name] = {
        abi,
        bytecode: `0x${evm.bytecode.object}`,
        deployedBytecode: `0x${evm.deployedBytecode.object}`,
      };
    }
  }
  return artifacts;
}

function readSources(folder: string): Record<string, { content: string }> {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".sol"));
  const named = files.map((file) => file.replaceAll("\\", "/")).sort();
  return Object.fromEntries(named.map((file) => [file, { content: readFileSync(join(folder, file), "utf8") }]));
}
