import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const guide = readFileSync(new URL("../../../CONTRIBUTING.md", import.meta.url), "utf8");
const manifest = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8"));

test("CONTRIBUTING.md states the purpose of every dependency", () => {
  const rows = guide.slice(guide.indexOf("## Dependencies"));
  for (const name of Object.keys({ ...manifest.dependencies, ...manifest.devDependencies })) {
    expect(rows).toContain(name.startsWith("@types/") ? "`@types/*`" : `\`${name}\``);
  }
});
