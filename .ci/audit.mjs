// Reads what `npm audit --json` says and fails for a known hole of high severity in a package that runs here. A registry
// that does not answer the question is no failure: it says nothing.
import { text } from "node:stream/consumers";

/** Packages of which nothing runs here, and why. */
const inert = {
  "@openzeppelin/contracts": "Solidity sources that Uniswap's packages name; nothing here compiles or deploys them",
};
const serious = new Set(["high", "critical"]);

function parse(said) {
  try {
    return JSON.parse(said);
  } catch {
    return {};
  }
}

const { vulnerabilities } = parse(await text(process.stdin));
if (vulnerabilities === undefined) {
  console.log("not known: the registry does not answer");
  process.exit();
}

// Names stand for packages that only contain such a one, which has an entry of its own.
const holes = Object.values(vulnerabilities)
  .flatMap(({ via }) => via)
  .filter((each) => typeof each === "object" && serious.has(each.severity));
let failed = false;
for (const { name, title, url } of holes) {
  const why = inert[name];
  if (why === undefined) failed = true;
  console.log(`${name}: ${title} (${url})${why === undefined ? "" : ` - ${why}`}`);
}
if (failed) process.exit(1);
console.log(`${holes.length} known, none in what runs here`);
