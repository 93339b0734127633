import fc, { type Arbitrary } from "fast-check";
import { describe, expect, test } from "vitest";
import { BridgeService } from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { ServiceError } from "../../../src/errors.js";
import { toHttpStatus } from "../../../src/http/request/error-mapping.js";
import { readGetRoutes } from "../../../src/http/rest/get-routes.js";
import { createQueryBinder } from "../../../src/http/rest/query-binder.js";
import { createGetQuote } from "../../../src/operations/get-quote.js";
import { createGetTransferStatus } from "../../../src/operations/get-transfer-status.js";
import { createListAvailableRoutes } from "../../../src/operations/list-available-routes.js";
import type { CallContext, Operation } from "../../../src/operations/operation.js";
import { readOpenApi } from "../../support/contract/response-validator.js";

// The constraints of gen/openapi.json are those of the service: the real binder and the real operations, up to where the
// parameters are read and something else is needed.

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly pattern?: string;
  readonly enum?: readonly string[];
  readonly format?: string;
  readonly minimum?: number;
  readonly exclusiveMaximum?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
}
interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly schema: Schema;
}
interface Described {
  readonly parameters: readonly (Parameter & { readonly $ref?: string })[];
  readonly "x-at-least-one-of"?: readonly string[];
}

const openApi = readOpenApi() as unknown as {
  readonly paths: Readonly<Record<string, { readonly get: Described }>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
  };
};

/** What is thrown by whatever an operation needs once it has read its parameters. */
const past = new Error("the parameters are right");
const beyond = new Proxy(
  {},
  {
    get() {
      throw past;
    },
  },
) as never;
const context = { addLogFields() {}, setCachePolicy() {}, setResponseMetadata() {} } as unknown as CallContext;

const operations: Readonly<Record<string, Operation<never, unknown>>> = {
  getQuote: createGetQuote({ chains: beyond, settings: beyond, engine: beyond }),
  getTransferStatus: createGetTransferStatus({
    ...{ chains: beyond, statusCache: beyond, prices: beyond },
    ...{ maxTimeoutMs: 1000, now: Date.now, monotonicNow: () => performance.now() },
  }),
  listAvailableRoutes: createListAvailableRoutes({ settings: beyond }),
};

/** What a query is refused for; undefined: its parameters are right. */
function refusalOf(path: string, query: string): ServiceError | undefined {
  const route = readGetRoutes(BridgeService).find((each) => each.path === path);
  const operation = operations[route?.method.localName ?? ""];
  if (route === undefined || operation === undefined) throw new Error(`nothing serves ${path}`);
  try {
    operation(createQueryBinder(route.method.input)(query) as never, context);
  } catch (error) {
    if (error === past) return undefined;
    if (error instanceof ServiceError) return error;
    throw error;
  }
  throw new Error("the operation needed nothing");
}

function resolved(schema: Schema): Schema {
  const name = schema.$ref?.split("/").at(-1);
  return name === undefined ? schema : (openApi.components.schemas[name] ?? {});
}

/** Parameters in the query, by the path that takes them. */
function parametersOf(path: string): Parameter[] {
  return (openApi.paths[path]?.get.parameters ?? [])
    .map((each) => {
      const name = each.$ref?.split("/").at(-1);
      return name === undefined ? each : (openApi.components.parameters[name] as Parameter);
    })
    .filter((each) => each.in === "query");
}

/** The upper ends of these stand in words: no pattern says them. */
const bounds: Readonly<Record<string, bigint>> = { amount: 2n ** 256n, transferId: 2n ** 64n };
function isWithinBounds(name: string, text: string): boolean {
  const bound = bounds[name];
  return bound === undefined || !/^\d+$/.test(text) || BigInt(text) < bound;
}

const plainDecimal = (value: number) => value.toFixed(6).replace(/\.?0+$/, "");

/** Texts for a parameter that its schema allows, as pairs of a query. */
function allowed({ name, schema: given }: Parameter): Arbitrary<[string, string][]> {
  const schema = resolved(given);
  const pair = (text: string): [string, string][] => [[name, text]];
  if (schema.properties !== undefined) {
    const urls = fc.dictionary(fc.constantFrom(...Object.keys(schema.properties)), fc.webUrl());
    return urls.map((entries) => Object.entries(entries).map(([key, url]) => [`${name}[${key}]`, url]));
  }
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum).map(pair);
  if (schema.pattern !== undefined) {
    return fc
      .stringMatching(new RegExp(schema.pattern))
      .filter((text) => isWithinBounds(name, text))
      .map(pair);
  }
  if (schema.type === "number") {
    const { minimum: min = 0, exclusiveMaximum: max = 1e9 } = schema;
    return fc
      .double({ min, max, maxExcluded: true, noNaN: true })
      .map(plainDecimal)
      .filter((text) => Number(text) < max)
      .map(pair);
  }
  return fc.string({ minLength: 1 }).map(pair);
}

/** Texts for a parameter that its schema forbids; undefined: it forbids none. */
function forbidden({ name, schema: given }: Parameter): Arbitrary<[string, string]> | undefined {
  const schema = resolved(given);
  // The service takes a name from the SDK for one chain, which is not its slug.
  const isAlias = (text: string) => text === "xdai";
  if (schema.properties !== undefined) {
    const { properties } = schema;
    const key = fc.string({ unit: "grapheme-ascii", minLength: 1 });
    const isUnknown = (text: string) => !Object.hasOwn(properties, text) && !isAlias(text) && !text.includes("]");
    return key.filter(isUnknown).map((text) => [`${name}[${text}]`, "https://rpc.example"]);
  }
  const texts = fc.string({ unit: "binary", minLength: 1 });
  if (schema.enum !== undefined) {
    const { enum: values } = schema;
    return texts.filter((text) => !values.includes(text) && !isAlias(text)).map((text) => [name, text]);
  }
  if (schema.pattern !== undefined) {
    const pattern = new RegExp(schema.pattern);
    const close = fc.stringMatching(pattern).chain((text) => {
      return fc.constantFrom(` ${text}`, `${text} `, `${text}\n`, `-${text}`, `${text}x`, `0${text}`, text.slice(1));
    });
    return fc
      .oneof(texts, close)
      .filter((text) => text !== "" && !pattern.test(text))
      .map((text) => [name, text]);
  }
  if (schema.type === "number") {
    const { minimum = 0, exclusiveMaximum = 0 } = schema;
    const outside = fc.oneof(
      fc.double({ max: minimum - 1e-6, min: -1e9, noNaN: true }).map((value) => value.toFixed(6)),
      fc.double({ min: exclusiveMaximum, max: 1e9, noNaN: true }).map(plainDecimal),
    );
    return outside.map((text) => [name, text]);
  }
  return undefined;
}

/** Parameters that the description allows together. */
function requests(path: string): Arbitrary<[string, string][]> {
  const oneOf = openApi.paths[path]?.get["x-at-least-one-of"] ?? [];
  const parameters = parametersOf(path);
  const groups = parameters.map((parameter) => {
    const { required = false } = parameter;
    return required ? allowed(parameter) : fc.option(allowed(parameter), { nil: [] });
  });
  const some = fc
    .tuple(...groups)
    .map((all) => all.flat())
    // Two names of one parameter, as its description says.
    .map((pairs) => {
      const hash = pairs.find(([name]) => name === "transferHash")?.[1];
      return pairs.map(([name, text]): [string, string] => [
        name,
        name === "transactionHash" && hash !== undefined ? hash : text,
      ]);
    });
  return some.filter((pairs) => oneOf.length === 0 || pairs.some(([name]) => oneOf.includes(name)));
}

/** The same without what there may not be: then the one mistake that is put in is the one that is told. */
function rightRequests(path: string): Arbitrary<[string, string][]> {
  return requests(path).map((pairs) => {
    return pairs
      .filter(([name]) => name !== "network")
      .map(([name, text]): [string, string] => [name, name === "token" ? "USDC" : text]);
  });
}

const toQuery = (pairs: readonly (readonly [string, string])[]) =>
  pairs.map(([name, text]) => `${encodeURIComponent(name)}=${encodeURIComponent(text)}`).join("&");

/** Refusals for what a request says, not for what there is. */
const misread: ReadonlySet<string | undefined> = new Set([
  "INVALID_PARAMETER",
  "MISSING_PARAMETER",
  "UNKNOWN_PARAMETER",
]);

describe.each(Object.keys(openApi.paths))("%s", (path) => {
  test("takes whatever its description allows", () => {
    fc.assert(
      fc.property(requests(path), (pairs) => {
        expect(misread).not.toContain(refusalOf(path, toQuery(pairs))?.reason);
      }),
      { numRuns: 1000 },
    );
  });

  const constrained = parametersOf(path).filter((each) => forbidden(each) !== undefined);
  test.each(constrained.map((each) => [each.name, each] as const))("refuses any other %s", (name, parameter) => {
    const wrong = forbidden(parameter) as Arbitrary<[string, string]>;
    fc.assert(
      fc.property(rightRequests(path), wrong, (pairs, [wrongName, text]) => {
        const others = pairs.filter(([each]) => each.split("[")[0] !== name && !isOtherName(each, name));
        const error = refusalOf(path, toQuery([...others, [wrongName, text]]));
        expect(error?.field?.split("[")[0]).toBe(name);
        expect(toHttpStatus(error?.reason ?? "INTERNAL")).toBe(400);
      }),
      { numRuns: 500 },
    );
  });

  const required = parametersOf(path).filter((each) => each.required);
  test.each(required.map((each) => [each.name] as const))("is not answered without %s", (name) => {
    fc.assert(
      fc.property(rightRequests(path), fc.constantFrom("left out", "empty"), (pairs, how) => {
        const others = pairs.filter(([each]) => each !== name);
        const given: [string, string][] = how === "empty" ? [...others, [name, ""]] : others;
        const error = refusalOf(path, toQuery(given));
        expect(error).toMatchObject({ reason: "MISSING_PARAMETER", field: name });
      }),
      { numRuns: 200 },
    );
  });
});

test("a transfer is not looked for without an id and a hash", () => {
  const path = "/v1/transfer-status";
  const oneOf = openApi.paths[path]?.get["x-at-least-one-of"] ?? [];
  expect(oneOf).toHaveLength(3);
  fc.assert(
    fc.property(requests(path), (pairs) => {
      const error = refusalOf(path, toQuery(pairs.filter(([name]) => !oneOf.includes(name))));
      expect(error).toMatchObject({ reason: "MISSING_PARAMETER", field: oneOf[0] });
    }),
  );
});

test.each([
  ["/v1/quote", "amount"],
  ["/v1/transfer-status", "transferId"],
])("%s takes an %s up to the bound that its description says in words", (path, name) => {
  const bound = bounds[name] ?? 0n;
  fc.assert(
    fc.property(requests(path), (pairs) => {
      const others = pairs.filter(([each]) => each !== name);
      const reasonOf = (value: bigint) => refusalOf(path, toQuery([...others, [name, String(value)]]))?.reason;
      expect(misread).not.toContain(reasonOf(bound - 1n));
      expect(reasonOf(bound)).toBe("INVALID_PARAMETER");
    }),
    { numRuns: 20 },
  );
});

/** Whether these are two names of one parameter. */
function isOtherName(name: string, other: string): boolean {
  const names = ["transferHash", "transactionHash"];
  return names.includes(name) && names.includes(other);
}
