import { execFile, execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { useTemporaryFolder } from "../../support/temporary-folder.js";

// Runs packaging/sqlite.js with a driver that loads a text file instead of a binary, from where the real one looks for it.

const project = fileURLToPath(new URL("../../..", import.meta.url));
const folder = useTemporaryFolder();
const BUILT = "build/Release/better_sqlite3.node";
const KEPT = `lib/binding/node-v${process.versions.modules}-${process.platform}-${process.arch}/better_sqlite3.node`;
const DRIVER = `const { existsSync, readFileSync } = require("node:fs");
module.exports = class {
  constructor() {
    const file = ["${BUILT}", "${KEPT}"].map((name) => __dirname + "/" + name).find((name) => existsSync(name));
    if (readFileSync(file, "utf8").includes("another ABI")) throw new Error("the binary is for another version");
  }
};`;
/** Builds a file that says where it was compiled, and has the header that was included. */
const COMPILE = `mkdir -p build/Release && { echo compiled; pwd; cat "$(echo "$CXXFLAGS" | sed "s/.* -include //")"; } > ${BUILT}`;

interface Situation {
  /** What an earlier build has left where the driver looks first. */
  readonly leftBinary?: string;
  /** Returns the hash that the list states for this archive; undefined: the list does not name it. */
  readonly listedHash?: (archive: Buffer) => string;
  readonly status?: number;
}

/** Builds the driver and returns where its binary comes from, with the requests that were sent. */
async function buildDriver({ leftBinary, listedHash, status = 200 }: Situation) {
  const checkout = await mkdtemp(join(folder(), `the user's "$checkout"-`));
  const driver = join(checkout, "node_modules/better-sqlite3");
  await mkdir(join(checkout, "packaging"));
  await mkdir(driver, { recursive: true });
  for (const name of ["sqlite.js", "sqlite-object-wrap.h"])
    await copyFile(join(project, "packaging", name), join(checkout, "packaging", name));
  await writeFile(join(checkout, "package.json"), JSON.stringify({ type: "module" }));
  const manifest = {
    name: "better-sqlite3",
    version: "1.2.3",
    main: "index.js",
    scripts: { "build-release": COMPILE },
  };
  await writeFile(join(driver, "package.json"), JSON.stringify(manifest));
  await writeFile(join(driver, "index.js"), DRIVER);
  if (leftBinary !== undefined) {
    await mkdir(join(driver, "build/Release"), { recursive: true });
    await writeFile(join(driver, BUILT), leftBinary);
  }

  const prebuilt = await mkdtemp(join(folder(), "prebuilt-"));
  await mkdir(join(prebuilt, "build/Release"), { recursive: true });
  await writeFile(join(prebuilt, BUILT), "prebuilt\n");
  const archive = execFileSync("tar", ["-czf", "-", "-C", prebuilt, "build"]);
  const target = `node-v${process.versions.modules}-${process.platform}-${process.arch}`;
  const name = `better-sqlite3-v1.2.3-${target}.tar.gz`;
  const hashes = listedHash === undefined ? {} : { [name]: listedHash(archive) };
  await writeFile(join(checkout, "packaging/sqlite-hashes.json"), JSON.stringify(hashes));

  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(request.url ?? "");
    response.writeHead(status).end(archive);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const releases = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const build = () =>
    promisify(execFile)(process.execPath, ["packaging/sqlite.js"], {
      cwd: checkout,
      env: { ...process.env, SQLITE_RELEASES_URL: releases },
    });
  const { stderr } = await build();
  // Finds nothing to do.
  await build();
  const [binary, compiledIn, ...header] = (await readFile(join(driver, KEPT), "utf8")).trim().split("\n");
  const compiled = { in: compiledIn, with: header.join("\n") };
  return { binary, requests, stderr, compiled, hasOutput: existsSync(join(driver, "build")), path: `/v1.2.3/${name}` };
}

const sha256 = (bytes: Buffer | string) => createHash("sha256").update(bytes).digest("hex");

test("uses a prebuilt binary whose hash is listed", async () => {
  const { binary, requests, path } = await buildDriver({ listedHash: sha256 });
  expect({ binary, requests }).toEqual({ binary: "prebuilt", requests: [path] });
});

test("compiles the driver if the prebuilt binary has another hash", async () => {
  const { binary, stderr } = await buildDriver({ listedHash: () => sha256("another archive") });
  expect(binary).toBe("compiled");
  expect(stderr).toMatch(/has the SHA-256 [0-9a-f]{64}, which is not the known one: the SQLite driver is compiled/);
});

test("compiles the driver without any download if no hash is listed", async () => {
  expect(await buildDriver({})).toMatchObject({ binary: "compiled", requests: [] });
});

test("keeps a binary that an earlier version left where the driver looks first", async () => {
  const { binary, hasOutput } = await buildDriver({ leftBinary: "usable" });
  expect({ binary, hasOutput }).toEqual({ binary: "usable", hasOutput: false });
});

test("compiles the driver if the binary is for another version of Node.js, and leaves nothing of that", async () => {
  const { binary, hasOutput } = await buildDriver({ leftBinary: "another ABI" });
  expect({ binary, hasOutput }).toEqual({ binary: "compiled", hasOutput: false });
});

test("replaces a binary that would end Node.js 24, in that version", async () => {
  const leftBinary = "imports RemoveEnvironmentCleanupHook";
  const { binary } = await buildDriver({ leftBinary });
  expect(binary).toBe(process.version.startsWith("v24.") ? "compiled" : leftBinary);
});

test("compiles the driver without the hooks of wrapped objects", async () => {
  const { compiled } = await buildDriver({});
  expect(compiled.with).toContain("#define RemoveEnvironmentCleanupHook(...)");
});

test("compiles the driver in a folder whose name make can read, and removes that", async () => {
  const { compiled } = await buildDriver({});
  expect(compiled.in).toMatch(/^[\w./-]+$/);
  expect(existsSync(compiled.in ?? "")).toBe(false);
});

test("statements that nobody holds are collected while no JavaScript runs", async () => {
  // Until the collections of two seconds are over; without the header, Node.js 24.19 and newer do not live as long.
  const program = `
    const db = new (require("better-sqlite3"))(":memory:");
    let count = 0, garbage = [];
    const until = Date.now() + 2000;
    (function turn() {
      for (let i = 0; i < 50; i++) db.prepare("select " + count++).get();
      for (let i = 0; i < 20000; i++) garbage.push({ i });
      if (garbage.length > 500000) garbage = [];
      if (Date.now() < until) setTimeout(turn, 1);
    })();`;
  await promisify(execFile)(process.execPath, ["-e", program], { cwd: project });
});

test("compiles the driver if the download fails", async () => {
  expect(await buildDriver({ listedHash: sha256, status: 404 })).toMatchObject({ binary: "compiled" });
});

test("the driver's own install script cannot download a binary", async () => {
  const { packages } = JSON.parse(await readFile(join(project, "package-lock.json"), "utf8"));
  const downloaders = Object.entries<{ name?: string }>(packages).filter(
    ([path, { name }]) => path.endsWith("/prebuild-install") && name !== "tslib",
  );
  expect(downloaders).toEqual([]);
});
