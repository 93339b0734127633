import { describe, expect, test } from "vitest";
import { compareRoutes, parseDollars } from "../../../../web/compare/comparison.js";
import type { DetailedQuoteResponse } from "../../../../web/shared/api/api-types.js";

describe("compareRoutes", () => {
  const result = (toChain: string, estimatedReceived: string, isLiquidityAvailable = true, p50Seconds?: number) => {
    const deliveryTime = p50Seconds === undefined ? {} : { deliveryTime: { p50Seconds } };
    const quote = { estimatedReceived, details: { limits: { isLiquidityAvailable }, ...deliveryTime } };
    return { toChain, amount: "1", quote: quote as DetailedQuoteResponse };
  };

  test("puts the destination first that brings most, then those that cannot be delivered, then errors", () => {
    const error = { message: "base does not respond", reason: "UPSTREAM_UNAVAILABLE" };
    const routes = compareRoutes(
      [
        { toChain: "base", amount: "1", error },
        result("gnosis", "9990000", false),
        result("nova", "9700000"),
        result("linea", "9900000"),
        result("polygon", "9995000", false),
      ],
      1,
      6,
    );
    expect(routes.map(({ toChain }) => toChain)).toEqual(["linea", "nova", "polygon", "gnosis", "base"]);
    expect(routes.at(-1)).toEqual({ toChain: "base", error: "base does not respond" });
  });

  test("returns dollars and the arrival time, which may be unknown", () => {
    expect(compareRoutes([result("nova", "500000", true, 240), result("base", "400000")], 2, 6)).toEqual([
      { toChain: "nova", received: 500_000n, receivedUsd: 1, arrivalSeconds: 240, canBeDelivered: true },
      { toChain: "base", received: 400_000n, receivedUsd: 0.8, arrivalSeconds: undefined, canBeDelivered: true },
    ]);
  });
});

test.each([
  ["1000", 1000],
  ["0.5", 0.5],
  [".5", 0.5],
  ["0", undefined],
  ["", undefined],
  ["1,000", undefined],
  ["-5", undefined],
  ["1e3", undefined],
  ["1000000000", 1e9],
  ["1000000001", undefined],
])("parseDollars(%j) is %s", (text, dollars) => {
  expect(parseDollars(text)).toBe(dollars);
});
