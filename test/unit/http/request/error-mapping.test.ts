import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ServiceError } from "../../../../src/errors.js";
import {
  toConnectError,
  toErrorBody,
  toMalformedRequestError,
  toServiceError,
} from "../../../../src/http/request/error-mapping.js";

const DOMAIN = "hop.bridge.v1";

test.each([
  ["an internal exception", new TypeError("secret")],
  ["a thrown string", "secret"],
  ["INTERNAL with a message", new ServiceError("INTERNAL", "secret")],
])("hides the details of %s", (_, thrown) => {
  const error = toServiceError(thrown);
  expect(error).toMatchObject({ reason: "INTERNAL", message: "internal error", cause: thrown });
  expect(toErrorBody(error)).not.toContain("secret");
});

test("replaces lone surrogates, which cannot be encoded", () => {
  const error = toConnectError(new ServiceError("INVALID_PARAMETER", "a\ud800b\u{1F600}"), DOMAIN, {});
  expect(error.rawMessage).toBe("a\ufffdb\u{1F600}");
});

test("a malformed request has a short message of visible ASCII", () => {
  const long = new ConnectError(`\ud800\n${"x".repeat(1000)}`, Code.Internal);
  const error = toMalformedRequestError(long, DOMAIN, {});
  expect(error).toMatchObject({ code: Code.InvalidArgument, rawMessage: `??${"x".repeat(198)}` });
});

test("an unknown error of a request is that of its caller", () => {
  expect(toMalformedRequestError(new Error("anything"), DOMAIN, {}).code).toBe(Code.InvalidArgument);
});
