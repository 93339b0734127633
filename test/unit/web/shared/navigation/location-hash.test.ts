import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatHash, parseHash, VIEW_NAMES } from "../../../../../web/shared/navigation/location-hash.js";

describe("location hash", () => {
  test.each([
    ["", "quote", {}],
    ["#", "quote", {}],
    ["#nowhere?token=ETH", "quote", { token: "ETH" }],
    ["#routes", "routes", {}],
    ["#quote?token=USDC.e&from=&amount=0.5", "quote", { token: "USDC.e", amount: "0.5" }],
    ["#transfer?of=a?b", "transfer", { of: "a?b" }],
    ["#quote?__proto__=x", "quote", { ["__proto__"]: "x" }],
  ])("parses %j as the view %s with its parameters", (hash, view, parameters) => {
    expect(parseHash(hash)).toEqual({ view, parameters: new Map(Object.entries(parameters)) });
  });

  test("formats a view with its parameters and leaves out empty ones", () => {
    const parameters = new Map(Object.entries({ token: "USDC.e", network: "", of: "a b&c" }));
    expect(formatHash({ view: "quote", parameters })).toBe("#quote?token=USDC.e&of=a+b%26c");
    expect(formatHash({ view: "chains", parameters: new Map() })).toBe("#chains");
  });

  test("parses every formatted location to the same value", () => {
    const parameters = fc.array(fc.tuple(fc.string(), fc.string({ minLength: 1 }))).map((pairs) => new Map(pairs));
    fc.assert(
      fc.property(fc.constantFrom(...VIEW_NAMES), parameters, (view, viewParameters) => {
        const target = { view, parameters: viewParameters };
        expect(parseHash(formatHash(target))).toEqual(target);
      }),
    );
  });
});
