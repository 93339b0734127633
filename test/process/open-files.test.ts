import { execFile } from "node:child_process";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { buildService } from "../support/service/build-service.js";

// In a process of its own, whose limit of open files is low: what is loaded on demand is first needed when none can be opened.

const SCRIPT = `
import { closeSync, openSync } from "node:fs";
const { createLogger } = await import(new URL("observability/log.js", process.argv[1]));
const { Metrics } = await import(new URL("observability/metrics/metrics.js", process.argv[1]));

const lines = [];
const logger = createLogger("info", { write: (line) => lines.push(line) });
const metrics = new Metrics({
  version: "1.2.3",
  status: { chains: [], sources: [], prices: { differences: [], distrustedTokens: [], refusedFeeds: [] } },
  load: { cuts: {}, limiter: {}, watches: {} },
  lostLogLines: {},
  now: 0,
}, () => 0);
const scrape = () => metrics.renderText().then((text) => text.includes("hop_gateway_build_info"), ({ code }) => code);

const files = [];
let failure;
while (failure === undefined) {
  try {
    files.push(openSync("/dev/null"));
  } catch ({ code }) {
    failure = code;
  }
}
logger.warn({ a: 1 }, "first");
const scrapes = [await scrape()];
for (const file of files) closeSync(file);
logger.warn({ a: 1 }, "second");
scrapes.push(await scrape());
console.log(JSON.stringify({ failure, scrapes, events: lines.map((line) => ({ ...JSON.parse(line), time: "" })) }));`;

test("logs and renders metrics in full once files can be opened again", async () => {
  const main = pathToFileURL(await buildService()).href;
  const command = 'ulimit -n 64; exec "$0" --input-type=module -e "$1" "$2"';
  const { stdout } = await promisify(execFile)("sh", ["-c", command, process.execPath, SCRIPT, main]);
  expect(JSON.parse(stdout)).toEqual({
    failure: "EMFILE",
    scrapes: ["EMFILE", true],
    events: [
      { level: 40, time: "", msg: "first" },
      { level: 40, time: "", a: 1, msg: "second" },
    ],
  });
});
