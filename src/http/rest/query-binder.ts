import type { DescField, DescMessage, DescOneof, Message } from "@bufbuild/protobuf";
import { ServiceError } from "../../errors.js";
import { createMessageFactory } from "../codec/message-factory.js";
import { createEnumParser, getScalarParser, type QueryValueParser } from "./value-parsers.js";

/** Reads a request message from a query. Throws a ServiceError that names the invalid parameter. */
export type QueryBinder = (query: string) => Message;

/** Parameters that are accepted and ignored: clients of older servers send them. */
const IGNORED_PARAMETERS: ReadonlySet<string> = new Set(["refresh"]);

/** Queries of visible ASCII without encoded characters. */
const UNENCODED_QUERY = /^[\x21-\x24\x26-\x2a\x2c-\x7e]*$/;

/** Longest part of a parameter name that an error repeats. */
const MAX_REPORTED_NAME_LENGTH = 64;

type Fields = Record<string, unknown>;

/** A field of the message as a parameter. */
interface QueryParameter {
  /** Name in error messages, in lowerCamelCase. */
  readonly label: string;
  readonly kind: "single" | "list" | "map";
  readonly keyParser: QueryValueParser | undefined;
  readonly valueParser: QueryValueParser;
  readonly oneof: DescOneof | undefined;
  assign(fields: Fields, value: unknown, key: string): void;
}

/** A parameter that the fast path binds. */
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
 * Creates a binder for one request type. Fields that hold messages are left out.
 *
 * Fields go by their lowerCamelCase name or their declared name; a map entry is `name[key]=value`; a list repeats its
 * name. A parameter with an empty text counts as absent.
 * @param options `fastPath: false` makes the general binder read every query; `maxListItems` limits the items of all
 *   lists together, 0 does not
 */
export function createQueryBinder(schema: DescMessage, { fastPath = true, maxListItems = 0 } = {}): QueryBinder {
  const parameters = new Map<string, QueryParameter>();
  for (const field of schema.fields) {
    // Messages have no form in a query: their parameters are unknown.
    if (field.message !== undefined) continue;
    const parameter = createQueryParameter(field);
    parameters.set(field.jsonName, parameter).set(field.name, parameter);
  }
  const lists = schema.fields.filter((field) => field.fieldKind === "list" && field.message === undefined);
  const newMessage = createMessageFactory(schema);
  const bindFast = fastPath ? createFastPathBinder(parameters, newMessage) : undefined;
  return (query) => {
    const bound = bindFast?.(query);
    if (bound !== undefined) return bound;
    const message = newMessage();
    const received = new Map<string, ReceivedParameter>();
    for (const pair of query.split("&")) {
      if (pair !== "") bindPair(pair, parameters, message as unknown as Fields, received);
    }
    if (maxListItems > 0) assertListItems(message as unknown as Fields, lists, maxListItems);
    return message;
  };
}

/**
 * Creates a binder for plain queries: singular parameters, each once, nothing encoded and nothing invalid. It returns
 * undefined for any other query.
 */
function createFastPathBinder(
  parameters: ReadonlyMap<string, QueryParameter>,
  newMessage: () => Message,
): (query: string) => Message | undefined {
  const fastParameters = new Map<string, FastParameter>();
  /** The parameters of the last query, in its order: most callers keep to one. */
  const lastOrder: FastParameter[] = [];
  const bits = new Map<QueryParameter, number>();
  for (const [name, parameter] of parameters) {
    if (parameter.kind !== "single" || parameter.oneof !== undefined) continue;
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
      const value = parameter.valueParser.parse(query.slice(start + prefix.length, end));
      if (value === undefined) return undefined;
      parameter.assign(message as unknown as Fields, value, "");
      start = end + 1;
    }
    return message;
  };
}

function bindPair(
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
    const field = sanitizeName(fullName);
    throw new ServiceError("UNKNOWN_PARAMETER", `unknown parameter: ${field}`, { field });
  }
  const label = key === undefined ? parameter.label : sanitizeName(`${parameter.label}[${key}]`);
  const createError = (problem: string) =>
    new ServiceError("INVALID_PARAMETER", `${label} ${problem}`, { field: label });
  const text = decodeQueryText(equals === -1 ? "" : pair.slice(equals + 1));
  if (text === undefined) throw createError("is not percent-encoded UTF-8");

  const mapKey = parameter.kind === "map" ? parseMapKey(parameter, key) : "";
  if (mapKey === undefined) throw createError(`needs a key in brackets: ${parameter.keyParser?.expected}`);
  const slot = parameter.kind === "map" ? `${parameter.label}[${mapKey}]` : parameter.label;
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
  if (parameter.oneof !== undefined) {
    const { case: setCase } = fields[parameter.oneof.localName] as { case?: string };
    if (setCase !== undefined && earlier === undefined) throw createError(`excludes ${setCase}`);
  }
  const value = parameter.valueParser.parse(text);
  if (value === undefined) throw createError(`must be ${parameter.valueParser.expected}`);
  parameter.assign(fields, value, mapKey);
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

/** Returns a map key as messages hold it, always a string; undefined if the text is not valid. */
function parseMapKey({ keyParser }: QueryParameter, key: string | undefined): string | undefined {
  const value = key === undefined ? undefined : keyParser?.parse(key);
  return value === undefined ? undefined : String(value);
}

function createQueryParameter(field: DescField): QueryParameter {
  const { localName } = field;
  const common = { label: field.jsonName, keyParser: undefined, oneof: undefined };
  switch (field.fieldKind) {
    case "list": {
      const assign = (fields: Fields, value: unknown) => (fields[localName] as unknown[]).push(value);
      return { ...common, kind: "list", valueParser: getValueParser(field), assign };
    }
    case "map": {
      function assign(fields: Fields, value: unknown, key: string): void {
        // Assignment of the key `__proto__` would replace the prototype of the object.
        const entry = { value, enumerable: true, writable: true, configurable: true };
        Object.defineProperty(fields[localName], key, entry);
      }
      return {
        ...common,
        kind: "map",
        keyParser: getScalarParser(field.mapKey),
        valueParser: getValueParser(field),
        assign,
      };
    }
    default: {
      const { oneof } = field;
      function assign(fields: Fields, value: unknown): void {
        if (oneof === undefined) fields[localName] = value;
        else fields[oneof.localName] = { case: localName, value };
      }
      return { ...common, kind: "single", valueParser: getValueParser(field), oneof, assign };
    }
  }
}

function getValueParser(field: DescField): QueryValueParser {
  if (field.enum !== undefined) return createEnumParser(field.enum);
  if (field.scalar !== undefined) return getScalarParser(field.scalar, "longAsString" in field && field.longAsString);
  throw new Error(`${field.parent.typeName}.${field.name} holds messages, which queries do not support`);
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
