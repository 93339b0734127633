import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { ErrorInfoSchema } from "../../../../gen/google/rpc/error_details_pb.js";
import { type ErrorReason, ServiceError } from "../../../../src/errors.js";
import {
  toCodeName,
  toConnectError,
  toErrorBody,
  toErrorHeaders,
  toHttpStatus,
  toMalformedRequestError,
  toServiceError,
} from "../../../../src/http/request/error-mapping.js";

const DOMAIN = "hop.bridge.v1";

test.each<[ErrorReason, string, number]>([
  ["MISSING_PARAMETER", "invalid_argument", 400],
  ["INVALID_PARAMETER", "invalid_argument", 400],
  ["UNKNOWN_PARAMETER", "invalid_argument", 400],
  ["UNSUPPORTED_NETWORK", "invalid_argument", 400],
  ["UNSUPPORTED_TOKEN", "invalid_argument", 400],
  ["UNSUPPORTED_CHAIN", "invalid_argument", 400],
  ["UNSUPPORTED_ROUTE", "invalid_argument", 400],
  ["RPC_URL_FORBIDDEN", "invalid_argument", 400],
  ["INDEX_REQUIRED", "failed_precondition", 400],
  ["TRANSFER_NOT_FOUND", "not_found", 404],
  ["PATH_NOT_FOUND", "not_found", 404],
  ["METHOD_NOT_ALLOWED", "unimplemented", 405],
  ["RATE_LIMITED", "resource_exhausted", 429],
  ["OVERLOADED", "resource_exhausted", 503],
  ["UPSTREAM_UNAVAILABLE", "unavailable", 503],
  ["CHAIN_STALLED", "unavailable", 503],
  ["DEADLINE_EXCEEDED", "deadline_exceeded", 504],
  ["INTERNAL", "internal", 500],
])("maps %s to %s and HTTP %i", (reason, code, status) => {
  expect([toCodeName(reason), toHttpStatus(reason)]).toEqual([code, status]);
});

test("returns the retry time as a header", () => {
  expect(toErrorHeaders(new ServiceError("RATE_LIMITED", "too many", { retryAfterSeconds: 7 }))).toEqual({
    "retry-after": "7",
  });
  expect(toErrorHeaders(new ServiceError("INVALID_PARAMETER", "wrong"))).toEqual({});
});

describe("toErrorBody", () => {
  test("names the invalid field", () => {
    const error = new ServiceError("INVALID_PARAMETER", "slippage is wrong", { field: "slippage" });
    expect(toErrorBody(error)).toBe(
      '{"code":"invalid_argument","message":"slippage is wrong","error":"slippage is wrong",' +
        '"reason":"INVALID_PARAMETER","field":"slippage"}',
    );
  });

  test("omits the field if none is invalid", () => {
    expect(toErrorBody(new ServiceError("TRANSFER_NOT_FOUND", "no such transfer"))).toBe(
      '{"code":"not_found","message":"no such transfer","error":"no such transfer","reason":"TRANSFER_NOT_FOUND"}',
    );
  });
});

describe("toServiceError", () => {
  test("returns a ServiceError unchanged", () => {
    const error = new ServiceError("UNSUPPORTED_TOKEN", "no such token");
    expect(toServiceError(error)).toBe(error);
  });

  test.each([
    ["an internal exception", new TypeError("secret")],
    ["a thrown string", "secret"],
    ["INTERNAL with a message", new ServiceError("INTERNAL", "secret")],
  ])("hides the details of %s", (_, thrown) => {
    const error = toServiceError(thrown);
    expect(error).toMatchObject({ reason: "INTERNAL", message: "internal error", cause: thrown });
    expect(toErrorBody(error)).not.toContain("secret");
  });
});

describe("toConnectError", () => {
  test("puts reason, domain and field into an ErrorInfo", () => {
    const error = toConnectError(
      new ServiceError("MISSING_PARAMETER", "amount is missing", { field: "amount" }),
      DOMAIN,
    );
    expect([error.code, error.rawMessage]).toEqual([Code.InvalidArgument, "amount is missing"]);
    expect(error.findDetails(ErrorInfoSchema)).toMatchObject([
      { reason: "MISSING_PARAMETER", domain: DOMAIN, metadata: { field: "amount" } },
    ]);
  });

  test("states when to retry after a rate limit", () => {
    const error = toConnectError(new ServiceError("RATE_LIMITED", "too many", { retryAfterSeconds: 3 }), DOMAIN);
    expect(error.metadata.get("retry-after")).toBe("3");
    expect(error.findDetails(ErrorInfoSchema)).toMatchObject([{ metadata: {} }]);
  });

  test("replaces lone surrogates, which cannot be encoded", () => {
    const error = toConnectError(new ServiceError("INVALID_PARAMETER", "a\ud800b\u{1F600}"), DOMAIN);
    expect(error.rawMessage).toBe("a\ufffdb\u{1F600}");
  });
});

describe("toMalformedRequestError", () => {
  test.each([
    ["internal", new ConnectError("parse binary: premature EOF", Code.Internal), Code.InvalidArgument],
    ["unknown", new Error("anything"), Code.InvalidArgument],
    ["invalid", new ConnectError("bad", Code.InvalidArgument), Code.InvalidArgument],
    ["too large", new ConnectError("big", Code.ResourceExhausted), Code.ResourceExhausted],
    ["not supported", new ConnectError("what", Code.Unimplemented), Code.Unimplemented],
  ])("blames the caller: %s", (_, error, code) => {
    expect(toMalformedRequestError(error, DOMAIN).code).toBe(code);
  });

  test("returns a short message of visible ASCII", () => {
    const long = new ConnectError(`\ud800\n${"x".repeat(1000)}`, Code.Internal);
    expect(toMalformedRequestError(long, DOMAIN).rawMessage).toBe(`??${"x".repeat(198)}`);
  });
});
