import { type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { MAX_LISTED_MESSAGES } from "../../operations/parameters.js";
import { isJsonWithinLimits, SHORT_JSON_BYTES } from "./message-limits.js";
import { createMessageFactory, isUint32, type MessageFields } from "./messages.js";

/**
 * Reads a plain message: one object of ASCII strings, numbers, and lists of such strings and of plain messages. Returns
 * undefined for any other input, valid or not, which the library then reads or rejects, and for more than a request may hold.
 */
export type FastPathJsonReader = (bytes: Buffer) => Message | undefined;

/** Returns a JSON value as a message holds it; undefined if it is not plain. */
type ReadValue = (json: unknown) => unknown;

interface JsonField {
  readonly name: string;
  readonly bit: number;
  readonly read: ReadValue;
}

const COLON = 0x3a;
const BACKSLASH = 0x5c;
/** The last character of ASCII that is printable. Control characters are for `JSON.parse` to reject. */
const LAST_PRINTABLE = 0x7e;

/** Creates a reader for one message type. Its results equal those of the library's `fromJsonString`. */
export function createFastPathJsonReader(schema: DescMessage): FastPathJsonReader {
  const read = { members: 0 };
  const readMessage = createMessageReader(schema, [], read);
  return (bytes) => {
    if (bytes.length > SHORT_JSON_BYTES && !isJsonWithinLimits(schema, bytes)) return undefined;
    const colons = countColons(bytes);
    if (colons === undefined) return undefined;
    read.members = 0;
    try {
      const message = readMessage(JSON.parse(bytes.toString("latin1")));
      // `JSON.parse` keeps the last of members with the same name, the library rejects them.
      return colons === read.members ? message : undefined;
    } catch {
      return undefined;
    }
  };
}

/** @param read counts the members of all objects */
function createMessageReader(
  schema: DescMessage,
  ancestors: readonly DescMessage[],
  read: { members: number },
): (json: unknown) => Message | undefined {
  const newMessage = createMessageFactory(schema);
  const members = new Map<string, JsonField>();
  schema.fields.forEach((field, index) => {
    const readValue = createFieldReader(field, [...ancestors, schema], read);
    // Bit operations work on 31 bits.
    if (index > 30 || readValue === undefined) return;
    const member = { name: field.localName, bit: 2 ** index, read: readValue };
    members.set(field.name, member).set(field.jsonName, member);
  });
  return (json) => {
    if (typeof json !== "object" || json === null || Array.isArray(json)) return undefined;
    const message = newMessage() as Message & Record<string, unknown>;
    let presentFields = 0;
    for (const key in json) {
      const member = members.get(key);
      // A field has two names: the library rejects an object with both.
      if (member === undefined || (presentFields & member.bit) !== 0) return undefined;
      presentFields |= member.bit;
      read.members += 1;
      const value = member.read((json as MessageFields)[key]);
      if (value === undefined) return undefined;
      message[member.name] = value;
    }
    return message;
  };
}

function createFieldReader(
  field: DescField,
  ancestors: readonly DescMessage[],
  read: { members: number },
): ReadValue | undefined {
  if (field.oneof !== undefined) return undefined;
  if (field.fieldKind !== "list") return field.fieldKind === "scalar" ? getScalarReader(field.scalar) : undefined;
  const { message } = field;
  if (message === undefined) return field.scalar === ScalarType.STRING ? createListReader(readText) : undefined;
  const isPlain = !ancestors.includes(message) && !message.typeName.startsWith("google.protobuf.");
  return isPlain ? createListReader(createMessageReader(message, ancestors, read), MAX_LISTED_MESSAGES) : undefined;
}

function createListReader(readItem: ReadValue, maxItems = Number.POSITIVE_INFINITY): ReadValue {
  return (json) => {
    if (!Array.isArray(json) || json.length > maxItems) return undefined;
    const items = json.map(readItem);
    return items.includes(undefined) ? undefined : items;
  };
}

function getScalarReader(scalar: ScalarType): ReadValue | undefined {
  if (scalar === ScalarType.STRING) return readText;
  if (scalar === ScalarType.UINT32) return (json) => (isUint32(json) ? json : undefined);
  return scalar === ScalarType.DOUBLE ? readDouble : undefined;
}

function readText(json: unknown): string | undefined {
  return typeof json === "string" ? json : undefined;
}

function readDouble(json: unknown): number | undefined {
  return Number.isFinite(json) ? (json as number) : undefined;
}

/** Returns the number of colons in a text of ASCII without an escape; undefined for another text. */
function countColons(bytes: Buffer): number | undefined {
  let count = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number;
    if (byte === COLON) count += 1;
    else if (byte === BACKSLASH || byte > LAST_PRINTABLE) return undefined;
  }
  return count;
}
