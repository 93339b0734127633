import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

// What gen/openapi.json states about the contract and no other test does: constraints.test.ts compares its constraints
// with the service, and a test of the generator the file with the plugin's output.

/** An untyped OpenAPI document: every test reads another part of it. */
// biome-ignore lint/suspicious/noExplicitAny: see above
type Description = any;

const description: Description = JSON.parse(
  readFileSync(new URL("../../../gen/openapi.json", import.meta.url), "utf8"),
);
const parameters = (path: string): Description[] => description.paths[path].get.parameters;

test("leaves out what no query can express, and requires what a query cannot do without", () => {
  const named = parameters("/v1/quotes") as readonly { readonly name?: string; readonly required?: boolean }[];
  expect(named.flatMap(({ name }) => name ?? [])).toEqual([
    ...["token", "fromChain", "toChain", "amount", "slippage", "network", "view"],
  ]);
  expect(named.flatMap(({ name, required }) => (required ? name : []))).toEqual([
    ...["token", "fromChain", "amount", "slippage"],
  ]);
  expect(named).toContainEqual(
    expect.objectContaining({
      name: "toChain",
      schema: { type: "array", items: { $ref: "#/components/schemas/ChainName" }, maxItems: 100 },
    }),
  );
});

test("limits the lists of a query more than those of a message", () => {
  const lists = parameters("/v1/transfers:watch").filter(({ schema }) => schema?.type === "array");
  expect(lists).toMatchObject([
    { name: "transferId", schema: { maxItems: 50 }, example: [expect.stringMatching(/^0x[0-9a-f]{64}$/)] },
    { name: "transferHash", schema: { maxItems: 50 }, example: [expect.stringMatching(/^0x[0-9a-f]{64}$/)] },
  ]);
});

test("requires every response field and omits unspecified enum values", () => {
  const { schemas } = description.components;
  const status = schemas.GetTransferStatusResponse;
  expect([...status.required, "details"]).toEqual(Object.keys(status.properties));
  expect(status.required).toHaveLength(23);
  expect(status.properties.timestamp).toMatchObject({ $ref: "#/components/schemas/UnixTime" });
  expect(schemas.UnixTime).toMatchObject({ type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
  expect(schemas.GetTransferStatusResponseState.enum).toEqual(["PENDING", "BONDED", "UNBONDABLE"]);
  const addressOrEmpty = [{ $ref: "#/components/schemas/Address" }, { type: "string", const: "" }];
  expect(status.properties.bonderAddress.anyOf).toEqual(addressOrEmpty);
  expect(schemas.GetTransferStatusResponseState.description).toMatch(/^State of a transfer\.\n\n- `PENDING`/);
});

test("describes the field that response_body names as the whole response", () => {
  const { content } = description.paths["/v1/available-routes"].get.responses[200];
  expect(content["application/json"].schema).toEqual({
    type: "array",
    items: { $ref: "#/components/schemas/Route" },
  });
  expect(content["application/json"].example).toMatchObject([{ token: "rETH", sourceChainId: 10 }]);
  expect(description.components.schemas).not.toHaveProperty("ListAvailableRoutesResponse");
});

test("lists error reasons by status, and specific reasons only for their method", () => {
  const { responses, schemas } = description.components;
  const { schema, examples } = responses.ServiceUnavailable.content["application/json"];
  expect(schema.allOf).toEqual([
    { $ref: "#/components/schemas/Error" },
    {
      type: "object",
      properties: {
        code: { type: "string", enum: ["resource_exhausted", "unavailable"] },
        reason: { type: "string", enum: ["OVERLOADED", "UPSTREAM_UNAVAILABLE"] },
      },
    },
  ]);
  expect(Object.keys(examples)).toEqual(["OVERLOADED", "UPSTREAM_UNAVAILABLE"]);
  expect(responses.TooManyRequests.headers).toHaveProperty("Retry-After");
  expect(schemas.Error.required).toEqual(["code", "message", "error", "reason"]);
  const statuses = (path: string) => Object.keys(description.paths[path].get.responses).map(Number);
  const common = [400, 405, 408, 414, 429, 431, 500, 503, 504];
  expect(statuses("/v1/quote")).toEqual([200, 304, ...common]);
  expect(statuses("/v1/transfer-status")).toEqual([200, 304, 400, 404, ...common.slice(1)]);
});

test("lists the response headers of a method", () => {
  const { headers } = description.paths["/v1/transfer-status"].get.responses[200];
  expect(headers.Source.schema).toEqual({ type: "string", enum: ["chain", "index", "explorer"] });
  expect(headers["Observed-At"].schema).toEqual({ type: "string", format: "date-time" });
  expect(description.paths["/v1/quote"].get.responses[200].headers).not.toHaveProperty("Source");
});

test("describes details as optional, and does not show them in the example", () => {
  const { schemas } = description.components;
  const { properties, required } = schemas.GetQuoteResponse;
  expect(Object.keys(properties)).toEqual([...required, "details"]);
  expect(properties.details.$ref).toBe("#/components/schemas/QuoteDetails");
  expect(schemas.QuoteDetails.required).toEqual(
    Object.entries<Description>(schemas.QuoteDetails.properties).flatMap(([name, { $ref = "" }]) =>
      name === "priceImpact" || /\/(QuoteLimits|DeliveryTime|DestinationGas|QuotePrices)$/.test($ref) ? [] : [name],
    ),
  );
  expect(schemas.TransferDetails.required).toEqual(["substate", "receivedAmount", "receivedToken"]);
  const { example } = description.paths["/v1/quote"].get.responses[200].content["application/json"];
  expect(Object.keys(example)).toEqual(required);
});

test("states which parameters exclude each other", () => {
  const { get } = description.paths["/v1/quote"];
  expect(get["x-at-most-one-of"]).toEqual(["amount", "receiveAmount"]);
  expect(get.description).toContain("At most one of `amount`, `receiveAmount` may be given.");
});

test("states which parameters require at least one of them", () => {
  const { get } = description.paths["/v1/transfer-status"];
  expect(get["x-at-least-one-of"]).toEqual(["transferId", "transferHash", "transactionHash"]);
  expect(get.description).toContain("At least one of `transferId`, `transferHash`, `transactionHash` is required.");
});
