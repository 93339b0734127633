import { type DescField, type DescMessage, type Message, ScalarType, toJsonString } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { UINT32_LIMIT } from "./integer-limits.js";
import { printJsonString } from "./json-text.js";
import { readMember } from "./oneof-choice.js";

/** Writes a message as Protobuf JSON. Throws if the message does not serialise. */
export type JsonWriter = (message: Message) => string;

type Fields = Readonly<Record<string, unknown>>;
/** Returns the text of a value; undefined for a value that only the library writes or rejects. */
type PrintValue = (value: unknown) => string | undefined;

interface JsonField {
  readonly name: string;
  /** Name of the oneof that the field belongs to. */
  readonly oneof: string | undefined;
  /** The member name with its colon: `"name":`. */
  readonly keyPrefix: string;
  /** Returns whether the value is the default, or the field is not set: then it is not written. */
  readonly isDefault: (value: unknown) => boolean;
  readonly print: PrintValue;
}

/**
 * Creates a writer for one message type. Its results equal those of the library's `toJsonString`, which writes what is
 * not plain.
 */
export function createJsonWriter(schema: DescMessage): JsonWriter {
  const print = createMessagePrinter(schema, []);
  return (message) => print?.(message) ?? toJsonString(schema, message);
}

/** Returns undefined if the type has a field that only the library writes. */
function createMessagePrinter(schema: DescMessage, ancestors: readonly DescMessage[]): PrintValue | undefined {
  if (ancestors.includes(schema) || schema.typeName.startsWith("google.protobuf.")) return undefined;
  const members: JsonField[] = [];
  for (const field of [...schema.fields].sort((a, b) => a.number - b.number)) {
    const member = createJsonField(field, [...ancestors, schema]);
    // JavaScript objects list integer keys first.
    if (member === undefined || /^[0-9]+$/.test(field.jsonName)) return undefined;
    members.push(member);
  }
  const hasOneof = members.some(({ oneof }) => oneof !== undefined);
  return (message) => {
    if (typeof message !== "object" || message === null) return undefined;
    const fields = message as Fields;
    let out = "";
    for (const member of members) {
      const { name, keyPrefix, isDefault, print } = member;
      const value = hasOneof ? readMember(fields, member) : fields[name];
      if (isDefault(value)) continue;
      const text = print(value);
      if (text === undefined) return undefined;
      out += out === "" ? keyPrefix + text : `,${keyPrefix}${text}`;
    }
    return `{${out}}`;
  };
}

function createJsonField(field: DescField, ancestors: readonly DescMessage[]): JsonField | undefined {
  if (field.fieldKind === "map") return undefined;
  const keyPrefix = `${JSON.stringify(field.jsonName)}:`;
  const common = { name: field.localName, oneof: field.oneof?.localName, keyPrefix };
  const print = createValuePrinter(field, ancestors);
  if (print === undefined) return undefined;
  if (field.fieldKind === "list") {
    const isDefault = (value: unknown) => Array.isArray(value) && value.length === 0;
    return { ...common, isDefault, print: (value) => (Array.isArray(value) ? printList(value, print) : undefined) };
  }
  if (field.presence === FeatureSet_FieldPresence.EXPLICIT) {
    return { ...common, isDefault: (value) => value === undefined, print };
  }
  if (field.presence !== FeatureSet_FieldPresence.IMPLICIT) return undefined;
  if (field.scalar === ScalarType.DOUBLE) return { ...common, isDefault: (value) => Object.is(value, 0), print };
  const zero = getDefaultValue(field);
  return { ...common, isDefault: (value) => value === zero, print };
}

function getDefaultValue({ scalar }: DescField): unknown {
  if (scalar === ScalarType.STRING) return "";
  if (scalar === ScalarType.BOOL) return false;
  return scalar === ScalarType.INT64 ? 0n : 0;
}

function printList(values: readonly unknown[], print: PrintValue): string | undefined {
  let out = "";
  for (const value of values) {
    const text = print(value);
    if (text === undefined) return undefined;
    out += out === "" ? text : `,${text}`;
  }
  return `[${out}]`;
}

function createValuePrinter(field: DescField, ancestors: readonly DescMessage[]): PrintValue | undefined {
  if (field.message !== undefined) return createMessagePrinter(field.message, ancestors);
  if (field.enum !== undefined) {
    if (field.enum.values[0]?.number !== 0) return undefined;
    const names = new Map<unknown, string>(
      field.enum.values.map(({ number }) => [number, JSON.stringify(field.enum?.value[number]?.name)]),
    );
    return (value) => names.get(value);
  }
  switch (field.scalar) {
    case ScalarType.STRING:
      return (value) => (typeof value === "string" ? printJsonString(value) : undefined);
    case ScalarType.DOUBLE:
      return (value) => (typeof value === "number" && Number.isFinite(value) ? String(value) : undefined);
    case ScalarType.BOOL:
      return (value) => (typeof value === "boolean" ? String(value) : undefined);
    case ScalarType.UINT32:
      return (value) =>
        typeof value === "number" && Number.isInteger(value) && value >= 0 && value < UINT32_LIMIT
          ? String(value)
          : undefined;
    case ScalarType.INT64:
      return (value) => (typeof value === "bigint" ? `"${value}"` : undefined);
    default:
      return undefined;
  }
}
