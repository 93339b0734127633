// Makes regression tests of quotes that differ from the SDK's: npm run golden:add -- <source> [folder]
// The source is the URL of /quote-differences, a file with its content, or one with the output of `hop-gateway check --json`.
// test/parity/golden-differences.test.ts replays what is written, and fails until the code is right.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const [source, folder = fileURLToPath(new URL("differences", import.meta.url))] = process.argv.slice(2);
if (source === undefined) {
  process.stderr.write("usage: npm run golden:add -- <URL of /quote-differences, or file> [folder]\n");
  process.exit(2);
}
const text = /^https?:/.test(source) ? await (await fetch(source)).text() : readFileSync(source, "utf8");
const { differences = [] } = JSON.parse(text);
mkdirSync(folder, { recursive: true });
for (const difference of differences) {
  const { id, request, chains } = difference;
  const { token, fromChain, toChain } = request;
  const name = [token, fromChain, toChain, id].map((part) => String(part).replaceAll(/[^\w.]/g, "")).join("-");
  if (Object.keys(chains).length === 0) process.stdout.write(`${name}: left out, it was too long for its recorded calls\n`);
  else {
    writeFileSync(`${folder}/${name}.json`, `${JSON.stringify(difference)}\n`);
    process.stdout.write(`${folder}/${name}.json\n`);
  }
}
if (differences.length === 0) process.stdout.write("there are no differences\n");
