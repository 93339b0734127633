import { type DescField, type DescMessage, type Message, ScalarType, toJsonString } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { getZero, isUint32, MAX_SAFE_BIGINT, type MessageFields, memoizeFrozen, readMember } from "./messages.js";

/** Prints a message as JSON text. Throws if the message does not serialise. */
export type JsonPrinter = (message: Message) => string;

/** Returns the text of a value; undefined for a value that only the library prints or rejects; empty for none. */
type PrintValue = (value: unknown) => string | undefined;

/** Where the JSON of Protobuf and that of GET differ. */
interface JsonDialect {
  /** Returns the fields in the order in which they are printed. */
  orderFields(fields: readonly DescField[]): readonly DescField[];
  /** Whether fields with their default value are printed. */
  readonly printsDefaults: boolean;
  readonly printLong: PrintValue;
  readonly printDouble: PrintValue;
}

/** Fields in the order of their numbers, 64-bit integers as strings. */
const PROTOBUF_JSON: JsonDialect = {
  orderFields: (fields) => [...fields].sort((a, b) => a.number - b.number),
  printsDefaults: false,
  printLong: (value) => (typeof value === "bigint" ? `"${value}"` : undefined),
  printDouble: (value) => (Number.isFinite(value) ? String(value) : undefined),
};

/**
 * Fields in the order of their declaration, with their defaults, but without messages, members of a oneof and `optional`
 * fields that are not set. 64-bit integers are numbers, clamped to the integers that a double holds exactly, and numbers
 * that are not finite are 0.
 */
const REST_JSON: JsonDialect = {
  orderFields: (fields) => fields,
  printsDefaults: true,
  printLong(value) {
    if (typeof value === "bigint" && value >= 0n && value <= MAX_SAFE_BIGINT) return value.toString();
    const long = BigInt(value as bigint | string);
    return String(long > MAX_SAFE_BIGINT ? MAX_SAFE_BIGINT : long < -MAX_SAFE_BIGINT ? -MAX_SAFE_BIGINT : long);
  },
  printDouble: (value) => (Number.isFinite(value) ? String(value) : "0"),
};

/** Creates a printer of Protobuf JSON: what the library's `toJsonString` returns, which prints what is not plain. */
export function createProtobufJsonPrinter(schema: DescMessage): JsonPrinter {
  const print = createMessagePrinter(schema, PROTOBUF_JSON, []);
  return (message) => print?.(message) ?? toJsonString(schema, message);
}

/**
 * Creates a printer of the JSON of GET.
 *
 * Throws for a type that contains itself, since its defaults would have no end, for one that has no printer here, and for
 * an unknown field.
 * @param onlyField declared name of a field that is the whole body; empty for the complete message
 */
export function createRestJsonPrinter(schema: DescMessage, onlyField = ""): JsonPrinter {
  const field = onlyField === "" ? undefined : schema.fields.find(({ name }) => name === onlyField);
  if (onlyField !== "" && field === undefined) throw new Error(`${schema.typeName} has no field ${onlyField}`);
  const printField = field && createFieldPrinter(field, REST_JSON, [schema]);
  const print: PrintValue | undefined =
    field === undefined
      ? createMessagePrinter(schema, REST_JSON, [])
      : printField && ((message) => printField((message as MessageFields)[field.localName]));
  if (print === undefined) throw new Error(`${schema.typeName} contains itself or a type without a printer`);
  return (message) => {
    const text = print(message);
    if (text === undefined) throw new Error(`a message of ${schema.typeName} does not serialise`);
    return text;
  };
}

interface JsonMember {
  readonly name: string;
  /** Name of the oneof that the field belongs to. */
  readonly oneof: string | undefined;
  /** The member name with its colon: `"name":`. */
  readonly keyPrefix: string;
  readonly print: PrintValue;
}

/** Returns undefined if the type has a field that only the library prints. */
function createMessagePrinter(
  schema: DescMessage,
  dialect: JsonDialect,
  ancestors: readonly DescMessage[],
): PrintValue | undefined {
  if (ancestors.includes(schema) || schema.typeName.startsWith("google.protobuf.")) return undefined;
  const members: JsonMember[] = [];
  for (const field of dialect.orderFields(schema.fields)) {
    const print = createMemberPrinter(field, dialect, [...ancestors, schema]);
    // JavaScript objects list integer keys first.
    if (print === undefined || /^[0-9]+$/.test(field.jsonName)) return undefined;
    const keyPrefix = `${JSON.stringify(field.jsonName)}:`;
    members.push({ name: field.localName, oneof: field.oneof?.localName, keyPrefix, print });
  }
  const hasOneof = members.some(({ oneof }) => oneof !== undefined);
  return (message) => {
    if (typeof message !== "object" || message === null) return undefined;
    const fields = message as MessageFields;
    let out = "";
    for (const member of members) {
      const text = member.print(hasOneof ? readMember(fields, member) : fields[member.name]);
      if (text === undefined) return undefined;
      if (text !== "") out += out === "" ? member.keyPrefix + text : `,${member.keyPrefix}${text}`;
    }
    return `{${out}}`;
  };
}

/** Creates the printer of a field that returns an empty text where the field is left out. */
function createMemberPrinter(
  field: DescField,
  dialect: JsonDialect,
  ancestors: readonly DescMessage[],
): PrintValue | undefined {
  const print = createFieldPrinter(field, dialect, ancestors);
  if (print === undefined) return undefined;
  if (field.presence === FeatureSet_FieldPresence.EXPLICIT) return (value) => (value === undefined ? "" : print(value));
  if (dialect.printsDefaults) return print;
  if (field.fieldKind === "list") return (value) => (Array.isArray(value) && value.length === 0 ? "" : print(value));
  if (field.presence !== FeatureSet_FieldPresence.IMPLICIT) return undefined;
  const zero = getZero(field);
  // A double of -0 is printed.
  if (field.scalar === ScalarType.DOUBLE) return (value) => (Object.is(value, zero) ? "" : print(value));
  return (value) => (value === zero ? "" : print(value));
}

function createFieldPrinter(
  field: DescField,
  dialect: JsonDialect,
  ancestors: readonly DescMessage[],
): PrintValue | undefined {
  const print = field.fieldKind === "map" ? undefined : createValuePrinter(field, dialect, ancestors);
  if (print === undefined) return undefined;
  if (field.fieldKind === "list") {
    return (value) => (Array.isArray(value) ? printList(value, print) : undefined);
  }
  return print;
}

function printList(items: readonly unknown[], print: PrintValue): string | undefined {
  let out = "";
  for (const item of items) {
    const text = print(item);
    if (text === undefined) return undefined;
    out += out === "" ? text : `,${text}`;
  }
  return `[${out}]`;
}

function createValuePrinter(
  field: DescField,
  dialect: JsonDialect,
  ancestors: readonly DescMessage[],
): PrintValue | undefined {
  if (field.message !== undefined) return createNestedPrinter(field.message, dialect, ancestors);
  if (field.enum !== undefined) {
    const names = new Map<unknown, string>(field.enum.values.map(({ name, number }) => [number, JSON.stringify(name)]));
    return (value) => names.get(value) ?? (Number.isInteger(value) ? String(value) : undefined);
  }
  switch (field.scalar) {
    case ScalarType.STRING:
      return (value) => (typeof value === "string" ? printJsonString(value) : undefined);
    case ScalarType.BOOL:
      return (value) => (typeof value === "boolean" ? String(value) : undefined);
    case ScalarType.INT64:
      return dialect.printLong;
    case ScalarType.DOUBLE:
      return dialect.printDouble;
    case ScalarType.UINT32:
      return (value) => (isUint32(value) ? String(value) : undefined);
    default:
      // The contract has no response with another type.
      return undefined;
  }
}

/** Creates the printer of a member message. A frozen one is part of many messages and is printed once. */
function createNestedPrinter(
  schema: DescMessage,
  dialect: JsonDialect,
  ancestors: readonly DescMessage[],
): PrintValue | undefined {
  const print = createMessagePrinter(schema, dialect, ancestors);
  if (print === undefined) return undefined;
  const printMessage = memoizeFrozen(print);
  return (value) => (typeof value === "object" && value !== null ? printMessage(value as Message) : undefined);
}

/** Matches texts that JSON holds without an escape: printable ASCII but for the quote and the backslash. */
const UNESCAPED_JSON_TEXT = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

/** Returns a string as a JSON literal. Skips `JSON.stringify` where nothing needs an escape. */
export function printJsonString(text: string): string {
  return UNESCAPED_JSON_TEXT.test(text) ? `"${text}"` : JSON.stringify(text);
}
