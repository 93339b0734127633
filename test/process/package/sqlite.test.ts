import { execFile, execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFile, mkdir, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { useTemporaryFolder } from "../../support/temporary-folder.js";

// Runs packaging/sqlite.js with a driver that loads a text file instead of a binary.

const project = fileURLToPath(new URL("../../..", import.meta.url));
const folder = useTemporaryFolder();
const BINARY = "build/Release/better_sqlite3.node";
const DRIVER = `module.exports = class { constructor() { require("node:fs").readFileSync(__dirname + "/${BINARY}"); } };`;
const COMPILE = `mkdir -p build/Release && echo compiled > ${BINARY}`;

interface Situation {
  /** Returns the hash that the list states for this archive; undefined: the list does not name it. */
  readonly listedHash?: (archive: Buffer) => string;
  readonly status?: number;
}

/** Builds the driver and returns where its binary comes from, with the requests that were sent. */
async function buildDriver({ listedHash, status = 200 }: Situation) {
  const checkout = await mkdtemp(join(folder(), "checkout-"));
  const driver = join(checkout, "node_modules/better-sqlite3");
  await mkdir(join(checkout, "packaging"));
  await mkdir(driver, { recursive: true });
  await copyFile(join(project, "packaging/sqlite.js"), join(checkout, "packaging/sqlite.js"));
  await writeFile(join(checkout, "package.json"), JSON.stringify({ type: "module" }));
  const manifest = {
    name: "better-sqlite3",
    version: "1.2.3",
    main: "index.js",
    scripts: { "build-release": COMPILE },
  };
  await writeFile(join(driver, "package.json"), JSON.stringify(manifest));
  await writeFile(join(driver, "index.js"), DRIVER);

  const prebuilt = await mkdtemp(join(folder(), "prebuilt-"));
  await mkdir(join(prebuilt, "build/Release"), { recursive: true });
  await writeFile(join(prebuilt, BINARY), "prebuilt\n");
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
  const binary = (await readFile(join(driver, BINARY), "utf8")).trim();
  return { binary, requests, stderr, path: `/v1.2.3/${name}` };
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
