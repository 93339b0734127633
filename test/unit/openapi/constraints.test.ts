import fc, { type Arbitrary } from "fast-check";
import { describe, expect, test } from "vitest";
import { findChain, getNetwork } from "../../../src/hop/networks.js";
import { toHttpStatus } from "../../../src/http/request/error-mapping.js";
import {
  invalidPair,
  isWatched,
  listAlternatives,
  listExclusives,
  listQueryParameters,
  PATHS,
  UPPER_BOUNDS,
  validRequests,
} from "../../support/contract/openapi-requests.js";
import { checkQuery, type QueryPairs, toQuery } from "../../support/contract/parameter-check.js";

// The constraints of gen/openapi.json are those of the service.

/** Errors about the form of a request, as opposed to what a network has. */
const FORM_ERRORS: ReadonlySet<string | undefined> = new Set([
  "INVALID_PARAMETER",
  "MISSING_PARAMETER",
  "UNKNOWN_PARAMETER",
]);

/**
 * Draws requests without a network, with a token and chains that mainnet has: a single mistake added to one is the one
 * reported.
 */
function flawlessRequests(path: string): Arbitrary<QueryPairs> {
  const repair = (name: string, text: string): string => {
    if (name === "token") return "USDC";
    const isUnknownChain = /Chain$/.test(name) && findChain(getNetwork("mainnet"), text) === undefined;
    return isUnknownChain ? "polygon" : text;
  };
  return validRequests(path).map((pairs) => {
    return pairs.filter(([name]) => name !== "network").map(([name, text]) => [name, repair(name, text)] as const);
  });
}

/** Returns whether a request must not have both parameters. */
function areExclusive(path: string, name: string, other: string): boolean {
  if ([name, other].includes("account") && [name, other].some(isWatched)) return true;
  return [["transferHash", "transactionHash"], listExclusives(path)].some(
    (names) => names.includes(name) && names.includes(other),
  );
}

describe.each(PATHS)("%s", (path) => {
  test("accepts whatever its description allows", () => {
    fc.assert(
      fc.property(validRequests(path), (pairs) => {
        expect(FORM_ERRORS).not.toContain(checkQuery(path, toQuery(pairs))?.reason);
      }),
      { numRuns: 1000 },
    );
  });

  const constrained = listQueryParameters(path).filter((parameter) => invalidPair(parameter) !== undefined);
  test.each(constrained.map((parameter) => [parameter.name, parameter] as const))(
    "rejects a value of %s that its schema forbids",
    (name, parameter) => {
      const invalid = invalidPair(parameter) as Arbitrary<readonly [string, string]>;
      fc.assert(
        fc.property(flawlessRequests(path), invalid, (pairs, pair) => {
          const others = pairs.filter(([key]) => key.split("[")[0] !== name && !areExclusive(path, key, name));
          const error = checkQuery(path, toQuery([...others, pair]));
          expect(error?.field?.split("[")[0]).toBe(name);
          expect(toHttpStatus(error?.reason ?? "INTERNAL")).toBe(400);
        }),
        { numRuns: 500 },
      );
    },
  );

  const required = listQueryParameters(path).filter((parameter) => parameter.required);
  test.each(required.map((parameter) => [parameter.name] as const))("requires %s", (name) => {
    fc.assert(
      fc.property(flawlessRequests(path), fc.constantFrom("absent", "empty"), (pairs, form) => {
        const others = pairs.filter(([key]) => key !== name);
        const request: QueryPairs = form === "empty" ? [...others, [name, ""]] : others;
        const error = checkQuery(path, toQuery(request));
        expect(error).toMatchObject({ reason: "MISSING_PARAMETER", field: name });
      }),
      { numRuns: 200 },
    );
  });
});

test.each([
  ["/v1/transfer-status", 3],
  ["/v1/quote", 2],
])("%s requires one of %i parameters", (path, count) => {
  const alternatives = listAlternatives(path);
  expect(alternatives).toHaveLength(count);
  fc.assert(
    fc.property(validRequests(path), (pairs) => {
      const error = checkQuery(path, toQuery(pairs.filter(([name]) => !alternatives.includes(name))));
      expect(error).toMatchObject({ reason: "MISSING_PARAMETER", field: alternatives[0] });
    }),
  );
});

test("/v1/quote rejects amount together with receiveAmount", () => {
  fc.assert(
    fc.property(flawlessRequests("/v1/quote"), (pairs) => {
      const given = pairs.map(([name]) => name);
      const missing = listExclusives("/v1/quote").filter((name) => !given.includes(name));
      const error = checkQuery("/v1/quote", toQuery([...pairs, ...missing.map((name) => [name, "1"] as const)]));
      expect(error).toMatchObject({ reason: "INVALID_PARAMETER", field: "receiveAmount" });
    }),
  );
});

test.each([
  ["/v1/quote", "amount"],
  ["/v1/quote", "receiveAmount"],
  ["/v1/transfer-status", "transferId"],
])("%s accepts %s below the bound that its description states", (path, name) => {
  const bound = UPPER_BOUNDS[name] ?? 0n;
  fc.assert(
    fc.property(validRequests(path), (pairs) => {
      const others = pairs.filter(([key]) => key !== name && !areExclusive(path, key, name));
      const reasonFor = (value: bigint) => checkQuery(path, toQuery([...others, [name, String(value)]]))?.reason;
      expect(FORM_ERRORS).not.toContain(reasonFor(bound - 1n));
      expect(reasonFor(bound)).toBe("INVALID_PARAMETER");
    }),
    { numRuns: 20 },
  );
});
