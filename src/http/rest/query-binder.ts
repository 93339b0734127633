import type { DescField, DescMessage, DescOneof, Message } from "@bufbuild/protobuf";
import { ServiceError } from "../../errors.js";
import { createMessageFactory } from "../codec/message-factory.js";
import { createEnumParser, getScalarParser, type ValueParser } from "./value-parsers.js";

/** Reads a request message from a query. Throws a ServiceError that names the parameter at fault. */
export type QueryBinder = (query: string) => Message;

/** Accepted under any value, and without effect: clients of older servers send them. */
const IGNORED_PARAMETERS: ReadonlySet<string> = new Set(["refresh"]);

/** Visible ASCII in which nothing is encoded. */
const UNENCODED_QUERY = /^[\x21-\x24\x26-\x2a\x2c-\x7e]*$/;

/** Longest part of a parameter's name that an error repeats. */
const MAX_REPORTED_NAME_LENGTH = 64;

type Fields = Record<string, unknown>;

/** One field of the message as a parameter. */
interface QueryParameter {
  /** Name in errors: lowerCamelCase. */
  readonly label: string;
  readonly kind: "single" | "list" | "map";
  readonly keyParser: ValueParser | undefined;
  readonly valueParser: ValueParser;
  readonly oneof: DescOneof | undefined;
  assign(fields: Fields, value: unknown, key: string): void;
}

/** What was given for a parameter, or for one key of a map. */
interface ReceivedParameter {
  /** The names under which it was given: one field has up to two. */
  readonly names: string[];
  readonly text: string;
}

/**
 * A binder for one type of request. Throws where the type has a field that no query can hold.
 *
 * Fields go by their lowerCamelCase or their declared name; a map's entry is `name[key]=value`; a list repeats its name.
 * An empty text is a value in lists alone: elsewhere the parameter counts as not given.
 */
export function createQueryBinder(schema: DescMessage, { fastPath = true } = {}): QueryBinder {
  const parameters = new Map<string, QueryParameter>();
  for (const field of schema.fields) {
    const parameter = createQueryParameter(field);
    parameters.set(field.jsonName, parameter).set(field.name, parameter);
  }
  const newMessage = createMessageFactory(schema);
  const bindFast = fastPath ? createFastPathBinder(parameters, newMessage) : undefined;
  return (query) => {
    const bound = bindFast?.(query);
    if (bound !== undefined) return bound;
    const message = newMessage();
    const given = new Map<string, ReceivedParameter>();
    for (const pair of query.split("&")) {
      if (pair !== "") bindPair(pair, parameters, message as unknown as Fields, given);
    }
    return message;
  };
}

/**
 * Binds a query that needs no care: single parameters, each once, with nothing encoded and nothing wrong. Undefined for
 * any other.
 */
function createFastPathBinder(
  parameters: ReadonlyMap<string, QueryParameter>,
  newMessage: () => Message,
): (query: string) => Message | undefined {
  const plain = new Map<string, { readonly bit: number; readonly parameter: QueryParameter }>();
  const bits = new Map<QueryParameter, number>();
  for (const [name, parameter] of parameters) {
    if (parameter.kind !== "single" || parameter.oneof !== undefined) continue;
    const bit = bits.get(parameter) ?? 2 ** bits.size;
    // There are no more bits for a number to hold.
    if (bit > 2 ** 30) continue;
    bits.set(parameter, bit);
    plain.set(name, { bit, parameter });
  }
  return (query) => {
    if (!UNENCODED_QUERY.test(query)) return undefined;
    const message = newMessage();
    let given = 0;
    for (let start = 0; start < query.length; ) {
      const next = query.indexOf("&", start);
      const end = next === -1 ? query.length : next;
      const equals = query.indexOf("=", start);
      if (equals === -1 || equals >= end - 1) return undefined;
      const found = plain.get(query.slice(start, equals));
      if (found === undefined || (given & found.bit) !== 0) return undefined;
      given |= found.bit;
      const value = found.parameter.valueParser.parse(query.slice(equals + 1, end));
      if (value === undefined) return undefined;
      found.parameter.assign(message as unknown as Fields, value, "");
      start = end + 1;
    }
    return message;
  };
}

function bindPair(
  pair: string,
  parameters: ReadonlyMap<string, QueryParameter>,
  fields: Fields,
  given: Map<string, ReceivedParameter>,
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
  const fail = (problem: string) => new ServiceError("INVALID_PARAMETER", `${label} ${problem}`, { field: label });
  const text = decodeQueryText(equals === -1 ? "" : pair.slice(equals + 1));
  if (text === undefined) throw fail("is not percent-encoded UTF-8");

  const mapKey = parameter.kind === "map" ? parseMapKey(parameter, key) : "";
  if (mapKey === undefined) throw fail(`needs a key in brackets: ${parameter.keyParser?.expected}`);
  const slot = parameter.kind === "map" ? `${parameter.label}[${mapKey}]` : parameter.label;
  const before = given.get(slot);
  const isRepeated = before?.names.includes(name) === true;
  if (before === undefined) given.set(slot, { names: [name], text });
  else if (parameter.kind === "list" && !isRepeated) throw fail("is given under two names");
  else if (parameter.kind !== "list") {
    if (isRepeated) throw fail("is given twice");
    if (before.text !== text) throw fail("is given under two names with different values");
    before.names.push(name);
  }

  if (text === "" && parameter.kind !== "list") return;
  if (parameter.oneof !== undefined) {
    const { case: chosen } = fields[parameter.oneof.localName] as { case?: string };
    if (chosen !== undefined && before === undefined) throw fail(`excludes ${chosen}`);
  }
  const value = parameter.valueParser.parse(text);
  if (value === undefined) throw fail(`must be ${parameter.valueParser.expected}`);
  parameter.assign(fields, value, mapKey);
}

/** `name[key]` in its parts. No field's name holds a bracket, so a key may hold any. */
function splitKey(fullName: string): { name: string; key: string | undefined } {
  const bracket = fullName.indexOf("[");
  if (bracket === -1 || !fullName.endsWith("]")) return { name: fullName, key: undefined };
  return { name: fullName.slice(0, bracket), key: fullName.slice(bracket + 1, -1) };
}

/** A map's key as messages hold it, always a string; undefined where the text is no key. */
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
      return { ...common, kind: "list", valueParser: getValueParser(field, field.listKind), assign };
    }
    case "map": {
      function assign(fields: Fields, value: unknown, key: string): void {
        // Plain assignment would take the key `__proto__` for the object's own parent.
        const entry = { value, enumerable: true, writable: true, configurable: true };
        Object.defineProperty(fields[localName], key, entry);
      }
      return {
        ...common,
        kind: "map",
        keyParser: getScalarParser(field.mapKey),
        valueParser: getValueParser(field, field.mapKind),
        assign,
      };
    }
    default: {
      const { oneof } = field;
      function assign(fields: Fields, value: unknown): void {
        if (oneof === undefined) fields[localName] = value;
        else fields[oneof.localName] = { case: localName, value };
      }
      return { ...common, kind: "single", valueParser: getValueParser(field, field.fieldKind), oneof, assign };
    }
  }
}

function getValueParser(field: DescField, kind: "scalar" | "enum" | "message"): ValueParser {
  if (field.enum !== undefined) return createEnumParser(field.enum);
  if (field.scalar !== undefined) return getScalarParser(field.scalar, "longAsString" in field && field.longAsString);
  throw new Error(`${field.parent.typeName}.${field.name} is a ${kind}, which a query cannot hold`);
}

/** Percent-decoded text, `+` being a space as in forms; undefined where that is no UTF-8. */
function decodeQueryText(text: string): string | undefined {
  try {
    return /[^\x21-\x7e]/.test(text) ? undefined : decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}

/** A name from outside, fit for a message: short, and of visible ASCII. */
function sanitizeName(name: string): string {
  return name.slice(0, MAX_REPORTED_NAME_LENGTH).replace(/[^\x20-\x7e]/g, "?");
}
