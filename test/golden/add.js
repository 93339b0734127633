// Makes regression tests of quotes that differ from the SDK's: npm run golden:add -- <file> [folder]
// The file has the output of `hop-gateway compare`, or a log that contains it.
// test/parity/golden-differences.test.ts replays what is written, and fails until the code is right.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const [file, folder = fileURLToPath(new URL("differences", import.meta.url))] = process.argv.slice(2);
if (file === undefined) {
  process.stderr.write("usage: npm run golden:add -- <file> [folder]\n");
  process.exit(2);
}
// The reports among other lines: each is printed with indentation, from a line { to a line }.
const reports = readFileSync(file, "utf8").match(/^\{\n[^]*?^\}$/gm) ?? [];
const differences = reports.flatMap((report) => JSON.parse(report).differences ?? []);
mkdirSync(folder, { recursive: true });
for (const difference of differences) {
  const { token, fromChain, toChain } = difference.request;
  const name = [token, fromChain, toChain, difference.id].map((part) => String(part).replaceAll(/[^\w.]/g, "")).join("-");
  writeFileSync(`${folder}/${name}.json`, `${JSON.stringify(difference)}\n`);
  process.stdout.write(`${folder}/${name}.json\n`);
}
if (differences.length === 0) process.stdout.write("there are no differences\n");
