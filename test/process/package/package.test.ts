import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { publint } from "publint";
import { beforeAll, describe, expect, test } from "vitest";
import { useTemporaryFolder } from "../../support/temporary-folder.js";

// Checks that the tarball of `npm run tarball` is complete. It is unpacked into another project as npm would install it
// (.ci/package.mjs lets npm install it).

const project = fileURLToPath(new URL("../../..", import.meta.url));
const run = promisify(execFile);
const require = createRequire(import.meta.url);
const folder = useTemporaryFolder();
/** Path of the package in the other project. */
const installed = (): string => join(folder(), "node_modules/hop-gateway");
let tarball: string;

beforeAll(async () => {
  await run(process.execPath, [join(project, "packaging/tarball.js"), folder()]);
  const [name = ""] = (await readdir(folder())).filter((file) => file.endsWith(".tgz"));
  tarball = join(folder(), name);
  await mkdir(installed(), { recursive: true });
  await run("tar", ["-xzf", tarball, "-C", installed(), "--strip-components=1"]);
  const { dependencies, bundleDependencies } = JSON.parse(await readFile(join(installed(), "package.json"), "utf8"));
  const unbundled = Object.keys(dependencies).filter((dependency) => !bundleDependencies.includes(dependency));
  for (const dependency of [...unbundled, "@types/node"]) await link(dependency);
});

/** Links a dependency as if the other project had installed it. */
async function link(name: string): Promise<void> {
  const path = join(folder(), "node_modules", name);
  await mkdir(dirname(path), { recursive: true });
  await symlink(join(project, "node_modules", name), path);
}

test("publint finds nothing", async () => {
  const bytes = await readFile(tarball);
  const packed = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  const { messages } = await publint({ strict: true, pack: { tarball: packed } });
  expect(messages).toEqual([]);
});

test("attw finds nothing for ES modules", async () => {
  const attw = join(dirname(require.resolve("@arethetypeswrong/cli/package.json")), "dist/index.js");
  const options = ["--profile", "esm-only", "--no-emoji", "--format", "ascii"];
  const { stdout } = await run(process.execPath, [attw, tarball, ...options]);
  const entries = [...stdout.matchAll(/^"hop-gateway\/(.+)"$/gm)].map(([, entry]) => entry);
  expect(entries).toEqual(["client", "openapi", "openapi.json", "proto/*", "package.json"]);
});

test("contains the files that it needs and no others", async () => {
  const files = await readdir(installed(), { recursive: true, encoding: "utf8" });
  const packageFiles = files.filter((name) => !name.startsWith("node_modules"));
  expect(
    packageFiles.filter((name) => /\.map$|(^|\/)(test|bench|devnet|examples)(\/|$)|\.tsbuildinfo$/.test(name)),
  ).toEqual([]);
  expect(packageFiles).toEqual(
    expect.arrayContaining(["gen/openapi.json", "dist/web/index.html", "README.md", "LICENSE"]),
  );
  expect(await readFile(join(installed(), "dist/src/main.js"), "utf8")).not.toContain("sourceMappingURL");
  const bundled = await readdir(join(installed(), "node_modules"));
  expect(bundled).toEqual(expect.arrayContaining(["ethers", "@hop-protocol"]));
  // The bundle has the versions of `overrides`, and no Hardhat.
  const versionOf = async (name: string) =>
    JSON.parse(await readFile(join(installed(), "node_modules", name, "package.json"), "utf8")).version;
  const { overrides } = JSON.parse(await readFile(join(project, "package.json"), "utf8"));
  expect(await versionOf("ws")).toBe(overrides.ws);
  expect(await versionOf("elliptic")).toBe(overrides.elliptic);
  expect(files.filter((name) => /node_modules\/hardhat(\/|$)/.test(name))).toEqual([]);
});

test("lists the licences of what it bundles and leaves out contracts under copyleft licences", async () => {
  const licences = await readFile(join(installed(), "THIRD_PARTY_LICENSES.txt"), "utf8");
  const files = await readdir(join(installed(), "node_modules"), { recursive: true, encoding: "utf8" });
  const manifests = files.filter((name) => /(^|\/node_modules\/)(@[^/]+\/)?[^/@]+\/package\.json$/.test(name));
  expect(manifests.length).toBeGreaterThan(60);
  for (const manifest of manifests) {
    const { name, version } = JSON.parse(await readFile(join(installed(), "node_modules", manifest), "utf8"));
    expect(licences).toContain(`${name} ${version}: `);
  }
  for (const name of ["swagger-ui-dist", "uplot"]) expect(licences).toContain(`${name} `);

  const ofUniswap = files.filter((name) => /^@uniswap\/(?!sdk-core|v3-sdk)[^/]+\/(?!node_modules)/.test(name));
  expect(ofUniswap.filter((name) => /\.sol$/.test(name) && !/^@uniswap\/[^/]+\/artifacts/.test(name))).toEqual([]);
  const artifacts = ofUniswap.filter((name) => name.endsWith(".json") && name.includes("/artifacts/"));
  expect(artifacts).toHaveLength(8);
  for (const artifact of artifacts) {
    const content = JSON.parse(await readFile(join(installed(), "node_modules", artifact), "utf8"));
    expect(Object.keys(content)).toEqual(["abi"]);
  }
  // The SDK still loads.
  const program =
    'const { Hop, HopBridge } = await import("@hop-protocol/sdk"); console.log(typeof Hop, typeof HopBridge);';
  const { stdout } = await run(process.execPath, ["--input-type=module", "-e", program], { cwd: installed() });
  expect(stdout).toBe("function function\n");
});

test("the SQLite driver's package, which the lock file verifies, has a binary for every platform", async () => {
  const { packages } = JSON.parse(await readFile(join(project, "package-lock.json"), "utf8"));
  const path = "node_modules/@photostructure/sqlite";
  expect(packages[path].integrity).toMatch(/^sha512-/);
  const platforms = ["darwin", "linux", "win32"].flatMap((system) => [`${system}-arm64`, `${system}-x64`]);
  expect(await readdir(join(project, path, "prebuilds"))).toEqual(platforms);
});

describe("in a project that has installed the package", () => {
  beforeAll(async () => {
    const compilerOptions = { module: "NodeNext", target: "ES2023", strict: true, types: ["node"], outDir: "out" };
    await writeFile(join(folder(), "package.json"), JSON.stringify({ type: "module" }));
    await writeFile(join(folder(), "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
    const programs = ["test/process/package/program.ts"];
    for (const program of programs) await copyFile(join(project, program), join(folder(), basename(program)));
  });

  test("a program compiles and runs against the installed command", async () => {
    const compiler = [require.resolve("typescript/bin/tsc"), "-p", folder()];
    const compilerErrors = await run(process.execPath, compiler).then(
      () => "",
      (error: { stdout: string }) => error.stdout,
    );
    expect(compilerErrors).toBe("");

    const { bin } = JSON.parse(await readFile(join(installed(), "package.json"), "utf8"));
    const address = { HOST: "127.0.0.1", PORT: "0", METRICS_PORT: "0" };
    const environment = { ...address, ASSETS_URL: "off", EXPLORER_API_URL: "off" };
    const service = spawn(process.execPath, [join(installed(), bin["hop-gateway"])], {
      env: { PATH: process.env.PATH, ...environment },
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      const [line] = (await once(createInterface(service.stdout), "line")) as [string];
      const url = line.replace("hop-gateway listens on ", "");
      const { stdout } = await run(process.execPath, [join(folder(), "out/program.js"), url]);
      const reasons = ["MISSING_PARAMETER", "INVALID_PARAMETER", "INDEX_REQUIRED"];
      expect(JSON.parse(stdout)).toEqual(["ethereum", "ethereum", ...reasons, "3.1.0"]);
      for (const path of ["/", "/docs", "/openapi.json"]) expect((await fetch(`${url}${path}`)).status, path).toBe(200);
    } finally {
      service.kill();
    }
  });
});
