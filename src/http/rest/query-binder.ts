import type { DescField, DescMessage, DescOneof, Message } from "@bufbuild/protobuf";
import { ServiceError } from "../../errors.js";
import { createMessageFactory } from "../codec/message-factory.js";
import { enumText, scalarText, type ValueText } from "./value-parsers.js";

/** Reads a request message from a query. Throws a ServiceError that names the parameter at fault. */
export type QueryBinder = (query: string) => Message;

/** Accepted under any value, and without effect: clients of older servers send them. */
const IGNORED_PARAMETERS: ReadonlySet<string> = new Set(["refresh"]);

/** Visible ASCII in which nothing is encoded. */
const PLAIN_QUERY = /^[\x21-\x24\x26-\x2a\x2c-\x7e]*$/;

/** Longest part of a parameter's name that an error repeats. */
const NAME_LENGTH = 64;

type Fields = Record<string, unknown>;

/** One field of the message as a parameter. */
interface Parameter {
  /** Name in errors: lowerCamelCase. */
  readonly label: string;
  readonly kind: "single" | "list" | "map";
  readonly key: ValueText | undefined;
  readonly value: ValueText;
  readonly oneof: DescOneof | undefined;
  put(fields: Fields, value: unknown, key: string): void;
}

/** What was given for a parameter, or for one key of a map. */
interface Given {
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
export function createQueryBinder(schema: DescMessage): QueryBinder {
  const parameters = new Map<string, Parameter>();
  for (const field of schema.fields) {
    const parameter = toParameter(field);
    parameters.set(field.jsonName, parameter).set(field.name, parameter);
  }
  const newMessage = createMessageFactory(schema);
  const bindPlain = createPlainBinder(parameters, newMessage);
  return (query) => {
    const plain = bindPlain(query);
    if (plain !== undefined) return plain;
    const message = newMessage();
    const given = new Map<string, Given>();
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
function createPlainBinder(
  parameters: ReadonlyMap<string, Parameter>,
  newMessage: () => Message,
): (query: string) => Message | undefined {
  const plain = new Map<string, { readonly bit: number; readonly parameter: Parameter }>();
  const bits = new Map<Parameter, number>();
  for (const [name, parameter] of parameters) {
    if (parameter.kind !== "single" || parameter.oneof !== undefined) continue;
    const bit = bits.get(parameter) ?? 2 ** bits.size;
    // There are no more bits for a number to hold.
    if (bit > 2 ** 30) continue;
    bits.set(parameter, bit);
    plain.set(name, { bit, parameter });
  }
  return (query) => {
    if (!PLAIN_QUERY.test(query)) return undefined;
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
      const value = found.parameter.value.parse(query.slice(equals + 1, end));
      if (value === undefined) return undefined;
      found.parameter.put(message as unknown as Fields, value, "");
      start = end + 1;
    }
    return message;
  };
}

function bindPair(
  pair: string,
  parameters: ReadonlyMap<string, Parameter>,
  fields: Fields,
  given: Map<string, Given>,
): void {
  const equals = pair.indexOf("=");
  const fullName = decode(equals === -1 ? pair : pair.slice(0, equals));
  if (fullName === undefined)
    throw new ServiceError("INVALID_PARAMETER", "a parameter's name is not percent-encoded UTF-8");
  const { name, key } = splitKey(fullName);
  const parameter = parameters.get(name);
  if (parameter === undefined || (key !== undefined && parameter.kind !== "map")) {
    if (IGNORED_PARAMETERS.has(fullName)) return;
    const field = printable(fullName);
    throw new ServiceError("UNKNOWN_PARAMETER", `unknown parameter: ${field}`, { field });
  }
  const label = key === undefined ? parameter.label : printable(`${parameter.label}[${key}]`);
  const fail = (problem: string) => new ServiceError("INVALID_PARAMETER", `${label} ${problem}`, { field: label });
  const text = decode(equals === -1 ? "" : pair.slice(equals + 1));
  if (text === undefined) throw fail("is not percent-encoded UTF-8");

  const mapKey = parameter.kind === "map" ? toMapKey(parameter, key) : "";
  if (mapKey === undefined) throw fail(`needs a key in brackets: ${parameter.key?.expected}`);
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
  const value = parameter.value.parse(text);
  if (value === undefined) throw fail(`must be ${parameter.value.expected}`);
  parameter.put(fields, value, mapKey);
}

/** `name[key]` in its parts. No field's name holds a bracket, so a key may hold any. */
function splitKey(fullName: string): { name: string; key: string | undefined } {
  const bracket = fullName.indexOf("[");
  if (bracket === -1 || !fullName.endsWith("]")) return { name: fullName, key: undefined };
  return { name: fullName.slice(0, bracket), key: fullName.slice(bracket + 1, -1) };
}

/** A map's key as messages hold it, always a string; undefined where the text is no key. */
function toMapKey({ key: keyText }: Parameter, key: string | undefined): string | undefined {
  const value = key === undefined ? undefined : keyText?.parse(key);
  return value === undefined ? undefined : String(value);
}

function toParameter(field: DescField): Parameter {
  const { localName } = field;
  const common = { label: field.jsonName, key: undefined, oneof: undefined };
  switch (field.fieldKind) {
    case "list": {
      const put = (fields: Fields, value: unknown) => (fields[localName] as unknown[]).push(value);
      return { ...common, kind: "list", value: valueText(field, field.listKind), put };
    }
    case "map": {
      function put(fields: Fields, value: unknown, key: string): void {
        // Plain assignment would take the key `__proto__` for the object's own parent.
        const entry = { value, enumerable: true, writable: true, configurable: true };
        Object.defineProperty(fields[localName], key, entry);
      }
      return { ...common, kind: "map", key: scalarText(field.mapKey), value: valueText(field, field.mapKind), put };
    }
    default: {
      const { oneof } = field;
      function put(fields: Fields, value: unknown): void {
        if (oneof === undefined) fields[localName] = value;
        else fields[oneof.localName] = { case: localName, value };
      }
      return { ...common, kind: "single", value: valueText(field, field.fieldKind), oneof, put };
    }
  }
}

function valueText(field: DescField, kind: "scalar" | "enum" | "message"): ValueText {
  if (field.enum !== undefined) return enumText(field.enum);
  if (field.scalar !== undefined) return scalarText(field.scalar, "longAsString" in field && field.longAsString);
  throw new Error(`${field.parent.typeName}.${field.name} is a ${kind}, which a query cannot hold`);
}

/** Percent-decoded text, `+` being a space as in forms; undefined where that is no UTF-8. */
function decode(text: string): string | undefined {
  try {
    return /[^\x21-\x7e]/.test(text) ? undefined : decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}

/** A name from outside, fit for a message: short, and of visible ASCII. */
function printable(name: string): string {
  return name.slice(0, NAME_LENGTH).replace(/[^\x20-\x7e]/g, "?");
}
