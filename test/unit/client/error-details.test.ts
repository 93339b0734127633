import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { createBridgeClient, getErrorDetails } from "../../../src/client.js";
import { ServiceError } from "../../../src/errors.js";
import { toConnectError } from "../../../src/http/request/error-mapping.js";
import { startHttpStub } from "../../support/stubs/http-stub.js";

const domain = "hop.bridge.v1";

test.each([
  ["the field", new ServiceError("UNSUPPORTED_CHAIN", "no chain moon", { field: "toChain" })],
  ["when to retry", new ServiceError("RATE_LIMITED", "too many", { retryAfterSeconds: 3 })],
])("returns reason, message and %s", (_, error) => {
  const { reason, message, field, retryAfterSeconds } = error;
  const details = { reason, message, field, retryAfterSeconds, helpUrl: undefined };
  expect(getErrorDetails(toConnectError(error, domain, {}))).toEqual(details);
});

test("returns the link to the documentation, if the operator names it", () => {
  const location = { docsUrl: "https://docs.example/hop" };
  const error = toConnectError(new ServiceError("UNSUPPORTED_CHAIN", "no chain moon"), domain, location);
  expect(getErrorDetails(error)?.helpUrl).toBe("https://docs.example/hop/errors.md#unsupported_chain");
});

test("ignores error details of another domain", () => {
  const info = { desc: ErrorInfoSchema, value: { reason: "RATE_LIMITED", domain: "proxy.example" } };
  expect(getErrorDetails(new ConnectError("too many", Code.ResourceExhausted, {}, [info]))).toBeUndefined();
});

test.each([new Error("no"), new ConnectError("gone", Code.Unavailable), "no", undefined])(
  "returns undefined for %s",
  (error) => {
    expect(getErrorDetails(error)).toBeUndefined();
  },
);

test("returns undefined for a service that is silent or unreachable", async () => {
  const silent = await startHttpStub(() => {});
  const asked = () => createBridgeClient(silent.url, { timeoutMs: 100 }).listAvailableRoutes({});
  const late = await asked().catch((error: unknown) => error);
  expect(ConnectError.from(late).code).toBe(Code.DeadlineExceeded);
  expect(getErrorDetails(late)).toBeUndefined();
  await silent.close();
  const gone = await asked().catch((error: unknown) => error);
  expect(ConnectError.from(gone).code).toBe(Code.Unavailable);
  expect(getErrorDetails(gone)).toBeUndefined();
});
