import { type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { createMessageFactory } from "./message-factory.js";

/**
 * Reads a plain message: singular ASCII strings and doubles, each with its declared wire type. Returns undefined for
 * any other input, valid or not, which the library then reads or rejects.
 */
export type FastPathBinaryReader = (bytes: Buffer) => Message | undefined;

const WIRE_TYPE_FIXED64 = 1;
const WIRE_TYPE_LENGTH_DELIMITED = 2;

/** Creates a reader for one message type. Its results equal those of the library's `fromBinary`. */
export function createFastPathBinaryReader(schema: DescMessage): FastPathBinaryReader {
  const newMessage = createMessageFactory(schema);
  /** Field names by tag. Only tags of one byte are plain. */
  const names: (string | undefined)[] = [];
  for (const field of schema.fields) {
    const wire = getFastPathWireType(field);
    if (wire !== undefined && field.number < 16) names[(field.number << 3) | wire] = field.localName;
  }
  return (bytes) => {
    const message = newMessage() as Message & Record<string, unknown>;
    const end = bytes.length;
    let offset = 0;
    while (offset < end) {
      const tag = bytes[offset++] ?? 0;
      const name = names[tag];
      if (name === undefined) return undefined;
      if ((tag & 7) === WIRE_TYPE_FIXED64) {
        if (offset + 8 > end) return undefined;
        message[name] = bytes.readDoubleLE(offset);
        offset += 8;
      } else {
        const size = bytes[offset++] ?? 0x80;
        // Only lengths of one byte are plain.
        if (size > 0x7f || offset + size > end) return undefined;
        for (let i = offset; i < offset + size; i++) if ((bytes[i] ?? 0x80) > 0x7f) return undefined;
        message[name] = bytes.toString("latin1", offset, offset + size);
        offset += size;
      }
    }
    return message;
  };
}

function getFastPathWireType(field: DescField): number | undefined {
  if (field.fieldKind !== "scalar" || field.oneof !== undefined) return undefined;
  if (field.scalar === ScalarType.STRING) return WIRE_TYPE_LENGTH_DELIMITED;
  return field.scalar === ScalarType.DOUBLE ? WIRE_TYPE_FIXED64 : undefined;
}
