import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdir, mkdtemp, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { publint } from "publint";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, expect, test } from "vitest";
import { browserPath, launchBrowser } from "../../support/browser/launch-browser.js";
import { startHttpStub } from "../../support/stubs/http-stub.js";
import { useTemporaryFolder } from "../../support/temporary-folder.js";

// Installs the tarball of `npm run tarball:client` in an empty project, as npm would (.ci/package.mjs lets npm install it).

const MAX_INSTALLED_BYTES = 4_000_000;
const MAX_BUNDLE_BYTES = 60_000;
/** What a file takes of a disk at least. */
const DISK_BLOCK_BYTES = 4_096;

const project = fileURLToPath(new URL("../../..", import.meta.url));
const run = promisify(execFile);
const require = createRequire(import.meta.url);
const folder = useTemporaryFolder();
const installed = (): string => join(folder(), "node_modules/hop-gateway-client");
const readJson = async (file: string) => JSON.parse(await readFile(file, "utf8"));

let tarball: string;
let service: { readonly url: string; stop(): void };
beforeAll(async () => {
  await run(process.execPath, [join(project, "packaging/client.js"), "pack", folder()]);
  const [name = ""] = (await readdir(folder())).filter((file) => file.endsWith(".tgz"));
  tarball = join(folder(), name);
  await mkdir(installed(), { recursive: true });
  await run("tar", ["-xzf", tarball, "-C", installed(), "--strip-components=1"]);
  for (const dependency of Object.keys((await readJson(join(installed(), "package.json"))).dependencies))
    await link(dependency);
  await writeFile(join(folder(), "package.json"), JSON.stringify({ type: "module" }));
  service = await startService();
});
afterAll(() => service.stop());

/** Links a package as if npm had installed it in the empty project. */
async function link(name: string): Promise<void> {
  const path = join(folder(), "node_modules", name);
  await mkdir(dirname(path), { recursive: true });
  await symlink(join(project, "node_modules", name), path);
}

/** Starts the service without a chain that responds. */
async function startService() {
  const address = { HOST: "127.0.0.1", PORT: "0", METRICS_PORT: "0" };
  const env = { PATH: process.env.PATH, ...address, ASSETS_URL: "off", EXPLORER_API_URL: "off" };
  const child = spawn(process.execPath, [join(project, "dist/src/main.js")], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(createInterface(child.stdout), "line")) as [string];
  return { url: line.replace("hop-gateway listens on ", ""), stop: () => void child.kill() };
}

/** What a program that uses the client returns: a token, the reason of a failed call, the ends of a list and of a watch. */
const PROGRAM_OUTPUT = ["SNX", "MISSING_PARAMETER", "INDEX_REQUIRED", "INVALID_PARAMETER"];

test("the manifest agrees with that of the service", async () => {
  const own = await readJson(join(project, "packages/client/package.json"));
  const { version, license, engines, dependencies } = await readJson(join(project, "package.json"));
  const { "@bufbuild/protobuf": protobuf } = dependencies;
  expect(own).toMatchObject({ version, license, engines, dependencies: { "@bufbuild/protobuf": protobuf } });
});

test("publint and attw find nothing", async () => {
  const bytes = await readFile(tarball);
  const packed = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  expect((await publint({ strict: true, pack: { tarball: packed } })).messages).toEqual([]);
  const attw = join(dirname(require.resolve("@arethetypeswrong/cli/package.json")), "dist/index.js");
  const options = ["--profile", "esm-only", "--no-emoji", "--format", "ascii"];
  const { stdout } = await run(process.execPath, [attw, tarball, ...options]);
  const entries = [...stdout.matchAll(/^"hop-gateway-client(.*)"$/gm)].map(([, entry]) => entry);
  expect(entries).toEqual(["", "/openapi", "/package.json"]);
});

test("takes under 4 MB with all dependencies, on a disk too", async () => {
  const names = [
    "hop-gateway-client",
    ...Object.keys((await readJson(join(installed(), "package.json"))).dependencies),
  ];
  const sizes = await Promise.all(names.map((name) => measureBlocks(join(folder(), "node_modules", name))));
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(MAX_INSTALLED_BYTES);
  for (const name of names.slice(1)) {
    const { dependencies, peerDependencies } = await readJson(join(folder(), "node_modules", name, "package.json"));
    expect([dependencies, peerDependencies]).toEqual([undefined, undefined]);
  }
});

async function measureBlocks(path: string): Promise<number> {
  const names = await readdir(path, { recursive: true });
  const stats = await Promise.all(names.map((name) => stat(join(path, name))));
  return stats.reduce((sum, { size }) => sum + Math.ceil(size / DISK_BLOCK_BYTES) * DISK_BLOCK_BYTES, 0);
}

test("contains the licences of the files that it copies", async () => {
  const licences = await readFile(join(installed(), "THIRD_PARTY_LICENSES.txt"), "utf8");
  expect(licences).toMatch(/^@connectrpc\/connect [\d.]+: Apache-2\.0$/m);
  expect(licences).toMatch(/^@noble\/hashes [\d.]+: MIT$/m);
  expect(licences).toContain("Paul Miller");
  const vendored = await readdir(join(installed(), "dist/vendor"), { recursive: true, withFileTypes: true });
  const packages = vendored
    .filter((entry) => entry.isFile())
    .map(({ parentPath }) => /vendor\/([^/]+\/[^/]+)/.exec(parentPath)?.[1]);
  expect(new Set(packages)).toEqual(new Set(["@connectrpc/connect", "@noble/hashes"]));
});

test.each([
  { module: "NodeNext", moduleResolution: "nodenext" },
  { module: "ESNext", moduleResolution: "bundler" },
])("the examples compile with $moduleResolution, and a program runs in Node.js", async (resolution) => {
  const place = await mkdtemp(join(folder(), "program-"));
  const types = ["node"];
  const typeRoots = [join(project, "node_modules/@types")];
  const compilerOptions = { ...resolution, target: "ES2023", strict: true, types, typeRoots, outDir: "out" };
  await writeFile(join(place, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
  const examples = ["quote.ts", "connect.ts", "fetch.ts", "withdraw.ts"].map((name) => `examples/${name}`);
  for (const file of [...examples, "test/process/package/client-program.ts"])
    await copyFile(join(project, file), join(place, basename(file)));
  const compiler = [require.resolve("typescript/bin/tsc"), "-p", place];
  const errors = await run(process.execPath, compiler).then(
    () => "",
    (error: { stdout: string }) => error.stdout,
  );
  expect(errors).toBe("");
  const program =
    'import { runClient } from "./out/client-program.js"; console.log(JSON.stringify(await runClient(process.argv[1])));';
  const { stdout } = await run(process.execPath, ["--input-type=module", "-e", program, service.url], { cwd: place });
  expect(JSON.parse(stdout)).toEqual(PROGRAM_OUTPUT);
});

/** Bundles everything that the client exports for browsers, as an application would. */
async function bundle(): Promise<string> {
  const entry = join(folder(), "entry.js");
  await copyFile(join(project, "test/process/package/client-program.ts"), join(folder(), "client-program.ts"));
  await writeFile(entry, 'export * from "hop-gateway-client"; export * from "./client-program.ts";');
  const build = await rolldown({ input: entry, platform: "browser" });
  const { output } = await build.generate({ format: "esm", minify: true });
  expect(output.map(({ type }) => type)).toEqual(["chunk"]);
  const [{ code, imports, dynamicImports }] = output;
  expect([...imports, ...dynamicImports]).toEqual([]);
  return code;
}

test("takes under 60 KB in a bundle, compressed", async () => {
  expect(gzipSync(await bundle()).length).toBeLessThan(MAX_BUNDLE_BYTES);
});

test.skipIf(browserPath === undefined)(
  "the bundle runs in a browser on a page of another origin (needs chromium)",
  async () => {
    const code = await bundle();
    const site = await startHttpStub((request, response) => {
      const isPage = request.url === "/";
      response.setHeader("content-type", isPage ? "text/html" : "text/javascript");
      response.end(isPage ? "<title>An application</title>" : code);
    });
    const browser = await launchBrowser();
    try {
      const page = await browser.newPage();
      await page.goto(site.url);
      const output = page.evaluate(`import("/bundle.js").then(({ runClient }) => runClient("${service.url}"))`);
      expect(await output).toEqual(PROGRAM_OUTPUT);
    } finally {
      await browser.close();
      await site.close();
    }
  },
);
