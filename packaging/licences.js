// Fails if users would receive a package under a licence that is not allowed here: `npm run check:licences [folder]`.
// Removes from a folder that is shipped what is not allowed, and adds the list of the licences.
import { ABI_ONLY, addLicences, listShippedPackages } from "./shipped-packages.js";

/** Licences (SPDX) that ask for no more than their text. */
const ALLOWED = new Set(["0BSD", "Apache-2.0", "BlueOak-1.0.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"]);

/** Evaluates an SPDX expression without nesting: "MIT", "(MIT OR WTFPL)", "(Apache-2.0 AND BSD-3-Clause)". */
function isAllowed(license = "") {
  const terms = license.replace(/^\((.*)\)$/, "$1").split(" AND ");
  return terms.every((term) => term.split(" OR ").some((id) => ALLOWED.has(id)));
}

const refused = listShippedPackages().filter(({ name, license }) => !isAllowed(license) && !ABI_ONLY.includes(name));
for (const { path, version, license } of refused) {
  process.stderr.write(`${path} ${version}: ${license ?? "no licence"} is not allowed\n`);
}
if (refused.length > 0) process.exitCode = 1;
else if (process.argv[2] !== undefined) addLicences(process.argv[2]);
