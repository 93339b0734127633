import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { ServiceError } from "../../../../src/errors.js";
import {
  toConnectError,
  toErrorBody,
  toMalformedRequestError,
  toServiceError,
} from "../../../../src/http/request/error-mapping.js";

const DOMAIN = "hop.bridge.v1";

describe("toServiceError", () => {
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

test("replaces lone surrogates, which cannot be encoded", () => {
  const error = toConnectError(new ServiceError("INVALID_PARAMETER", "a\ud800b\u{1F600}"), DOMAIN);
  expect(error.rawMessage).toBe("a\ufffdb\u{1F600}");
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
