import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { RecordedResponse } from "../../../support/contract/response-recorder.js";
import { createResponseValidator, type OpenApi, readOpenApi } from "../../../support/contract/response-validator.js";

// Checks the responses of all tests, so it must detect every deviation.

const validate = createResponseValidator(readOpenApi());

const json = { "content-type": "application/json; charset=utf-8", "x-content-type-options": "nosniff" };
const quote = {
  ...{ amountIn: "25000000", slippage: 0.5, amountOutMin: "1", destinationAmountOutMin: "0", bonderFee: "0" },
  ...{ estimatedReceived: "1", estimatedRecieved: "1", deadline: 1_700_000_000, destinationDeadline: 0 },
};
function createResponse(more: Partial<RecordedResponse> = {}): RecordedResponse {
  const headers = { age: "1", "cache-control": "public, max-age=4", ...json };
  const body = JSON.stringify(quote);
  return { method: "GET", path: "/v1/quote", parameters: [], status: 200, headers, body, ...more };
}
const withHeaders = (more: Readonly<Record<string, string>>) =>
  createResponse({ headers: { ...createResponse().headers, ...more } });
const withBody = (more: object) => createResponse({ body: JSON.stringify({ ...quote, ...more }) });

const error = { code: "invalid_argument", message: "no", error: "no", reason: "INVALID_PARAMETER", field: "slippage" };
function createError(status: number, more: object = {}): RecordedResponse {
  const headers = { "x-request-id": "mine", "cache-control": "no-store", ...json };
  return createResponse({ status, headers, body: JSON.stringify({ ...error, ...more }) });
}

describe("accepts", () => {
  test.each([
    ["a response as described", createResponse()],
    ["a response to HEAD", createResponse({ method: "HEAD", body: "" })],
    ["a 304", createResponse({ status: 304, headers: { etag: '"x"' }, body: "" })],
    ["a response for one caller", withHeaders({ "cache-control": "no-store", "x-request-id": "a" })],
    ["an error", createError(400)],
    ["an error without a field", createError(400, { field: undefined })],
    [
      "an error at an unknown path",
      { ...createError(404, { code: "not_found", reason: "PATH_NOT_FOUND" }), path: "/v1/x" },
    ],
    ["a 414 at an unknown path", { ...createError(414), path: "/v1/xxxxx" }],
  ])("%s", (_, response) => {
    expect(validate(response)).toEqual([]);
  });

  test("the example of every operation that is not a stream", () => {
    const { paths } = readOpenApi() as unknown as {
      paths: Record<string, { get: { responses: { 200: { content: Record<string, { example: unknown }> } } } }>;
    };
    for (const [path, { get }] of Object.entries(paths)) {
      const { content } = get.responses[200];
      if (content["text/event-stream"] !== undefined) continue;
      const example = content["application/json"]?.example;
      const headers = { "x-request-id": "mine", ...json };
      expect(validate(createResponse({ path, headers, body: JSON.stringify(example) }))).toEqual([]);
    }
  });
});

describe("detects", () => {
  test.each([
    ["an extra field", withBody({ extra: 1 }), "extra"],
    ["a missing field", withBody({ bonderFee: undefined }), "bonderFee"],
    ["a string as a number", withBody({ bonderFee: 0 }), "/bonderFee"],
    ["a slippage out of range", withBody({ slippage: 100 }), "/slippage"],
    ["a body that is not JSON", createResponse({ body: "{" }), "not JSON"],
    ["a missing header", createError(405, { code: "unimplemented", reason: "METHOD_NOT_ALLOWED" }), "Allow is missing"],
    ["a header of one caller for shared caches", withHeaders({ "x-request-id": "mine" }), "x-request-id"],
    ["an invalid header", withHeaders({ "cache-control": "maybe" }), "Cache-Control"],
    ["an invalid number in a header", withHeaders({ age: "1.5" }), "Age"],
    ["an undeclared header", withHeaders({ "x-powered-by": "us" }), "x-powered-by"],
    ["a success header on an error", { ...createError(400), headers: withHeaders({ vary: "*" }).headers }, "vary"],
    ["a header of another operation", withHeaders({ source: "chain" }), "source"],
    ["another content type", withHeaders({ "content-type": "text/html" }), "text/html"],
    ["a body for HEAD", createResponse({ method: "HEAD" }), "HEAD"],
    ["an undeclared status", createError(418), "418"],
    ["an unknown reason", createError(400, { reason: "BORED" }), "/reason"],
    ["a reason of another status", createError(503), "/reason"],
    ["a code of another status", createError(400, { code: "not_found" }), "/code"],
    ["an extra field in an error", createError(400, { cause: "at /home" }), "cause"],
    ["a body with a 304", createResponse({ status: 304 }), "body"],
    ["a successful response to another method", createResponse({ method: "POST" }), "method"],
    ["a successful response at an unknown path", createResponse({ path: "/v1/other" }), "the path is not declared"],
    ["an unknown reason at an unknown path", { ...createError(404, { reason: "BORED" }), path: "/v1/x" }, "/reason"],
    ["a status of another operation", createError(404), "404"],
  ])("%s", (_, response, problem) => {
    expect(validate(response)?.join("\n")).toContain(problem);
  });

  test("a problem in one of several routes", () => {
    const route = { token: "ETH", sourceChainSlug: "base", sourceChainId: 8453, destinationChainSlug: "ethereum" };
    const routes = [
      { ...route, destinationChainId: 1 },
      { ...route, destinationChainId: 0 },
    ];
    const response = createResponse({ path: "/v1/available-routes", body: JSON.stringify(routes) });
    expect(validate(response)?.join("\n")).toContain("/1/destinationChainId");
  });
});

test("rejects a description with an invalid schema", () => {
  const text = readFileSync(new URL("../../../../gen/openapi.json", import.meta.url), "utf8");
  const broken = JSON.parse(text.replaceAll('"required":', '"requird":')) as OpenApi;
  expect(() => createResponseValidator(broken)(createResponse())).toThrow("requird");
});

test("ignores CORS preflights", () => {
  expect(validate(createResponse({ method: "OPTIONS", status: 204, body: "" }))).toBeUndefined();
});
