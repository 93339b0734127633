import { expect, test } from "vitest";
import { PostgresFailure, toPostgresFailure } from "../../../../../src/transfers/index/database/postgres-failures.js";

test.each([
  ["28P01", { isTemporary: false, isUnavailable: true }],
  ["3D000", { isTemporary: false, isUnavailable: true }],
  ["57P03", { isTemporary: true, isUnavailable: true }],
  ["53100", { isTemporary: true, isUnavailable: true }],
  ["ECONNREFUSED", { isTemporary: true, isUnavailable: true }],
  ["57014", { isTemporary: true, isUnavailable: false }],
  ["25006", { isTemporary: true, isUnavailable: false }],
])("knows what follows from %s", (code, expected) => {
  expect(toPostgresFailure(Object.assign(new Error("x"), { code }))).toMatchObject({ code, ...expected });
});

test("repeats nothing of the driver's error but its code", () => {
  const secret = "planted-secret";
  const error = Object.assign(new Error(`password authentication failed for ${secret}`), {
    code: "28P01",
    detail: secret,
    hint: secret,
    address: secret,
  });
  const failure = toPostgresFailure(error);
  expect(JSON.stringify({ ...failure, message: failure.message, cause: failure.cause })).not.toContain(secret);
  expect(failure.message).toBe("PostgreSQL: the password is wrong (28P01)");
  expect(toPostgresFailure(new Error(`getaddrinfo ${secret}`)).message).not.toContain(secret);
  expect(toPostgresFailure(Object.assign(new Error("x"), { code: secret })).message).not.toContain(secret);
});

test("tells connections that end and time-outs apart, which the driver reports without a code", () => {
  expect(toPostgresFailure(new Error("Connection terminated unexpectedly")).code).toBe("ECONNRESET");
  expect(toPostgresFailure(new Error("timeout exceeded when trying to connect")).code).toBe("ETIMEDOUT");
  const failure = new PostgresFailure("55P03");
  expect(toPostgresFailure(failure)).toBe(failure);
});
