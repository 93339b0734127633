import { readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { STATUS_BY_REASON } from "../../../src/http/request/error-mapping.js";

// Maintainers follow CONTRIBUTING.md and the README.md of a folder to the code that they name.

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const CODE_PATTERN = /\.(?:ts|js|mjs|cjs|json|ya?ml|proto)$|^\.ci\/\w+$/;
/** Names of packages. */
const PACKAGES: ReadonlySet<string> = new Set([
  ...Object.keys(JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")).dependencies),
]);

const TOP_FOLDERS = readdirSync(ROOT).filter((name) => !/^(?:node_modules|dist|\.dist|\.git|\.devnet)$/.test(name));
const files = TOP_FOLDERS.flatMap((name) => {
  if (statSync(join(ROOT, name)).isFile()) return [name];
  return readdirSync(join(ROOT, name), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
    .filter((file) => !file.includes("node_modules/"));
});
const folders = new Set(files.flatMap(listParents));
const baseNames = new Set([...files, ...folders].map((path) => basename(path)));
const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");

let words: ReadonlySet<string> | undefined;
/** Returns all words of the code. */
function getWords(): ReadonlySet<string> {
  words ??= new Set(files.filter((file) => CODE_PATTERN.test(file)).flatMap((file) => read(file).match(/\w+/g) ?? []));
  return words;
}

function listParents(path: string): readonly string[] {
  const parent = dirname(path);
  return parent === "." ? [] : [parent, ...listParents(parent)];
}

/** Returns whether a path exists, seen from the root, from src/ or from the folder of the document. */
function isKnownPath(path: string, from: string): boolean {
  const name = path.replace(/\/$/, "");
  if (!name.includes("/") && !path.endsWith("/")) return baseNames.has(name);
  const candidates = [name, join("src", name), join(from, name)];
  return (
    candidates.some((each) => files.includes(each) || folders.has(each)) || (!name.includes("/") && baseNames.has(name))
  );
}

const PATH_PATTERN = /^[\w.@-]+(?:\/[\w.@-]+)*\/?$/;
const EXTENSION_PATTERN = /\.(?:ts|js|mjs|cjs|md|json|ya?ml|proto|binpb|service|timer)$/;
const SYMBOL_PATTERN = /^(?:[a-z]+(?:[A-Z]\w*)+|[A-Z][a-z]\w*[A-Z]\w*|[A-Z][A-Z0-9]*_[A-Z0-9_]+)(?:\(\))?$/;

test("each folder of src with three files or more has a README.md", () => {
  const countFiles = (folder: string): number =>
    files.filter((file) => dirname(file) === folder && file.endsWith(".ts")).length;
  const large = [...folders].filter((folder) => /^src(?:\/|$)/.test(folder) && countFiles(folder) >= 3);
  expect(large.length).toBeGreaterThan(20);
  expect(large.filter((folder) => !files.includes(`${folder}/README.md`))).toEqual([]);
});

const documents = ["CONTRIBUTING.md", ...files.filter((file) => /^src\/.*README\.md$/.test(file))];

test.each(documents)("%s names paths and symbols that exist", (document) => {
  const text = read(document).replace(/^```.*?^```/gms, "");
  const named = [...text.matchAll(/`([^`\n]+)`/g)].map(([, name = ""]) => name);
  const isPath = (name: string): boolean =>
    PATH_PATTERN.test(name) &&
    (EXTENSION_PATTERN.test(name) || /^(?:src|test|docs|deploy|bench|packaging|devnet)\//.test(name));
  const missing = named.filter((name) => {
    if (PACKAGES.has(name)) return false;
    if (isPath(name)) return !isKnownPath(name, dirname(document));
    if (!SYMBOL_PATTERN.test(name)) return false;
    return !getWords().has(name.replace(/\(\)$/, ""));
  });
  expect(missing).toEqual([]);
});

test("a symbol that CONTRIBUTING.md or a README names in a file is in that file", () => {
  const missing = documents.flatMap((document) =>
    [...read(document).matchAll(/`(\w+)`\s+in\s+`([\w./-]+\.ts)`/g)].filter(([, symbol = "", path = ""]) => {
      const file = files.find((each) => each === path || each === join(dirname(document), path)) ?? findByName(path);
      return file === undefined || !new RegExp(`\\b${symbol}\\b`).test(read(file));
    }),
  );
  expect(missing.map(([text]) => text)).toEqual([]);
});

function findByName(path: string): string | undefined {
  return files.find((file) => file.endsWith(`/${path}`));
}

test("docs/clients.md says of every reason that a caller did not cause whether to retry", () => {
  const [table = ""] = /^\| error \| retry\? \|\n(?:\|.*\n)+/m.exec(read("docs/clients.md")) ?? [];
  const reasons = Object.entries(STATUS_BY_REASON)
    .filter(([reason, { status }]) => status >= 429 && reason !== "INTERNAL")
    .map(([reason]) => reason);
  expect(reasons.filter((reason) => !table.includes(`\`${reason}\``))).toEqual([]);
});
