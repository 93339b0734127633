import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { beforeEach, expect, test } from "vitest";
import { findPackageRoot } from "../../../src/app/package-root.js";
import { collectStaticAssets } from "../../../src/app/static-assets.js";
import { useTemporaryFolder } from "../../support/temporary-folder.js";

const folder = useTemporaryFolder();
const root = () => pathToFileURL(`${folder()}/`);

async function put(...files: readonly string[]): Promise<void> {
  for (const file of files) {
    await mkdir(join(folder(), file, ".."), { recursive: true });
    await writeFile(join(folder(), file), `this is ${file}`);
  }
}

beforeEach(async () => {
  for (const each of await readdir(folder())) await rm(join(folder(), each), { recursive: true });
});

test("pages, what belongs to them and the description stand at paths of their own, and nothing else does", async () => {
  await put("dist/web/index.html", "dist/web/docs.html", "dist/web/docs.js", "dist/web/a.css", "gen/openapi.json");
  await put("package.json", "dist/src/main.js", "gen/other.json");
  const pages = collectStaticAssets(root());
  expect([...pages.keys()].sort()).toEqual(["/", "/assets/a.css", "/assets/docs.js", "/docs", "/openapi.json"]);
  const type = (path: string) => pages.get(path)?.contentType;
  expect(type("/docs")).toBe("text/html; charset=utf-8");
  expect(type("/assets/docs.js")).toBe("text/javascript; charset=utf-8");
  expect(type("/assets/a.css")).toBe("text/css; charset=utf-8");
  expect(type("/openapi.json")).toBe("application/json; charset=utf-8");
  expect(String(await pages.get("/docs")?.read())).toBe("this is dist/web/docs.html");
  expect(String(await pages.get("/openapi.json")?.read())).toBe("this is gen/openapi.json");
});

test("a page may run and show only what is served beside it", async () => {
  await put("dist/web/index.html", "dist/web/docs.html", "dist/web/docs.js");
  const pages = collectStaticAssets(root());
  for (const path of ["/", "/docs"]) {
    const headers = pages.get(path)?.headers ?? [];
    const policy = headers[headers.indexOf("content-security-policy") + 1] ?? "";
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self';");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain("unsafe");
    expect(headers).toContain("no-referrer");
  }
});

test("without a build there is the description alone, and without that nothing", async () => {
  expect(collectStaticAssets(root()).size).toBe(0);
  await put("gen/openapi.json");
  expect([...collectStaticAssets(root()).keys()]).toEqual(["/openapi.json"]);
});

test("a file of a kind that browsers would have to guess stops the start", async () => {
  await put("dist/web/strange.bin");
  expect(() => collectStaticAssets(root())).toThrow("strange.bin");
});

test("the package finds its own folder", async () => {
  const { url, version } = findPackageRoot();
  expect(version).toMatch(/^\d+\.\d+\.\d+/);
  expect(await readdir(url)).toContain("package.json");
});
