import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { HttpRuleSchema } from "../../../../gen/google/api/http_pb.js";
import { BridgeService } from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { readGetRoutes } from "../../../../src/http/rest/annotations.js";
import { createTestService } from "../support/test-contract.js";

const get = (value: string) => ({ pattern: { case: "get", value } }) as const;

test("reads paths, methods and bodies from the annotations", () => {
  const routes = readGetRoutes(BridgeService).map(({ path, method, responseBody }) => [
    path,
    method.name,
    responseBody,
  ]);
  expect(routes).toEqual([
    ["/v1/quote", "GetQuote", ""],
    ["/v1/quotes", "BatchGetQuotes", ""],
    ["/v1/transfer-status", "GetTransferStatus", ""],
    ["/v1/transfers", "ListTransfers", ""],
    ["/v1/transfers:watch", "WatchTransfers", ""],
    ["/v1/withdrawal", "GetWithdrawal", ""],
    ["/v1/available-routes", "ListAvailableRoutes", "routes"],
  ]);
});

test("reads additional bindings and skips methods without an annotation", () => {
  const more = create(HttpRuleSchema, { ...get("/v1/other"), responseBody: "string_value" });
  const routes = readGetRoutes(createTestService({ ...get("/v1/echo"), additionalBindings: [more] }));
  expect(routes.map(({ path, responseBody }) => [path, responseBody])).toEqual([
    ["/v1/echo", ""],
    ["/v1/other", "string_value"],
  ]);
  expect(readGetRoutes(createTestService(undefined))).toEqual([]);
});

test.each([
  ["another verb", { pattern: { case: "post", value: "/v1/echo" } } as const, {}],
  ["no verb", {}, {}],
  ["a body", { ...get("/v1/echo"), body: "*" }, {}],
  ["a variable in the path", get("/v1/{string_value}"), {}],
  ["no slash in front", get("v1"), {}],
  ["a slash behind", get("/v1/"), {}],
  ["a doubled slash", get("/v1//echo"), {}],
  ["a stream", get("/v1/echo"), { clientStreaming: true }],
])("rejects %s", (_, rule, shape) => {
  expect(() => readGetRoutes(createTestService(rule, shape))).toThrow("test.kinds.v1.KindsService/Echo");
});
