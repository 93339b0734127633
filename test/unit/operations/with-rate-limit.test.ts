import { describe, expect, test } from "vitest";
import type { CallContext } from "../../../src/operations/operation.js";
import { createRateLimit } from "../../../src/operations/with-rate-limit.js";

const from = (caller: string): CallContext => ({
  requestId: "r",
  caller,
  signal: new AbortController().signal,
  timeoutMs: undefined,
  note: () => {},
  cache: () => {},
  metadata: () => {},
});
const unexpected = (error: unknown): never => {
  throw error;
};
const answer = async (): Promise<string> => "answered";

describe("the limit of a caller", () => {
  test("is one over all operations, and each caller has its own", async () => {
    const limit = createRateLimit({ requests: 2, windowMs: 60_000 }, unexpected);
    const [one, other] = [limit(answer), limit(answer)];
    await one(null, from("a"));
    await other(null, from("a"));
    await expect(one(null, from("a"))).rejects.toMatchObject({ reason: "RATE_LIMITED", retryAfterSeconds: 60 });
    expect(await one(null, from("b"))).toBe("answered");
  });

  test("ends with its window", async () => {
    const limited = createRateLimit({ requests: 1, windowMs: 50 }, unexpected)(answer);
    await limited(null, from("a"));
    await expect(limited(null, from("a"))).rejects.toMatchObject({ reason: "RATE_LIMITED", retryAfterSeconds: 1 });
    await new Promise((resolve) => setTimeout(resolve, 70));
    expect(await limited(null, from("a"))).toBe("answered");
  });

  test("is none when there is no limit", () => {
    expect(createRateLimit(undefined, unexpected)(answer)).toBe(answer);
  });
});
