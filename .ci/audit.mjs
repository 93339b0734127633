// Reads the output of `npm audit --json` and fails for a known vulnerability of high or critical severity. If the registry
// returns no audit, the check passes.
import { text as readText } from "node:stream/consumers";

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
for (const { name, title, url } of vulnerable) console.log(`${name}: ${title} (${url})`);
if (vulnerable.length > 0) process.exit(1);
console.log("none known");
