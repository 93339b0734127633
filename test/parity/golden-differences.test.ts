import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { computeQuote, computeSdkQuote } from "../../src/quotes/compare/compare-engines.js";
import type { ComparisonCase } from "../../src/quotes/compare/comparison-case.js";
import { readRequest, replaySources } from "../support/reference/replay-case.js";

// Quotes that `hop-gateway compare` found to differ from the SDK's, recorded by `npm run golden:add`, and one that equals it.

const folder = new URL("../golden/differences/", import.meta.url);
const { signal } = new AbortController();

describe.each(readdirSync(folder))("%s", (name) => {
  const difference = JSON.parse(readFileSync(new URL(name, folder), "utf8")) as ComparisonCase;
  const request = readRequest(difference);

  test("holds all that the SDK's quote was computed from", async () => {
    expect(await computeSdkQuote(request, replaySources(difference), signal)).toEqual(difference.sdkQuote);
  });

  test("is quoted like by the SDK", async () => {
    expect(await computeQuote(request, replaySources(difference), signal)).toEqual(difference.sdkQuote);
  });
});
