import fc, { type Arbitrary } from "fast-check";
import type { QueryPairs } from "./parameter-check.js";
import { readOpenApi } from "./response-validator.js";

// Draws requests from the constraints of gen/openapi.json.

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly pattern?: string;
  readonly enum?: readonly string[];
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMaximum?: number;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
}

export interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly schema: Schema;
}

interface OperationObject {
  readonly parameters: readonly (Parameter & { readonly $ref?: string })[];
  readonly "x-at-least-one-of"?: readonly string[];
  readonly "x-at-most-one-of"?: readonly string[];
}

const openApi = readOpenApi() as unknown as {
  readonly paths: Readonly<Record<string, { readonly get: OperationObject }>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
  };
};

export const PATHS = Object.keys(openApi.paths);

/** Returns the names of the parameters of which the path requires at least one. */
export function listAlternatives(path: string): readonly string[] {
  return openApi.paths[path]?.get["x-at-least-one-of"] ?? [];
}

/** Returns the names of the parameters of which the path allows at most one. */
export function listExclusives(path: string): readonly string[] {
  return openApi.paths[path]?.get["x-at-most-one-of"] ?? [];
}

function resolveSchema(schema: Schema): Schema {
  const name = schema.$ref?.split("/").at(-1);
  return name === undefined ? schema : (openApi.components.schemas[name] ?? {});
}

/** Parameters whose valid values only the service can make. */
const OPAQUE_PARAMETERS: ReadonlySet<string> = new Set(["pageToken", "resumeToken"]);

/** Returns the query parameters of a path. */
export function listQueryParameters(path: string): Parameter[] {
  return (openApi.paths[path]?.get.parameters ?? [])
    .map((parameter) => {
      const name = parameter.$ref?.split("/").at(-1);
      return name === undefined ? parameter : (openApi.components.parameters[name] as Parameter);
    })
    .filter((parameter) => parameter.in === "query" && !OPAQUE_PARAMETERS.has(parameter.name));
}

/** Exclusive upper bounds that the descriptions state and no pattern expresses. */
export const UPPER_BOUNDS: Readonly<Record<string, bigint>> = {
  amount: 2n ** 256n,
  receiveAmount: 2n ** 256n,
  transferId: 2n ** 64n,
};

function isBelowBound(name: string, text: string): boolean {
  const bound = UPPER_BOUNDS[name];
  return bound === undefined || !/^\d+$/.test(text) || BigInt(text) < bound;
}

const toPlainDecimal = (value: number) => value.toFixed(6).replace(/\.?0+$/, "");

/** Draws values that the parameter's schema allows. */
function validPairs({ name, schema: reference }: Parameter): Arbitrary<QueryPairs> {
  const schema = resolveSchema(reference);
  const toPairs = (text: string): QueryPairs => [[name, text]];
  if (schema.items !== undefined) {
    const items = fc.array(validPairs({ name, in: "query", schema: schema.items }), { minLength: 1, maxLength: 10 });
    return items.map((pairs) => pairs.flat());
  }
  if (schema.properties !== undefined) {
    const urls = fc.dictionary(fc.constantFrom(...Object.keys(schema.properties)), fc.webUrl());
    return urls.map((entries) => Object.entries(entries).map(([key, url]) => [`${name}[${key}]`, url] as const));
  }
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum).map(toPairs);
  if (schema.pattern !== undefined) {
    return fc
      .stringMatching(new RegExp(schema.pattern))
      .filter((text) => isBelowBound(name, text))
      .map(toPairs);
  }
  if (schema.type === "number") {
    const { minimum: min = 0, exclusiveMaximum: max = 1e9 } = schema;
    return fc
      .double({ min, max, maxExcluded: true, noNaN: true })
      .map(toPlainDecimal)
      .filter((text) => Number(text) < max)
      .map(toPairs);
  }
  if (schema.type === "integer") {
    const { minimum: min = 0, maximum: max = 2 ** 32 - 1 } = schema;
    return fc.integer({ min, max }).map((value) => toPairs(String(value)));
  }
  return fc.string({ minLength: 1 }).map(toPairs);
}

/** The SDK's own name of one chain, which the service accepts although it is not its slug. */
const isAlias = (text: string) => text.toLowerCase() === "xdai";

/**
 * Draws a value that the parameter's schema forbids; undefined if it forbids none. An invalid item of a list is part of a
 * valid request: the others are served.
 */
export function invalidPair({ name, schema: reference }: Parameter): Arbitrary<readonly [string, string]> | undefined {
  const schema = resolveSchema(reference);
  if (schema.properties !== undefined) {
    const { properties } = schema;
    const key = fc.string({ unit: "grapheme-ascii", minLength: 1 });
    const isUnknown = (text: string) => !Object.hasOwn(properties, text) && !isAlias(text) && !text.includes("]");
    return key.filter(isUnknown).map((text) => [`${name}[${text}]`, "https://rpc.example"] as const);
  }
  const texts = fc.string({ unit: "binary", minLength: 1 });
  if (schema.enum !== undefined) {
    const { enum: values } = schema;
    return texts.filter((text) => !values.includes(text) && !isAlias(text)).map((text) => [name, text] as const);
  }
  if (schema.pattern !== undefined) {
    const pattern = new RegExp(schema.pattern);
    const nearMisses = fc.stringMatching(pattern).chain((text) => {
      return fc.constantFrom(` ${text}`, `${text} `, `${text}\n`, `-${text}`, `${text}x`, `0${text}`, text.slice(1));
    });
    return fc
      .oneof(texts, nearMisses)
      .filter((text) => text !== "" && !pattern.test(text) && !isAlias(text))
      .map((text) => [name, text] as const);
  }
  if (schema.type === "number") {
    const { minimum = 0, exclusiveMaximum = 0 } = schema;
    const outside = fc.oneof(
      fc.double({ max: minimum - 1e-6, min: -1e9, noNaN: true }).map((value) => value.toFixed(6)),
      fc.double({ min: exclusiveMaximum, max: 1e9, noNaN: true }).map(toPlainDecimal),
    );
    return outside.map((text) => [name, text] as const);
  }
  if (schema.type === "integer") {
    const { minimum = 0, maximum = 2 ** 32 - 1 } = schema;
    const outside = fc.oneof(
      fc.integer({ min: -1_000, max: minimum - 1 }).map(String),
      fc.integer({ min: maximum + 1, max: maximum + 1_000 }).map(String),
      fc.constantFrom("1.5", "1e1", "0x1", " 1", "one", "9".repeat(30)),
    );
    return outside.map((text) => [name, text] as const);
  }
  return undefined;
}

/** Returns whether a parameter names single transfers, which excludes `account`. */
export function isWatched(name: string): boolean {
  return name === "transferId" || name === "transferHash";
}

/** Draws parameters that the description allows together. */
export function validRequests(path: string): Arbitrary<QueryPairs> {
  const alternatives = listAlternatives(path);
  const exclusives = listExclusives(path);
  const groups = listQueryParameters(path).map((parameter) => {
    const { required = false } = parameter;
    return required ? validPairs(parameter) : fc.option(validPairs(parameter), { nil: [] });
  });
  const requests = fc
    .tuple(...groups)
    .map((pairs) => pairs.flat())
    // Both names of the hash must have the same value, as the description states.
    .map((pairs) => {
      const hash = pairs.find(([name]) => name === "transferHash")?.[1];
      return pairs.map(([name, text]) => [name, name === "transactionHash" ? (hash ?? text) : text] as const);
    })
    // An account is watched alone.
    .map((pairs) => (pairs.some(([name]) => name === "account") ? pairs.filter(([name]) => !isWatched(name)) : pairs))
    // Of parameters that exclude each other, the first one stays.
    .map((pairs) => {
      const first = pairs.find(([name]) => exclusives.includes(name))?.[0];
      return pairs.filter(([name]) => name === first || !exclusives.includes(name));
    });
  return requests.filter((pairs) => alternatives.length === 0 || pairs.some(([name]) => alternatives.includes(name)));
}
