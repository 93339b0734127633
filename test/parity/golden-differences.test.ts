import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { replayChains } from "../../src/quotes/shadow-comparison/chain-recording.js";
import { type ComparisonCase, parseRequest } from "../../src/quotes/shadow-comparison/comparison-case.js";
import { recomputeQuote, recomputeSdkQuote } from "../../src/quotes/shadow-comparison/recompute-quote.js";

// Quotes that a running service found to differ from the SDK's, recorded by `npm run golden:add`, and one that equals it.

const folder = new URL("../golden/differences/", import.meta.url);
const { signal } = new AbortController();

describe.each(readdirSync(folder))("%s", (name) => {
  const { request, inputs, chains, sdkQuote } = JSON.parse(
    readFileSync(new URL(name, folder), "utf8"),
  ) as ComparisonCase;

  test("holds all that the SDK's quote was computed from", async () => {
    expect(await recomputeSdkQuote(parseRequest(request), inputs, replayChains(chains), signal)).toEqual(sdkQuote);
  });

  test("is quoted like by the SDK", async () => {
    expect(await recomputeQuote(parseRequest(request), inputs, replayChains(chains), signal)).toEqual(sdkQuote);
  });
});
