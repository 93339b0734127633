import { existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { StaticDocument } from "../http/documents.js";

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  json: "application/json; charset=utf-8",
  png: "image/png",
  svg: "image/svg+xml",
  txt: "text/plain; charset=utf-8",
};

/** Pages load and call only this origin and cannot be framed. */
const PAGE_HEADERS = [
  ...[
    "content-security-policy",
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  ],
  ...["referrer-policy", "no-referrer"],
];

/** Paths of the pages by file name in dist/web. Every other file there is served under /assets/. */
const PAGE_PATHS: ReadonlyMap<string, string> = new Map([
  ["index.html", "/"],
  ["docs.html", "/docs"],
  ["integrate.html", "/docs/integrate"],
]);

/**
 * Lists the static documents by path: the pages with their assets, and the OpenAPI description. Only files that exist now
 * are listed; each is read on its first request.
 * @param root folder of the package
 * @param docsUrl where the documentation is, for links in the OpenAPI description. Default: it has none
 */
export function collectStaticAssets(root: URL, docsUrl?: string): Map<string, StaticDocument> {
  const assets = new Map<string, StaticDocument>();
  const openApi = new URL("gen/openapi.json", root);
  if (existsSync(openApi)) assets.set("/openapi.json", linkDocumentation(createAssetDocument(openApi), docsUrl));
  const link = new URL("dist/web/", root);
  if (!existsSync(link)) return assets;
  // A later build makes dist/ lead to another folder; this one stays as it is.
  const folder = pathToFileURL(`${realpathSync(link)}/`);
  for (const name of listFiles(folder)) {
    const page = PAGE_PATHS.get(name);
    assets.set(
      page ?? `/assets/${name}`,
      createAssetDocument(new URL(name, folder), page === undefined ? [] : PAGE_HEADERS),
    );
  }
  return assets;
}

/** Adds the links to the documentation (`externalDocs`) to the OpenAPI description and to its schema of errors. */
function linkDocumentation(document: StaticDocument, docsUrl: string | undefined): StaticDocument {
  if (docsUrl === undefined) return document;
  return {
    ...document,
    async read() {
      const description = JSON.parse((await document.read()).toString());
      description.externalDocs = { description: "Guides for clients and operators", url: docsUrl };
      description.components.schemas.Error.externalDocs = { description: "Every reason", url: `${docsUrl}/errors.md` };
      return Buffer.from(JSON.stringify(description));
    },
  };
}

/** Lists all files of a folder and its subfolders as relative paths with "/" as separator. */
function listFiles(folder: URL): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(fileURLToPath(folder), join(entry.parentPath, entry.name)).replaceAll(sep, "/"));
}

function createAssetDocument(file: URL, headers: readonly string[] = []): StaticDocument {
  const extension = file.pathname.slice(file.pathname.lastIndexOf(".") + 1);
  const contentType = MEDIA_TYPES[extension];
  if (contentType === undefined) throw new Error(`no media type is known for ${file.pathname}`);
  return { contentType, read: () => readFile(file), headers };
}

const PACKAGE_NAME = "hop-gateway";

/**
 * Finds the package that contains this code, wherever it is installed or compiled to, by walking up from this file.
 * @throws Error when no parent folder is the package hop-gateway
 */
export function findPackageRoot(): {
  /** The package folder, as a file URL that ends with a slash. */
  readonly url: URL;
  readonly version: string;
} {
  for (let url = new URL(".", import.meta.url); ; url = new URL("..", url)) {
    const file = fileURLToPath(new URL("package.json", url));
    if (existsSync(file)) {
      const { name, version } = JSON.parse(readFileSync(file, "utf8")) as { name?: unknown; version?: unknown };
      if (name === PACKAGE_NAME && typeof version === "string") return { url, version };
    }
    if (url.pathname === "/") throw new Error(`this code is not inside the package ${PACKAGE_NAME}`);
  }
}
