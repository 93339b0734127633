// Reads the output of `npm audit --json` and fails for a known vulnerability of high or critical severity in a package
// that is used at run time. If the registry returns no audit, the check passes.
import { text as readText } from "node:stream/consumers";

/** Packages whose code is never run, with the reason. */
const UNUSED = {
  "@openzeppelin/contracts":
    "Solidity sources that Uniswap's packages depend on; they are neither compiled nor deployed",
};
const FAILING_SEVERITIES = new Set(["high", "critical"]);

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

const { vulnerabilities } = parse(await readText(process.stdin));
if (vulnerabilities === undefined) {
  console.log("unknown: the registry returned no audit");
  process.exit();
}

// A string in `via` names a vulnerable dependency, which has a separate entry.
const vulnerable = Object.values(vulnerabilities)
  .flatMap(({ via }) => via)
  .filter((cause) => typeof cause === "object" && FAILING_SEVERITIES.has(cause.severity));
let failed = false;
for (const { name, title, url } of vulnerable) {
  const reason = UNUSED[name];
  if (reason === undefined) failed = true;
  console.log(`${name}: ${title} (${url})${reason === undefined ? "" : ` - ${reason}`}`);
}
if (failed) process.exit(1);
console.log(`${vulnerable.length} known, none in packages that are used`);
