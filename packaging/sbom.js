// Prints a bill of materials (CycloneDX, JSON) of what users receive: `npm run --silent sbom > sbom.cdx.json`.
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { listShippedPackages } from "./shipped-packages.js";

const project = fileURLToPath(new URL("..", import.meta.url));
const command = ["sbom", "--sbom-format=cyclonedx", "--package-lock-only", "--loglevel=error"];
const bom = JSON.parse(execFileSync("npm", command, { cwd: project, encoding: "utf8", maxBuffer: 1e9 }));

// npm lists all packages, or none for development: it does not know what the pages contain.
const shipped = new Set(listShippedPackages().map(({ name, version }) => `${name}@${version}`));
const root = bom.metadata.component["bom-ref"];
const isShipped = (reference) => reference === root || shipped.has(reference);
bom.components = bom.components.filter((component) => isShipped(component["bom-ref"]));
// npm takes the project's name from the folder, and that of a package from the dependency that `overrides` replaces.
for (const component of [bom.metadata.component, ...bom.components]) {
  component.name = component["bom-ref"].replace(/@[^@]*$/, "");
}
bom.dependencies = bom.dependencies
  .filter(({ ref }) => isShipped(ref))
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter(isShipped) }));
process.stdout.write(`${JSON.stringify(bom, null, 2)}\n`);
