import { type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { MAX_SAFE_BIGINT } from "../codec/integer-limits.js";
import { printJsonString } from "../codec/json-text.js";

/** Prints a response message as JSON text. */
export type RestJsonPrinter = (message: Message) => string;

type Fields = Readonly<Record<string, unknown>>;
/** Prints the value of a field; its default for undefined. */
type PrintValue = (value: unknown) => string;

interface JsonField {
  /** The member name with its colon: `"name":`. */
  readonly keyPrefix: string;
  readonly print: PrintValue;
  /** Whether it is left out when it is undefined. */
  readonly isOptional: boolean;
  /** Returns whether the message has the field: false for a message, oneof member or `optional` field that is not set. */
  has(fields: Fields): boolean;
  read(fields: Fields): unknown;
}

/**
 * Creates a printer for one response type. Fields come in the order of their declaration, in lowerCamelCase and with
 * their defaults, but without messages, members of a oneof and `optional` fields that are not set; 64-bit integers are
 * numbers, clamped to the integers that a double holds exactly; enums are names, bytes are base64, and numbers that are
 * not finite are 0.
 *
 * Throws for a type that contains itself, since its defaults would have no end, and for an unknown field.
 * @param onlyField declared name of a field that is the whole body; empty for the complete message
 */
export function createRestJsonPrinter(schema: DescMessage, onlyField = ""): RestJsonPrinter {
  if (onlyField === "") return createMessagePrinter(schema, []);
  const field = schema.fields.find(({ name }) => name === onlyField);
  if (field === undefined) throw new Error(`${schema.typeName} has no field ${onlyField}`);
  const { read, print } = createJsonField(field, [schema]);
  return (message) => print(read(message as unknown as Fields));
}

function createMessagePrinter(schema: DescMessage, ancestors: readonly DescMessage[]): PrintValue {
  if (ancestors.includes(schema)) throw new Error(`${schema.typeName} contains itself and cannot be printed`);
  const members = schema.fields.map((field) => createJsonField(field, [...ancestors, schema]));
  if (schema.oneofs.length === 0 && !members[0]?.isOptional) return createPlainMessagePrinter(schema, members);
  return (message = {}) => {
    const fields = message as Fields;
    let out = "";
    for (const { keyPrefix, print, has, read } of members) {
      if (has(fields)) out += `${out === "" ? "" : ","}${keyPrefix}${print(read(fields))}`;
    }
    return `{${out}}`;
  };
}

/** Creates a printer for a message without oneofs, which always has its first field. */
function createPlainMessagePrinter({ fields: descriptors }: DescMessage, members: readonly JsonField[]): PrintValue {
  const plainMembers = members.map(({ keyPrefix, print, isOptional }, index) => ({
    isOptional,
    name: descriptors[index]?.localName ?? "",
    prefix: index === 0 ? keyPrefix : `,${keyPrefix}`,
    print,
  }));
  return (message = {}) => {
    const fields = message as Fields;
    let out = "{";
    for (const { name, prefix, print, isOptional } of plainMembers) {
      const value = fields[name];
      if (value !== undefined || !isOptional) out += prefix + print(value);
    }
    return `${out}}`;
  };
}

function createJsonField(field: DescField, ancestors: readonly DescMessage[]): JsonField {
  const { localName, oneof } = field;
  const keyPrefix = `${JSON.stringify(field.jsonName)}:`;
  const print = createFieldPrinter(field, ancestors);
  if (oneof === undefined) {
    const read = (fields: Fields): unknown => fields[localName];
    const isOptional = field.presence === FeatureSet_FieldPresence.EXPLICIT;
    const has = (fields: Fields): boolean => !isOptional || fields[localName] !== undefined;
    return { keyPrefix, print, isOptional, has, read };
  }
  const chosen = (fields: Fields) => (fields[oneof.localName] ?? {}) as { case?: string; value?: unknown };
  return {
    keyPrefix,
    print,
    isOptional: true,
    has: (fields) => chosen(fields).case === localName,
    read: (fields) => {
      const { case: name, value } = chosen(fields);
      return name === localName ? value : undefined;
    },
  };
}

function createFieldPrinter(field: DescField, ancestors: readonly DescMessage[]): PrintValue {
  const print = createValuePrinter(field, ancestors);
  switch (field.fieldKind) {
    case "list":
      return (value = []) => `[${(value as unknown[]).map((item) => print(item)).join(",")}]`;
    case "map":
      return (value = {}) => {
        const entries = Object.entries(value as Fields);
        return `{${entries.map(([key, entry]) => `${printJsonString(key)}:${print(entry)}`).join(",")}}`;
      };
    default:
      return print;
  }
}

function createValuePrinter(field: DescField, ancestors: readonly DescMessage[]): PrintValue {
  if (field.message !== undefined) return createMessagePrinter(field.message, ancestors);
  if (field.enum !== undefined) {
    const names = new Map(field.enum.values.map(({ name, number }) => [number, JSON.stringify(name)]));
    const first = field.enum.values[0]?.number ?? 0;
    return (value = first) => names.get(value as number) ?? String(value);
  }
  switch (field.scalar) {
    case ScalarType.STRING:
      return (value) => printJsonString((value ?? "") as string);
    case ScalarType.BOOL:
      return (value = false) => String(value);
    case ScalarType.BYTES:
      return (value) => `"${Buffer.from((value ?? []) as Uint8Array).toString("base64")}"`;
    case ScalarType.INT64:
    case ScalarType.UINT64:
    case ScalarType.SINT64:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return printInt64;
    default:
      return (value = 0) => (Number.isFinite(value) ? String(value) : "0");
  }
}

function printInt64(value: unknown): string {
  if (typeof value === "bigint" && value >= 0n && value <= MAX_SAFE_BIGINT) return value.toString();
  const long = BigInt((value ?? 0n) as bigint | string);
  return String(long > MAX_SAFE_BIGINT ? MAX_SAFE_BIGINT : long < -MAX_SAFE_BIGINT ? -MAX_SAFE_BIGINT : long);
}
