import { type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { ServiceError } from "../../errors.js";
import { findNearestName } from "../../nearest-name.js";
import { createMessageFactory, isUint32 } from "../codec/messages.js";

/** Reads a request message from a query. Throws a ServiceError that names the invalid parameter. */
export type QueryParser = (query: string) => Message;

/** Parameters that are accepted and ignored: clients of older servers send them. */
const IGNORED_PARAMETERS: ReadonlySet<string> = new Set(["refresh"]);

/** Queries of visible ASCII without encoded characters. */
const UNENCODED_QUERY = /^[\x21-\x24\x26-\x2a\x2c-\x7e]*$/;

/** Longest part of a parameter name that an error repeats. */
const MAX_REPORTED_NAME_LENGTH = 64;

type Fields = Record<string, unknown>;

/** Parses the values of one type. */
interface ValueParser {
  /** Returns the value, or undefined if the text is not valid. */
  parse(text: string): unknown;
  /** Completes the sentence "the parameter must be ...". */
  readonly expected: string;
}

const INTEGER_PATTERN = /^(?:0|[1-9][0-9]*)$/;
const DECIMAL_PATTERN = /^-?[0-9]+(?:\.[0-9]+)?$/;

/** The types that queries of the contract hold. */
const PARSERS: ReadonlyMap<ScalarType | undefined, ValueParser> = new Map([
  [ScalarType.STRING, { parse: (text: string) => text, expected: "a string" }],
  [
    ScalarType.BOOL,
    {
      parse: (text: string) => (text === "true" ? true : text === "false" ? false : undefined),
      expected: "true or false",
    },
  ],
  [
    ScalarType.UINT32,
    {
      parse: (text: string) => (INTEGER_PATTERN.test(text) && isUint32(Number(text)) ? Number(text) : undefined),
      expected: `a whole number from 0 to ${2 ** 32 - 1}`,
    },
  ],
  [
    ScalarType.DOUBLE,
    {
      parse: (text: string) => (DECIMAL_PATTERN.test(text) && Number.isFinite(Number(text)) ? Number(text) : undefined),
      expected: "a plain decimal number",
    },
  ],
]);

/** A field of the message as a parameter. */
interface QueryParameter {
  /** Name in error messages, in lowerCamelCase. */
  readonly label: string;
  readonly kind: "single" | "list" | "map";
  readonly parser: ValueParser;
  assign(fields: Fields, value: unknown, key: string): void;
}

/** A parameter that the fast path parses. */
interface FastParameter {
  /** A name of the parameter, with the equals sign. */
  readonly prefix: string;
  /** Tells whether the parameter was received already, under any name. */
  readonly bit: number;
  readonly parameter: QueryParameter;
}

/** The occurrences of a parameter, or of one key of a map. */
interface ReceivedParameter {
  /** Names that were used: a field has up to two. */
  readonly names: string[];
  readonly text: string;
}

/**
 * Creates a parser for one request type. Fields that hold messages are left out.
 *
 * Fields go by their lowerCamelCase name or their declared name; a map entry is `name[key]=value`; a list repeats its
 * name. A parameter with an empty text counts as absent.
 * @param options `fastPath: false` makes the general parser read every query; `maxListItems` limits the items of all
 *   lists together, 0 does not
 */
export function createQueryParser(schema: DescMessage, { fastPath = true, maxListItems = 0 } = {}): QueryParser {
  const parameters = new Map<string, QueryParameter>();
  for (const field of schema.fields) {
    // Messages have no form in a query: their parameters are unknown.
    if (field.message !== undefined) continue;
    const parameter = createQueryParameter(field);
    parameters.set(field.jsonName, parameter).set(field.name, parameter);
  }
  const lists = schema.fields.filter((field) => field.fieldKind === "list" && field.message === undefined);
  const newMessage = createMessageFactory(schema);
  const parseFast = fastPath ? createFastPathParser(parameters, newMessage) : undefined;
  return (query) => {
    const parsed = parseFast?.(query);
    if (parsed !== undefined) return parsed;
    const message = newMessage();
    const received = new Map<string, ReceivedParameter>();
    for (const pair of query.split("&")) {
      if (pair !== "") parsePair(pair, parameters, message as unknown as Fields, received);
    }
    if (maxListItems > 0) assertListItems(message as unknown as Fields, lists, maxListItems);
    return message;
  };
}

/**
 * Creates a parser for plain queries: singular parameters, each once, nothing encoded and nothing invalid. It returns
 * undefined for any other query.
 */
function createFastPathParser(
  parameters: ReadonlyMap<string, QueryParameter>,
  newMessage: () => Message,
): (query: string) => Message | undefined {
  const fastParameters = new Map<string, FastParameter>();
  /** The parameters of the last query, in its order: most callers keep to one. */
  const lastOrder: FastParameter[] = [];
  const bits = new Map<QueryParameter, number>();
  for (const [name, parameter] of parameters) {
    if (parameter.kind !== "single") continue;
    const bit = bits.get(parameter) ?? 2 ** bits.size;
    // Bit operations work on 31 bits.
    if (bit > 2 ** 30) continue;
    bits.set(parameter, bit);
    fastParameters.set(name, { prefix: `${name}=`, bit, parameter });
  }
  return (query) => {
    if (!UNENCODED_QUERY.test(query)) return undefined;
    const message = newMessage();
    let received = 0;
    for (let start = 0, index = 0; start < query.length; index++) {
      const next = query.indexOf("&", start);
      const end = next === -1 ? query.length : next;
      let found = lastOrder[index];
      if (found === undefined || !query.startsWith(found.prefix, start)) {
        found = fastParameters.get(query.slice(start, Math.max(start, query.indexOf("=", start))));
        if (found === undefined) return undefined;
        lastOrder[index] = found;
      }
      const { prefix, bit, parameter } = found;
      if (start + prefix.length >= end || (received & bit) !== 0) return undefined;
      received |= bit;
      const value = parameter.parser.parse(query.slice(start + prefix.length, end));
      if (value === undefined) return undefined;
      parameter.assign(message as unknown as Fields, value, "");
      start = end + 1;
    }
    return message;
  };
}

function parsePair(
  pair: string,
  parameters: ReadonlyMap<string, QueryParameter>,
  fields: Fields,
  received: Map<string, ReceivedParameter>,
): void {
  const equals = pair.indexOf("=");
  const fullName = decodeQueryText(equals === -1 ? pair : pair.slice(0, equals));
  if (fullName === undefined)
    throw new ServiceError("INVALID_PARAMETER", "a parameter's name is not percent-encoded UTF-8");
  const { name, key } = splitKey(fullName);
  const parameter = parameters.get(name);
  if (parameter === undefined || (key !== undefined && parameter.kind !== "map")) {
    if (IGNORED_PARAMETERS.has(fullName)) return;
    throw createUnknownParameterError(fullName, parameters);
  }
  const label = key === undefined ? parameter.label : sanitizeName(`${parameter.label}[${key}]`);
  const createError = (problem: string) =>
    new ServiceError("INVALID_PARAMETER", `${label} ${problem}`, { field: label });
  const text = decodeQueryText(equals === -1 ? "" : pair.slice(equals + 1));
  if (text === undefined) throw createError("is not percent-encoded UTF-8");

  if (parameter.kind === "map" && key === undefined) throw createError("needs a key in brackets: a string");
  const slot = key === undefined ? parameter.label : `${parameter.label}[${key}]`;
  const earlier = received.get(slot);
  const isRepeated = earlier?.names.includes(name) === true;
  if (earlier === undefined) received.set(slot, { names: [name], text });
  else if (parameter.kind === "list" && !isRepeated) throw createError("is given under two names");
  else if (parameter.kind !== "list") {
    if (isRepeated) throw createError("is given twice");
    if (earlier.text !== text) throw createError("is given under two names with different values");
    earlier.names.push(name);
  }

  if (text === "") return;
  const value = parameter.parser.parse(text);
  if (value === undefined) throw createError(`must be ${parameter.parser.expected}`);
  parameter.assign(fields, value, key ?? "");
}

function createUnknownParameterError(fullName: string, parameters: ReadonlyMap<string, QueryParameter>): ServiceError {
  const field = sanitizeName(fullName);
  const { name, key } = splitKey(fullName);
  const labels = new Set([...parameters.values()].map(({ label }) => label));
  const nearest = parameters.get(findNearestName(name, labels) ?? "");
  const suffix = nearest?.kind === "map" && key !== undefined ? `[${sanitizeName(key)}]` : "";
  const hint = nearest === undefined ? "" : `: did you mean ${nearest.label}${suffix}?`;
  return new ServiceError("UNKNOWN_PARAMETER", `unknown parameter ${field}${hint}`, { field });
}

/** @throws ServiceError INVALID_PARAMETER when the lists have too many items together; it names the first that has any */
function assertListItems(fields: Fields, lists: readonly DescField[], maxItems: number): void {
  const countItems = ({ localName }: DescField) => (fields[localName] as unknown[]).length;
  const total = lists.reduce((sum, list) => sum + countItems(list), 0);
  const first = lists.find((list) => countItems(list) > 0);
  if (first === undefined || total <= maxItems) return;
  const names = lists.map(({ jsonName }) => jsonName).join(" and ");
  const message = `a query may have at most ${maxItems} values of ${names}`;
  throw new ServiceError("INVALID_PARAMETER", message, { field: first.jsonName });
}

/** Splits `name[key]`. Field names hold no bracket, so that a key may hold any. */
function splitKey(fullName: string): { name: string; key: string | undefined } {
  const bracket = fullName.indexOf("[");
  if (bracket === -1 || !fullName.endsWith("]")) return { name: fullName, key: undefined };
  return { name: fullName.slice(0, bracket), key: fullName.slice(bracket + 1, -1) };
}

/** Throws for a field that a query cannot hold: add a parser for its type. */
function createQueryParameter(field: DescField): QueryParameter {
  const { localName, fieldKind } = field;
  const parser = PARSERS.get(field.scalar);
  const isKeyText = fieldKind !== "map" || field.mapKey === ScalarType.STRING;
  if (parser === undefined || !isKeyText || field.oneof !== undefined)
    throw new Error(`${field.parent.typeName}.${field.name} has a type that queries do not support`);
  const common = { label: field.jsonName, parser };
  switch (fieldKind) {
    case "list":
      return { ...common, kind: "list", assign: (fields, value) => (fields[localName] as unknown[]).push(value) };
    case "map":
      return {
        ...common,
        kind: "map",
        assign(fields, value, key) {
          // Assignment of the key `__proto__` would replace the prototype of the object.
          const entry = { value, enumerable: true, writable: true, configurable: true };
          Object.defineProperty(fields[localName], key, entry);
        },
      };
    default:
      return {
        ...common,
        kind: "single",
        assign(fields, value) {
          fields[localName] = value;
        },
      };
  }
}

/** Percent-decodes a text; `+` is a space, as in forms. Returns undefined if the result is not valid UTF-8. */
function decodeQueryText(text: string): string | undefined {
  try {
    return /[^\x21-\x7e]/.test(text) ? undefined : decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}

/** Makes a caller's text safe for an error message: short, and visible ASCII. */
function sanitizeName(name: string): string {
  return name.slice(0, MAX_REPORTED_NAME_LENGTH).replace(/[^\x20-\x7e]/g, "?");
}
