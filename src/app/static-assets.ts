import { existsSync, readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
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

/** A page runs and shows only what is served beside it, asks only us, and stands in nobody's frame. */
const PAGE_HEADERS = [
  ...[
    "content-security-policy",
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  ],
  ...["referrer-policy", "no-referrer"],
];

/** Pages by path: the file of each in the folder that `npm run build` makes. Every other file there is under /assets/. */
const pagePaths: ReadonlyMap<string, string> = new Map([
  ["index.html", "/"],
  ["docs.html", "/docs"],
]);

/**
 * What browsers are given, by path: the pages with what belongs to them, and the OpenAPI description. There are no other
 * paths than those of files that are there now; each is read when it is first asked for.
 * @param root the package's folder
 */
export function collectStaticAssets(root: URL): Map<string, StaticDocument> {
  const found = new Map<string, StaticDocument>();
  const openApi = new URL("gen/openapi.json", root);
  if (existsSync(openApi)) found.set("/openapi.json", createAssetDocument(openApi));
  const folder = new URL("dist/web/", root);
  for (const name of existsSync(folder) ? listFiles(folder) : []) {
    const page = pagePaths.get(name);
    found.set(
      page ?? `/assets/${name}`,
      createAssetDocument(new URL(name, folder), page === undefined ? [] : PAGE_HEADERS),
    );
  }
  return found;
}

/** Paths of all files in a folder and its subfolders, relative to it, with "/" between the parts. */
function listFiles(folder: URL): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(fileURLToPath(folder), join(entry.parentPath, entry.name)).replaceAll(sep, "/"));
}

function createAssetDocument(file: URL, headers: readonly string[] = []): StaticDocument {
  const extension = file.pathname.slice(file.pathname.lastIndexOf(".") + 1);
  const contentType = MEDIA_TYPES[extension];
  if (contentType === undefined) throw new Error(`${file.pathname} has no media type`);
  return { contentType, read: () => readFile(file), headers };
}
