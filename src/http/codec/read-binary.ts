import { type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { MAX_LISTED_MESSAGES } from "../../operations/parameters.js";
import { MAX_REQUEST_MEMBERS } from "./message-limits.js";
import { createMessageFactory } from "./messages.js";

/**
 * Reads a plain message: ASCII strings, doubles, uint32, and lists of strings and of plain messages, each with its
 * declared wire type. Returns undefined for any other input, valid or not, which the library then reads or rejects, and
 * as soon as there is more than a request may hold.
 */
export type FastPathBinaryReader = (bytes: Buffer) => Message | undefined;

type Fields = Message & Record<string, unknown>;
/** @param left how many members the request may still have */
type ReadMessage = (bytes: Buffer, start: number, end: number, left: { members: number }) => Message | undefined;

interface BinaryField {
  readonly name: string;
  readonly isList: boolean;
  /** Reads the messages of a list; undefined: strings. */
  readonly readItem: ReadMessage | undefined;
}

const WIRE_TYPE_VARINT = 0;
const WIRE_TYPE_FIXED64 = 1;
const WIRE_TYPE_LENGTH_DELIMITED = 2;
/** A uint32 of more bytes than this is not plain: it may be any 64-bit number. */
const MAX_VARINT_BYTES = 4;

/** Creates a reader for one message type. Its results equal those of the library's `fromBinary`. */
export function createFastPathBinaryReader(schema: DescMessage): FastPathBinaryReader {
  const read = createMessageReader(schema, []);
  return (bytes) => read(bytes, 0, bytes.length, { members: MAX_REQUEST_MEMBERS });
}

function createMessageReader(schema: DescMessage, ancestors: readonly DescMessage[]): ReadMessage {
  const newMessage = createMessageFactory(schema);
  /** Fields by tag. Only tags of one byte are plain. */
  const fields: (BinaryField | undefined)[] = [];
  for (const field of schema.fields) {
    const wire = getFastPathWireType(field, [...ancestors, schema]);
    if (wire === undefined || field.number >= 16) continue;
    const readItem = field.message && createMessageReader(field.message, [...ancestors, schema]);
    fields[(field.number << 3) | wire] = { name: field.localName, isList: field.fieldKind === "list", readItem };
  }
  return (bytes, start, end, left) => {
    const message = newMessage() as Fields;
    let offset = start;
    while (offset < end) {
      const tag = bytes[offset++] ?? 0;
      const field = fields[tag];
      if (field === undefined || left.members === 0) return undefined;
      left.members -= 1;
      const wire = tag & 7;
      if (wire === WIRE_TYPE_FIXED64) {
        if (offset + 8 > end) return undefined;
        message[field.name] = bytes.readDoubleLE(offset);
        offset += 8;
        continue;
      }
      // A number, or the length of a string or message.
      let value = 0;
      let byte = 0x80;
      for (let size = 0; byte > 0x7f; size++) {
        if (size === MAX_VARINT_BYTES || offset === end) return undefined;
        byte = bytes[offset++] ?? 0x80;
        value |= (byte & 0x7f) << (7 * size);
      }
      if (wire === WIRE_TYPE_VARINT) {
        message[field.name] = value;
        continue;
      }
      if (offset + value > end) return undefined;
      const { name, isList, readItem } = field;
      const list = isList ? (message[name] as unknown[]) : undefined;
      if (readItem !== undefined && list?.length === MAX_LISTED_MESSAGES) return undefined;
      const content =
        readItem === undefined
          ? readText(bytes, offset, offset + value)
          : readItem(bytes, offset, offset + value, left);
      if (content === undefined) return undefined;
      if (list === undefined) message[name] = content;
      else list.push(content);
      offset += value;
    }
    return message;
  };
}

/** Reads an ASCII text. */
function readText(bytes: Buffer, start: number, end: number): string | undefined {
  for (let i = start; i < end; i++) if ((bytes[i] ?? 0x80) > 0x7f) return undefined;
  return bytes.toString("latin1", start, end);
}

function getFastPathWireType(field: DescField, ancestors: readonly DescMessage[]): number | undefined {
  if (field.fieldKind === "list") {
    const isPlainList =
      field.listKind === "message"
        ? !field.delimitedEncoding && !ancestors.includes(field.message)
        : field.scalar === ScalarType.STRING;
    return isPlainList ? WIRE_TYPE_LENGTH_DELIMITED : undefined;
  }
  if (field.fieldKind !== "scalar" || field.oneof !== undefined) return undefined;
  if (field.scalar === ScalarType.STRING) return WIRE_TYPE_LENGTH_DELIMITED;
  if (field.scalar === ScalarType.UINT32) return WIRE_TYPE_VARINT;
  return field.scalar === ScalarType.DOUBLE ? WIRE_TYPE_FIXED64 : undefined;
}
