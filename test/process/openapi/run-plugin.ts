import { execFile } from "node:child_process";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

// Runs the plugin as `npm run generate` does: compiled, and started by buf.

const run = promisify(execFile);
const project = fileURLToPath(new URL("../../..", import.meta.url));

/** Compiles the plugin into a cache folder of this name and returns the path of its script. */
export async function buildPlugin(cacheName: string): Promise<string> {
  const out = `${project}node_modules/.cache/${cacheName}`;
  const args = ["tsc", "-p", "openapi", "--noCheck", "--outDir", out];
  await run("npx", [...args, "--tsBuildInfoFile", `${out}/.tsbuildinfo`], { cwd: project });
  return `${out}/openapi/protoc-gen-openapi.js`;
}

/** Generates the OpenAPI description of our contract. */
export async function generateOpenApi(plugin: string, folder: string): Promise<string> {
  await cp(join(project, "proto"), join(folder, "proto"), { recursive: true });
  const version = "version: v2\n";
  await writeFile(join(folder, "buf.yaml"), `${version}modules:\n  - path: proto\n`);
  const plugins = `plugins:\n  - local: [node, ${plugin}]\n    out: .\n    strategy: all\n`;
  await writeFile(join(folder, "buf.gen.yaml"), version + plugins);
  await run(join(project, "node_modules/.bin/buf"), ["generate"], { cwd: folder });
  return await readFile(join(folder, "openapi.json"), "utf8");
}

/** Generates the OpenAPI description of our contract and one more file. */
export async function generateOpenApiWith(
  plugin: string,
  folder: string,
  path: string,
  proto: string,
): Promise<string> {
  const file = join(folder, "proto", path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, proto);
  return await generateOpenApi(plugin, folder);
}
