import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const readme = readFileSync(new URL("../../../README.md", import.meta.url), "utf8");
const manifest = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8"));

test("the README says why each dependency is there", () => {
  const rows = readme.slice(readme.indexOf("## Dependencies"));
  for (const name of Object.keys({ ...manifest.dependencies, ...manifest.devDependencies })) {
    expect(rows).toContain(name.startsWith("@types/") ? "`@types/*`" : `\`${name}\``);
  }
});
