import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
/** Folders with generated or foreign content. */
const SKIPPED_FOLDERS = new Set(["node_modules", "dist", ".dist", ".git", ".devnet"]);
/** Top-level folders and files that a path in code quotes can begin with. */
const TOP_LEVEL = new Set(readdirSync(ROOT).filter((name) => !SKIPPED_FOLDERS.has(name)));

function findDocuments(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (SKIPPED_FOLDERS.has(entry.name)) return [];
    const path = join(folder, entry.name);
    return entry.isDirectory() ? findDocuments(path) : entry.name.endsWith(".md") ? [path] : [];
  });
}

function removeCodeBlocks(text: string): string {
  return text.replace(/^```.*?^```/gms, "");
}

/** Returns the anchors of a document's headings, as GitHub generates them. */
function listAnchors(path: string): readonly string[] {
  const headings = removeCodeBlocks(readFileSync(path, "utf8")).matchAll(/^#+ (.+)$/gm);
  return [...headings].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, "")
      .replaceAll(" ", "-"),
  );
}

/** Returns the relative links of a document whose file or heading does not exist. */
function findBrokenLinks(path: string): readonly string[] {
  const text = removeCodeBlocks(readFileSync(path, "utf8"));
  const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => link);
  return links.filter((link) => {
    if (/^[a-z]+:/.test(link)) return false;
    const [file = "", anchor] = link.split("#");
    const target = file === "" ? path : join(dirname(path), file);
    if (!existsSync(target)) return true;
    return anchor !== undefined && target.endsWith(".md") && !listAnchors(target).includes(anchor);
  });
}

/**
 * Returns the paths in code quotes that do not exist. Checks those that begin with a top-level folder or with `./`, and
 * bare `*.test.ts` names, which refer to the folder of the path before them.
 */
function findMissingPaths(path: string): readonly string[] {
  const text = removeCodeBlocks(readFileSync(path, "utf8"));
  const missing: string[] = [];
  let folder = "";
  for (const [, quoted = ""] of text.matchAll(/`([^`\n]+)`/g)) {
    const isPath = /^[\w@.-]+(\/[\w@.-]+)*\/?$/.test(quoted);
    const isRooted = isPath && quoted.includes("/") && TOP_LEVEL.has(quoted.split("/")[0] ?? "");
    const isTestName = /^[\w-]+\.test\.ts$/.test(quoted);
    if (isRooted && /\.\w+$/.test(quoted)) folder = dirname(quoted);
    const target = isRooted ? join(ROOT, quoted) : isTestName ? join(ROOT, folder, quoted) : undefined;
    // A package's documents may use its folder as the root.
    if (target !== undefined && !existsSync(target) && !existsSync(join(dirname(path), quoted))) missing.push(quoted);
  }
  return missing;
}

const documents = findDocuments(ROOT).map((path) => relative(ROOT, path));

describe.each(documents)("%s", (name) => {
  test("links only to files and headings that exist", () => {
    expect(findBrokenLinks(join(ROOT, name))).toEqual([]);
  });

  test("names only paths that exist", () => {
    expect(findMissingPaths(join(ROOT, name))).toEqual([]);
  });
});
