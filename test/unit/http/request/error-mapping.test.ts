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
  ["TRANSFER_NOT_FOUND", "not_found", 404],
  ["PATH_NOT_FOUND", "not_found", 404],
  ["METHOD_NOT_ALLOWED", "unimplemented", 405],
  ["RATE_LIMITED", "resource_exhausted", 429],
  ["OVERLOADED", "resource_exhausted", 503],
  ["UPSTREAM_UNAVAILABLE", "unavailable", 503],
  ["DEADLINE_EXCEEDED", "deadline_exceeded", 504],
  ["INTERNAL", "internal", 500],
])("%s is %s, HTTP %i", (reason, code, status) => {
  expect([toCodeName(reason), toHttpStatus(reason)]).toEqual([code, status]);
});

test("a time after which to come back is a header", () => {
  expect(toErrorHeaders(new ServiceError("RATE_LIMITED", "too many", { retryAfterSeconds: 7 }))).toEqual({
    "retry-after": "7",
  });
  expect(toErrorHeaders(new ServiceError("INVALID_PARAMETER", "wrong"))).toEqual({});
});

describe("the body of an error", () => {
  test("names the field at fault", () => {
    const error = new ServiceError("INVALID_PARAMETER", "slippage is wrong", { field: "slippage" });
    expect(toErrorBody(error)).toBe(
      '{"code":"invalid_argument","message":"slippage is wrong","error":"slippage is wrong",' +
        '"reason":"INVALID_PARAMETER","field":"slippage"}',
    );
  });

  test("has no field where none is at fault", () => {
    expect(toErrorBody(new ServiceError("TRANSFER_NOT_FOUND", "no such transfer"))).toBe(
      '{"code":"not_found","message":"no such transfer","error":"no such transfer","reason":"TRANSFER_NOT_FOUND"}',
    );
  });
});

describe("what the caller is told", () => {
  test("is a ServiceError as it is", () => {
    const error = new ServiceError("UNSUPPORTED_TOKEN", "no such token");
    expect(toServiceError(error)).toBe(error);
  });

  test.each([
    ["an error of ours", new TypeError("secret")],
    ["what is no error", "secret"],
    ["INTERNAL with words", new ServiceError("INTERNAL", "secret")],
  ])("is no detail of %s", (_, thrown) => {
    const told = toServiceError(thrown);
    expect(told).toMatchObject({ reason: "INTERNAL", message: "internal error", cause: thrown });
    expect(toErrorBody(told)).not.toContain("secret");
  });
});

describe("over gRPC and Connect", () => {
  test("the reason, its domain and the field are in an ErrorInfo", () => {
    const error = toConnectError(
      new ServiceError("MISSING_PARAMETER", "amount is missing", { field: "amount" }),
      DOMAIN,
    );
    expect([error.code, error.rawMessage]).toEqual([Code.InvalidArgument, "amount is missing"]);
    expect(error.findDetails(ErrorInfoSchema)).toMatchObject([
      { reason: "MISSING_PARAMETER", domain: DOMAIN, metadata: { field: "amount" } },
    ]);
  });

  test("a rate limit says when to come back", () => {
    const error = toConnectError(new ServiceError("RATE_LIMITED", "too many", { retryAfterSeconds: 3 }), DOMAIN);
    expect(error.metadata.get("retry-after")).toBe("3");
    expect(error.findDetails(ErrorInfoSchema)).toMatchObject([{ metadata: {} }]);
  });

  test("half a surrogate pair does not break the message's encoding", () => {
    const error = toConnectError(new ServiceError("INVALID_PARAMETER", "a\ud800b\u{1F600}"), DOMAIN);
    expect(error.rawMessage).toBe("a\ufffdb\u{1F600}");
  });
});

describe("a request that cannot be read", () => {
  test.each([
    ["internal", new ConnectError("parse binary: premature EOF", Code.Internal), Code.InvalidArgument],
    ["unknown", new Error("anything"), Code.InvalidArgument],
    ["invalid", new ConnectError("bad", Code.InvalidArgument), Code.InvalidArgument],
    ["too large", new ConnectError("big", Code.ResourceExhausted), Code.ResourceExhausted],
    ["not supported", new ConnectError("what", Code.Unimplemented), Code.Unimplemented],
  ])("is the caller's fault: %s", (_, error, code) => {
    expect(toMalformedRequestError(error, DOMAIN).code).toBe(code);
  });

  test("is told about in short and visible words", () => {
    const long = new ConnectError(`\ud800\n${"x".repeat(1000)}`, Code.Internal);
    expect(toMalformedRequestError(long, DOMAIN).rawMessage).toBe(`??${"x".repeat(198)}`);
  });
});
