import { type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { createMessageFactory } from "./message-factory.js";

/**
 * Reads a plain message: ASCII strings, lists of them and of plain messages, and doubles, each with its declared wire type.
 * Returns undefined for any other input, valid or not, which the library then reads or rejects.
 */
export type FastPathBinaryReader = (bytes: Buffer) => Message | undefined;

const WIRE_TYPE_FIXED64 = 1;
const WIRE_TYPE_LENGTH_DELIMITED = 2;

type ReadMessage = (bytes: Buffer, start: number, end: number) => Message | undefined;

/** A field that is read here. */
interface FastField {
  readonly name: string;
  readonly isList: boolean;
  /** Reads an item of a list of messages; undefined: the field holds texts or a double. */
  readonly readItem: ReadMessage | undefined;
}

/** Creates a reader for one message type. Its results equal those of the library's `fromBinary`. */
export function createFastPathBinaryReader(schema: DescMessage): FastPathBinaryReader {
  const read = createMessageReader(schema, []);
  return (bytes) => read(bytes, 0, bytes.length);
}

function createMessageReader(schema: DescMessage, ancestors: readonly DescMessage[]): ReadMessage {
  const newMessage = createMessageFactory(schema);
  /** Fields by tag. Only tags of one byte are plain. */
  const fields: (FastField | undefined)[] = [];
  for (const field of schema.fields) {
    const wire = getFastPathWireType(field);
    if (wire === undefined || field.number >= 16) continue;
    const { message, localName: name } = field;
    if (message !== undefined && (message === schema || ancestors.includes(message))) continue;
    const readItem = message && createMessageReader(message, [...ancestors, schema]);
    fields[(field.number << 3) | wire] = { name, isList: field.fieldKind === "list", readItem };
  }
  return (bytes, start, end) => {
    const message = newMessage() as Message & Record<string, unknown>;
    let offset = start;
    while (offset < end) {
      const tag = bytes[offset++] ?? 0;
      const field = fields[tag];
      if (field === undefined) return undefined;
      if ((tag & 7) === WIRE_TYPE_FIXED64) {
        if (offset + 8 > end) return undefined;
        message[field.name] = bytes.readDoubleLE(offset);
        offset += 8;
      } else {
        const size = offset < end ? (bytes[offset++] ?? 0x80) : 0x80;
        // Only lengths of one byte are plain.
        if (size > 0x7f || offset + size > end) return undefined;
        const value =
          field.readItem === undefined ? readAscii(bytes, offset, size) : field.readItem(bytes, offset, offset + size);
        if (value === undefined) return undefined;
        if (field.isList) (message[field.name] as unknown[]).push(value);
        else message[field.name] = value;
        offset += size;
      }
    }
    return message;
  };
}

/** Returns undefined if a character is not ASCII. */
function readAscii(bytes: Buffer, start: number, size: number): string | undefined {
  for (let i = start; i < start + size; i++) if ((bytes[i] ?? 0x80) > 0x7f) return undefined;
  return bytes.toString("latin1", start, start + size);
}

function getFastPathWireType(field: DescField): number | undefined {
  if (field.fieldKind === "list") {
    const isRead = field.listKind === "message" ? !field.delimitedEncoding : field.scalar === ScalarType.STRING;
    return isRead ? WIRE_TYPE_LENGTH_DELIMITED : undefined;
  }
  if (field.fieldKind !== "scalar" || field.oneof !== undefined) return undefined;
  if (field.scalar === ScalarType.STRING) return WIRE_TYPE_LENGTH_DELIMITED;
  return field.scalar === ScalarType.DOUBLE ? WIRE_TYPE_FIXED64 : undefined;
}
