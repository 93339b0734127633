import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

interface Component {
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly hashes: readonly { readonly alg: string; readonly content: string }[];
  readonly licenses: readonly unknown[];
}

const project = fileURLToPath(new URL("../../..", import.meta.url));

test("the bill of materials names what users receive, with licences and hashes", () => {
  const bom = JSON.parse(execFileSync(process.execPath, ["packaging/sbom.js"], { cwd: project, encoding: "utf8" }));
  expect(bom).toMatchObject({ bomFormat: "CycloneDX", specVersion: "1.5" });
  expect(bom.metadata.component.name).toBe("hop-gateway");
  const components: Component[] = bom.components;
  const named = new Set(components.map(({ name, version }) => `${name}@${version}`));
  expect(named.size).toBe(components.length);

  const { packages } = JSON.parse(readFileSync(`${project}package-lock.json`, "utf8"));
  for (const [path, { name = path.replace(/^.*node_modules\//, ""), version, dev, devOptional }] of Object.entries<
    Record<string, string>
  >(packages)) {
    if (path !== "" && !dev && !devOptional) expect(named).toContain(`${name}@${version}`);
  }
  for (const name of ["swagger-ui-dist", "uplot"]) expect(components.map((each) => each.name)).toContain(name);
  expect(components.map(({ name }) => name)).not.toContain("vitest");

  for (const { name, purl, hashes, licenses } of components) {
    expect(purl, name).toMatch(/^pkg:npm\//);
    expect(licenses, name).toHaveLength(1);
    expect(hashes, name).toEqual([{ alg: "SHA-512", content: expect.stringMatching(/^[0-9a-f]{128}$/) as unknown }]);
  }
  const references = new Set([
    bom.metadata.component["bom-ref"],
    ...bom.components.map((each: never) => each["bom-ref"]),
  ]);
  for (const { ref, dependsOn } of bom.dependencies) {
    for (const reference of [ref, ...dependsOn]) expect(references).toContain(reference);
  }
});
