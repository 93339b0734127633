import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatHash, parseHash, VIEW_NAMES } from "../../../../web/shared/location-hash.js";

describe("the address of a view", () => {
  test.each([
    ["", "quote", {}],
    ["#", "quote", {}],
    ["#nowhere?token=ETH", "quote", { token: "ETH" }],
    ["#routes", "routes", {}],
    ["#quote?token=USDC.e&from=&amount=0.5", "quote", { token: "USDC.e", amount: "0.5" }],
    ["#transfer?of=a?b", "transfer", { of: "a?b" }],
    ["#quote?__proto__=x", "quote", { ["__proto__"]: "x" }],
  ])("%j is %s", (hash, view, values) => {
    expect(parseHash(hash)).toEqual({ view, parameters: new Map(Object.entries(values)) });
  });

  test("says what it shows, and only that", () => {
    const parameters = new Map(Object.entries({ token: "USDC.e", network: "", of: "a b&c" }));
    expect(formatHash({ view: "quote", parameters })).toBe("#quote?token=USDC.e&of=a+b%26c");
    expect(formatHash({ view: "chains", parameters: new Map() })).toBe("#chains");
  });

  test("is read as it was written", () => {
    const parameters = fc.array(fc.tuple(fc.string(), fc.string({ minLength: 1 }))).map((pairs) => new Map(pairs));
    fc.assert(
      fc.property(fc.constantFrom(...VIEW_NAMES), parameters, (view, its) => {
        const place = { view, parameters: its };
        expect(parseHash(formatHash(place))).toEqual(place);
      }),
    );
  });
});
