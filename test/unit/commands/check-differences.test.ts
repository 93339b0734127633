import { afterAll, beforeAll, expect, test } from "vitest";
import { formatDifferences, readDifferences } from "../../../src/commands/check-differences.js";
import type { ComparisonCase } from "../../../src/quotes/shadow-comparison/comparison-case.js";
import { Agent } from "../../../src/resilience/http-client/undici.js";
import { type HttpStub, startHttpStub } from "../../support/stubs/http-stub.js";

const difference = {
  id: "0123456789ab",
  foundAt: "2026-11-22T15:00:00.000Z",
  request: { token: "USDT", fromChain: "polygon", toChain: "arbitrum", amount: "25", slippagePercent: 0.5 },
  // Nothing was read of ethereum.
  chains: { polygon: { pin: { block: "0x10" } }, arbitrum: { pin: { block: "0x20" } }, ethereum: { pin: {} } },
  servedQuote: { bonderFee: "3", estimatedReceived: "22" },
  sdkQuote: { bonderFee: "3", estimatedReceived: "2\u001b[31m1" },
} as unknown as ComparisonCase;

const dispatcher = new Agent();
const { signal } = new AbortController();
let body = "";
let stub: HttpStub;
beforeAll(async () => {
  stub = await startHttpStub((_, response) => response.end(body));
});
afterAll(() => Promise.all([stub.close(), dispatcher.destroy()]));

/** Reads from the stub, which listens on 127.0.0.1. */
function read(changes: Partial<Parameters<typeof readDifferences>[0]> = {}) {
  const port = Number(new URL(stub.url).port);
  const config = { host: "127.0.0.1", port: 1, metricsHost: "0.0.0.0", metricsPort: port, ...changes };
  return readDifferences(config, dispatcher, signal);
}

test("lists the differences of the service that runs with this configuration", async () => {
  body = JSON.stringify({ differences: [difference] });
  const report = await read();
  expect(report).toEqual({ url: `${stub.url}/quote-differences`, differences: [difference] });
  expect(formatDifferences(report).split("\n")).toEqual([
    "",
    `1 quotes differ from the SDK's (${stub.url}/quote-differences):`,
    "  2026-11-22T15:00:00.000Z 0123456789ab: 25 USDT, polygon to arbitrum, slippage 0.5; blocks: polygon 16, arbitrum 32",
    "    estimatedReceived: 22, SDK: 2?[31m1",
    expect.stringContaining("npm run golden:add"),
    "",
  ]);
});

test("says that there are none", async () => {
  body = '{"differences":[]}';
  const report = await read({ host: "0.0.0.0", port: Number(new URL(stub.url).port), metricsPort: "same" });
  expect(formatDifferences(report)).toBe(
    `\nNo quote was found that differs from the SDK's (${stub.url}/quote-differences).\n`,
  );
});

test.each([
  ["another service", "[]", {}],
  ["what is no JSON", "hello", {}],
  ["nothing", "", { metricsPort: 1 }],
])("says that %s answers there", async (_, text, changes) => {
  body = text;
  expect(formatDifferences(await read(changes))).toMatch(
    /^\nNo service answers at http:\/\/127.0.0.1:\d+\/quote-differ/,
  );
});

test("says nothing where the service picks its port", async () => {
  expect(formatDifferences(await read({ metricsPort: 0 }))).toBe("");
});
