import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

interface LockEntry {
  readonly integrity?: string;
  readonly resolved?: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly os?: readonly string[];
}

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8");
const readEntries = (path: string): [string, LockEntry][] =>
  Object.entries<LockEntry>(JSON.parse(read(path)).packages).filter(([name]) => name !== "");

const entries = readEntries("package-lock.json");
const nodeVersions = readEntries(".ci/node-versions/package-lock.json");

/**
 * Programs of development tools for other platforms than the one of the tests. npm needs the entries on every platform,
 * but the registry that the lock file was written with did not have these versions. CONTRIBUTING.md says how to add hashes.
 */
const WITHOUT_HASH = /^node_modules\/(@biomejs\/cli|@bufbuild\/buf|@foundry-rs\/anvil|@oxc-parser\/binding)-(\w+)/;

test("states a SHA-512 of every package that runs on Linux x64 or is installed for production", () => {
  const withoutHash = entries.filter(([, { integrity }]) => !integrity?.startsWith("sha512-"));
  const unexpected = withoutHash.filter(
    ([path, { dev, optional }]) => !(dev && optional && WITHOUT_HASH.test(path)) || /linux-x64(-gnu)?$/.test(path),
  );
  expect(unexpected.map(([path]) => path)).toEqual([]);
  // May only shrink.
  expect(withoutHash.length).toBeLessThanOrEqual(32);
});

test("names no registry", () => {
  const named = [...entries, ...nodeVersions].filter(([, { resolved }]) => resolved !== undefined);
  expect(named.map(([path]) => path)).toEqual([]);
  expect(read(".npmrc")).not.toMatch(/registry=|:\/\//);
});

test("states a SHA-512 of each version of Node.js that is tested, and npm has the same options for them", () => {
  expect(nodeVersions.length).toBeGreaterThan(0);
  for (const [, { integrity }] of nodeVersions) expect(integrity).toMatch(/^sha512-/);
  expect(read(".ci/node-versions/.npmrc")).toBe(read(".npmrc"));
});
