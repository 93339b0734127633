import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

interface LockEntry {
  readonly integrity?: string;
  readonly resolved?: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly os?: readonly string[];
}

const { packages } = JSON.parse(readFileSync(new URL("../../../package-lock.json", import.meta.url), "utf8"));
const entries = Object.entries<LockEntry>(packages).filter(([path]) => path !== "");

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
  expect(entries.filter(([, { resolved }]) => resolved !== undefined).map(([path]) => path)).toEqual([]);
  expect(readFileSync(new URL("../../../.npmrc", import.meta.url), "utf8")).not.toMatch(/registry=|:\/\//);
});
