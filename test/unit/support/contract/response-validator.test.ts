import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { RecordedResponse } from "../../../support/contract/response-recorder.js";
import { createResponseValidator, type OpenApi, readOpenApi } from "../../../support/contract/response-validator.js";

// The judge of all answers in all tests: it must see what is wrong.

const judge = createResponseValidator(readOpenApi());

const json = { "content-type": "application/json; charset=utf-8", "x-content-type-options": "nosniff" };
const quote = {
  ...{ amountIn: "25000000", slippage: 0.5, amountOutMin: "1", destinationAmountOutMin: "0", bonderFee: "0" },
  ...{ estimatedReceived: "1", estimatedRecieved: "1", deadline: 1_700_000_000, destinationDeadline: 0 },
};
function answer(more: Partial<RecordedResponse> = {}): RecordedResponse {
  const headers = { "x-request-id": "mine", age: "1", "cache-control": "public, max-age=4", ...json };
  const body = JSON.stringify(quote);
  return { method: "GET", path: "/v1/quote", parameters: [], status: 200, headers, body, ...more };
}
const withHeaders = (more: Readonly<Record<string, string>>) => answer({ headers: { ...answer().headers, ...more } });
const withBody = (more: object) => answer({ body: JSON.stringify({ ...quote, ...more }) });

const error = { code: "invalid_argument", message: "no", error: "no", reason: "INVALID_PARAMETER", field: "slippage" };
function refusal(status: number, more: object = {}): RecordedResponse {
  const headers = { "x-request-id": "mine", "cache-control": "no-store", ...json };
  return answer({ status, headers, body: JSON.stringify({ ...error, ...more }) });
}

describe("is content with", () => {
  test.each([
    ["an answer as it is described", answer()],
    ["one to HEAD", answer({ method: "HEAD", body: "" })],
    ["one that the caller has", answer({ status: 304, headers: { "x-request-id": "a", etag: '"x"' }, body: "" })],
    ["a refusal", refusal(400)],
    ["a refusal without a field", refusal(400, { field: undefined })],
    ["a refusal at no path", { ...refusal(404, { code: "not_found", reason: "PATH_NOT_FOUND" }), path: "/v1/x" }],
    ["a refusal of a long URL at no path", { ...refusal(414), path: "/v1/xxxxx" }],
  ])("%s", (_, given) => {
    expect(judge(given)).toEqual([]);
  });

  test("routes, each as described", () => {
    const { paths } = readOpenApi() as unknown as {
      paths: Record<string, { get: { responses: { 200: { content: { "application/json": { example: unknown } } } } } }>;
    };
    for (const [path, { get }] of Object.entries(paths)) {
      const { example } = get.responses[200].content["application/json"];
      const headers = { "x-request-id": "mine", ...json };
      expect(judge(answer({ path, headers, body: JSON.stringify(example) }))).toEqual([]);
    }
  });
});

describe("sees", () => {
  test.each([
    ["a field too many", withBody({ extra: 1 }), "extra"],
    ["a field too few", withBody({ bonderFee: undefined }), "bonderFee"],
    ["a number as a text", withBody({ deadline: "1700000000" }), "/deadline"],
    ["a text as a number", withBody({ bonderFee: 0 }), "/bonderFee"],
    ["an amount that is none", withBody({ bonderFee: "-1" }), "/bonderFee"],
    ["null", withBody({ slippage: null }), "/slippage"],
    ["a slippage out of range", withBody({ slippage: 100 }), "/slippage"],
    ["a number that no double holds", withBody({ deadline: 2 ** 53 }), "/deadline"],
    ["a body that is no JSON", answer({ body: "{" }), "no JSON"],
    ["a header that is missing", answer({ headers: json }), "X-Request-Id is missing"],
    ["a header of the wrong form", withHeaders({ "cache-control": "maybe" }), "Cache-Control"],
    ["a number that is none in a header", withHeaders({ age: "1.5" }), "Age"],
    ["a header that nobody declared", withHeaders({ "x-powered-by": "us" }), "x-powered-by"],
    [
      "a header that only answers have, of an error",
      { ...refusal(400), headers: withHeaders({ vary: "*" }).headers },
      "vary",
    ],
    ["a header of another operation", withHeaders({ source: "chain" }), "source"],
    ["another content type", withHeaders({ "content-type": "text/html" }), "text/html"],
    ["a body for HEAD", answer({ method: "HEAD" }), "HEAD"],
    ["a status that is not declared", refusal(418), "418"],
    ["a reason that is none", refusal(400, { reason: "BORED" }), "/reason"],
    ["a reason under another status", refusal(503), "/reason"],
    ["a code under another status", refusal(400, { code: "not_found" }), "/code"],
    ["an error with more than is told", refusal(400, { cause: "at /home" }), "cause"],
    ["a body beside 304", answer({ status: 304 }), "body"],
    ["another method that is served", answer({ method: "POST" }), "method"],
    ["an answer where there is nothing", answer({ path: "/v1/other" }), "nothing at this path"],
    ["another error where there is nothing", { ...refusal(404, { reason: "BORED" }), path: "/v1/x" }, "/reason"],
    ["a transfer that is not found by a quote", refusal(404), "404"],
  ])("%s", (_, given, said) => {
    expect(judge(given)?.join("\n")).toContain(said);
  });

  test("what is wrong with one of many routes", () => {
    const route = { token: "ETH", sourceChainSlug: "base", sourceChainId: 8453, destinationChainSlug: "ethereum" };
    const routes = [
      { ...route, destinationChainId: 1 },
      { ...route, destinationChainId: 0 },
    ];
    const given = answer({ path: "/v1/available-routes", body: JSON.stringify(routes) });
    expect(judge(given)?.join("\n")).toContain("/1/destinationChainId");
  });
});

test("a description with a mistake in a schema is refused", () => {
  const text = readFileSync(new URL("../../../../gen/openapi.json", import.meta.url), "utf8");
  const broken = JSON.parse(text.replaceAll('"required":', '"requird":')) as OpenApi;
  expect(() => createResponseValidator(broken)(answer())).toThrow("requird");
});

test("a preflight is nothing that the description speaks of", () => {
  expect(judge(answer({ method: "OPTIONS", status: 204, body: "" }))).toBeUndefined();
});
