import { mkdir, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { beforeEach, expect, test } from "vitest";
import { collectStaticAssets, findPackageRoot } from "../../../src/app/package-files.js";
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
  for (const name of await readdir(folder())) await rm(join(folder(), name), { recursive: true });
});

test("lists the pages, their assets and the OpenAPI description, and nothing else", async () => {
  await put("dist/web/index.html", "dist/web/docs.html", "dist/web/docs.js", "dist/web/a.css", "gen/openapi.json");
  await put("package.json", "dist/src/main.js", "gen/other.json");
  const assets = collectStaticAssets(root());
  expect([...assets.keys()].sort()).toEqual(["/", "/assets/a.css", "/assets/docs.js", "/docs", "/openapi.json"]);
  const type = (path: string) => assets.get(path)?.contentType;
  expect(type("/docs")).toBe("text/html; charset=utf-8");
  expect(type("/assets/docs.js")).toBe("text/javascript; charset=utf-8");
  expect(type("/assets/a.css")).toBe("text/css; charset=utf-8");
  expect(type("/openapi.json")).toBe("application/json; charset=utf-8");
  expect(String(await assets.get("/docs")?.read())).toBe("this is dist/web/docs.html");
  expect(String(await assets.get("/openapi.json")?.read())).toBe("this is gen/openapi.json");
});

test("restricts pages to content from their own origin", async () => {
  await put("dist/web/index.html", "dist/web/docs.html", "dist/web/docs.js");
  const assets = collectStaticAssets(root());
  for (const path of ["/", "/docs"]) {
    const headers = assets.get(path)?.headers ?? [];
    const policy = headers[headers.indexOf("content-security-policy") + 1] ?? "";
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self';");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain("unsafe");
    expect(headers).toContain("no-referrer");
  }
});

test("lists only the OpenAPI description without a web build, and nothing without either", async () => {
  expect(collectStaticAssets(root()).size).toBe(0);
  await put("gen/openapi.json");
  expect([...collectStaticAssets(root()).keys()]).toEqual(["/openapi.json"]);
});

test("links the documentation in the OpenAPI description, if the operator names it", async () => {
  await put("gen/openapi.json");
  const description = { openapi: "3.1.0", components: { schemas: { Error: { type: "object" }, Route: {} } } };
  await writeFile(join(folder(), "gen/openapi.json"), JSON.stringify(description));
  const linked = await collectStaticAssets(root(), "https://docs.example/hop").get("/openapi.json")?.read();
  expect(JSON.parse(String(linked))).toEqual({
    openapi: "3.1.0",
    externalDocs: { description: "Guides for clients and operators", url: "https://docs.example/hop" },
    components: {
      schemas: {
        Error: {
          type: "object",
          externalDocs: { description: "Every reason", url: "https://docs.example/hop/errors.md" },
        },
        Route: {},
      },
    },
  });
});

test("serves the pages of its own build after dist leads to a later one", async () => {
  const page = (build: string) => put(`${build}/web/index.html`);
  await page(".dist/first");
  await symlink(".dist/first", join(folder(), "dist"));
  const assets = collectStaticAssets(root());
  await page(".dist/second");
  await rm(join(folder(), "dist"));
  await symlink(".dist/second", join(folder(), "dist"));
  expect(String(await assets.get("/")?.read())).toBe("this is .dist/first/web/index.html");
});

test("throws for a file without a known media type", async () => {
  await put("dist/web/strange.bin");
  expect(() => collectStaticAssets(root())).toThrow("strange.bin");
});

test("finds the folder and version of the package", async () => {
  const { url, version } = findPackageRoot();
  expect(version).toMatch(/^\d+\.\d+\.\d+/);
  expect(await readdir(url)).toContain("package.json");
});
