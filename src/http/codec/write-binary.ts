import { type DescField, type DescMessage, type Message, ScalarType, toBinary } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { MAX_SAFE_BIGINT, UINT32_LIMIT } from "./integer-limits.js";

/** Writes a message after `headroom` unused bytes. Throws if the message does not serialise. */
export type BinaryWriter = (message: Message, headroom: number) => Buffer;

type Fields = Readonly<Record<string, unknown>>;
/** Writes a field. Returns false for a value that only the library writes or rejects. */
type WriteField = (out: GrowableBuffer, value: unknown) => boolean;

const INITIAL_BUFFER_BYTES = 256;
const WIRE_TYPE_VARINT = 0;
const WIRE_TYPE_FIXED64 = 1;
const WIRE_TYPE_LENGTH_DELIMITED = 2;
/** Largest size of a tag with a varint of 53 bits. */
const MAX_TAGGED_NUMBER_BYTES = 16;

/**
 * Creates a writer for one message type. Its results equal those of the library's `toBinary`, which writes what is not
 * plain.
 */
export function createBinaryWriter(schema: DescMessage): BinaryWriter {
  const write = createMessageWriter(schema, []);
  return (message, headroom) => {
    if (write !== undefined) {
      const out = new GrowableBuffer(headroom);
      if (write(out, message as unknown as Fields)) return out.toBuffer();
    }
    const bytes = toBinary(schema, message);
    const result = Buffer.allocUnsafe(headroom + bytes.length);
    result.set(bytes, headroom);
    return result;
  };
}

type WriteMessage = (out: GrowableBuffer, fields: Fields) => boolean;

/** Returns undefined if the type has a field that only the library writes. */
function createMessageWriter(schema: DescMessage, ancestors: readonly DescMessage[]): WriteMessage | undefined {
  if (ancestors.includes(schema)) return undefined;
  const members: { readonly name: string; readonly write: WriteField }[] = [];
  for (const field of [...schema.fields].sort((a, b) => a.number - b.number)) {
    const write = createFieldWriter(field, [...ancestors, schema]);
    if (write === undefined || field.number >= 2 ** 28) return undefined;
    members.push({ name: field.localName, write });
  }
  return (out, fields) => {
    if (fields.$unknown !== undefined) return false;
    for (const { name, write } of members) if (!write(out, fields[name])) return false;
    return true;
  };
}

function createFieldWriter(field: DescField, ancestors: readonly DescMessage[]): WriteField | undefined {
  if (field.oneof !== undefined) return undefined;
  if (field.fieldKind === "list") {
    if (field.listKind === "scalar" && field.scalar === ScalarType.STRING) {
      const write = createStringWriter(field.number);
      return (out, value) => Array.isArray(value) && value.every((item) => write(out, item));
    }
    if (field.listKind === "message" && !field.delimitedEncoding) {
      const nested = createMessageWriter(field.message, ancestors);
      if (nested === undefined) return undefined;
      const tag = encodeTag(field.number, WIRE_TYPE_LENGTH_DELIMITED);
      return (out, value) => Array.isArray(value) && value.every((item) => writeNestedMessage(out, tag, nested, item));
    }
    return undefined;
  }
  if (field.fieldKind === "message" && !field.delimitedEncoding) {
    const nested = createMessageWriter(field.message, ancestors);
    if (nested === undefined) return undefined;
    const tag = encodeTag(field.number, WIRE_TYPE_LENGTH_DELIMITED);
    return (out, value) => value === undefined || writeNestedMessage(out, tag, nested, value);
  }
  // A scalar with explicit presence is written even if it has its default value.
  if (field.presence !== FeatureSet_FieldPresence.IMPLICIT) return undefined;
  if (field.fieldKind === "enum") return createVarintWriter(field.number, false);
  if (field.fieldKind !== "scalar") return undefined;
  switch (field.scalar) {
    case ScalarType.STRING: {
      const write = createStringWriter(field.number);
      return (out, value) => value === "" || write(out, value);
    }
    case ScalarType.DOUBLE: {
      const tag = encodeTag(field.number, WIRE_TYPE_FIXED64);
      return (out, value) => {
        if (typeof value !== "number") return false;
        if (!Object.is(value, 0)) out.writeDoubleField(tag, value);
        return true;
      };
    }
    case ScalarType.BOOL: {
      const tag = encodeTag(field.number, WIRE_TYPE_VARINT);
      return (out, value) => {
        if (value === true) out.writeVarintField(tag, 1);
        return typeof value === "boolean";
      };
    }
    case ScalarType.UINT32:
      return createVarintWriter(field.number, false);
    case ScalarType.INT64:
    case ScalarType.UINT64:
      return createVarintWriter(field.number, true);
    default:
      return undefined;
  }
}

function createStringWriter(number: number): WriteField {
  const tag = encodeTag(number, WIRE_TYPE_LENGTH_DELIMITED);
  return (out, value) => {
    if (typeof value !== "string") return false;
    out.writeStringField(tag, value);
    return true;
  };
}

function createVarintWriter(number: number, isLong: boolean): WriteField {
  const tag = encodeTag(number, WIRE_TYPE_VARINT);
  return (out, value) => {
    if (value === 0 || value === 0n) return typeof value === (isLong ? "bigint" : "number");
    if (isLong) {
      if (typeof value !== "bigint" || value < 0n || value > MAX_SAFE_BIGINT) return false;
      out.writeVarintField(tag, Number(value));
    } else {
      // Enums are signed: the fast path writes the positive half of the range.
      if (typeof value !== "number" || !(value > 0 && value < UINT32_LIMIT / 2) || !Number.isInteger(value))
        return false;
      out.writeVarintField(tag, value);
    }
    return true;
  };
}

function writeNestedMessage(out: GrowableBuffer, tag: number, write: WriteMessage, value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const nested = new GrowableBuffer(0);
  if (!write(nested, value as Fields)) return false;
  out.writeBytesField(tag, nested.toBuffer());
  return true;
}

function encodeTag(number: number, wire: number): number {
  return number * 8 + wire;
}

/** A byte buffer that grows. A class because its methods are hot. */
class GrowableBuffer {
  private buffer = Buffer.allocUnsafe(INITIAL_BUFFER_BYTES);
  private offset: number;

  constructor(headroom: number) {
    this.offset = headroom;
  }

  toBuffer(): Buffer {
    return this.buffer.subarray(0, this.offset);
  }

  writeVarintField(tag: number, value: number): void {
    this.ensureCapacity(MAX_TAGGED_NUMBER_BYTES);
    this.writeVarint(tag);
    this.writeVarint(value);
  }

  writeDoubleField(tag: number, value: number): void {
    this.ensureCapacity(MAX_TAGGED_NUMBER_BYTES);
    this.writeVarint(tag);
    this.offset = this.buffer.writeDoubleLE(value, this.offset);
  }

  writeStringField(tag: number, value: string): void {
    // A UTF-16 code unit takes at most three bytes.
    this.ensureCapacity(MAX_TAGGED_NUMBER_BYTES + value.length * 3);
    this.writeVarint(tag);
    const size = Buffer.byteLength(value);
    this.writeVarint(size);
    if (size === value.length) this.offset += this.buffer.write(value, this.offset, "latin1");
    else this.offset += this.buffer.write(value, this.offset);
  }

  writeBytesField(tag: number, value: Buffer): void {
    this.ensureCapacity(MAX_TAGGED_NUMBER_BYTES + value.length);
    this.writeVarint(tag);
    this.writeVarint(value.length);
    this.buffer.set(value, this.offset);
    this.offset += value.length;
  }

  private writeVarint(value: number): void {
    let remaining = value;
    while (remaining > 0x7f) {
      this.buffer[this.offset++] = (remaining % 0x80) | 0x80;
      remaining = Math.floor(remaining / 0x80);
    }
    this.buffer[this.offset++] = remaining;
  }

  private ensureCapacity(bytes: number): void {
    if (this.offset + bytes <= this.buffer.length) return;
    const larger = Buffer.allocUnsafe((this.offset + bytes) * 2);
    larger.set(this.buffer.subarray(0, this.offset));
    this.buffer = larger;
  }
}
