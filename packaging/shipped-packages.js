// Knows the packages of others that users receive: those installed for production, and those copied into the pages.
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const project = fileURLToPath(new URL("..", import.meta.url));

/** Development dependencies with files in dist/web. */
const IN_PAGES = ["swagger-ui-dist", "uplot"];

/**
 * Uniswap's contracts under copyleft licences. Uniswap's SDK loads the ABI of a few of them, which the Hop SDK imports; no
 * source and no bytecode of them is shipped.
 */
export const ABI_ONLY = ["@uniswap/swap-router-contracts", "@uniswap/v3-periphery", "@uniswap/v3-staker"];

/** Lists the packages with their path, name, version, licence and whether they are optional, by the lock file. */
export function listShippedPackages() {
  const { packages } = JSON.parse(readFileSync(join(project, "package-lock.json"), "utf8"));
  return Object.entries(packages)
    .map(([path, entry]) => ({ path, name: path.replace(/^.*node_modules\//, ""), ...entry }))
    .filter(({ path, name, dev, devOptional }) => path !== "" && ((!dev && !devOptional) || IN_PAGES.includes(name)))
    .map(({ path, name, version, license, optional = false, dev = false }) => {
      return { path, name, version, license, isOptional: optional, isInPages: dev };
    });
}

/** Removes from a folder node_modules all but the ABIs of the packages above. */
function keepAbisOnly(nodeModules) {
  const loader = readFileSync(join(nodeModules, "@uniswap/v3-sdk/dist/v3-sdk.cjs.production.min.js"), "utf8");
  for (const name of ABI_ONLY) {
    for (const path of listOwnFiles(join(nodeModules, name))) {
      if (path === "package.json" || /^LICEN[CS]E/.test(path)) continue;
      const file = join(nodeModules, name, path);
      const text = readFileSync(file, "utf8");
      rmSync(file);
      if (loader.includes(`"${name}/${path}"`)) writeFileSync(file, JSON.stringify({ abi: JSON.parse(text).abi }));
    }
  }
}

/** Makes a folder ready to be shipped: removes contracts from its node_modules, and lists the licences of the packages. */
export function addLicences(folder) {
  keepAbisOnly(join(folder, "node_modules"));
  const packages = listShippedPackages().filter(({ path }) => existsSync(join(project, path)));
  const byName = new Map(packages.map((each) => [`${each.name} ${each.version}`, each]));
  writeFileSync(join(folder, "THIRD_PARTY_LICENSES.txt"), renderTexts([...byName.values()]));
}

/** Returns the licences and their texts of the packages with these names that the project itself imports. */
export function renderLicences(names) {
  return renderTexts(listShippedPackages().filter(({ path }) => names.some((name) => path === `node_modules/${name}`)));
}

/** Returns the licences and their texts of these packages, as they are installed in the project. */
function renderTexts(packages) {
  const sections = packages.map(({ path, name, version, license }) => {
    const note = ABI_ONLY.includes(name) ? "\nOnly the ABIs of contracts are included." : "";
    const texts = listOwnFiles(join(project, path))
      .filter((file) => /^(LICEN[CS]E|NOTICE|COPYING)[^/]*$/i.test(file))
      .map((file) => readFileSync(join(project, path, file), "utf8").trim());
    return [`${name} ${version}: ${license}${note}`, ...texts].join("\n\n");
  });
  return `${sections.join(`\n\n${"-".repeat(80)}\n\n`)}\n`;
}

/** Lists the files of a package without those of packages inside it. */
function listOwnFiles(folder) {
  return readdirSync(folder, { recursive: true })
    .filter((path) => !path.split("/").includes("node_modules"))
    .filter((path) => statSync(join(folder, path)).isFile());
}
