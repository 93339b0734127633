import { type DescField, type DescMessage, type Message, ScalarType, toBinary } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { getZero, MAX_SAFE_BIGINT, type MessageFields, memoizeFrozen, readMember } from "./messages.js";

const INITIAL_BUFFER_BYTES = 256;
/** Largest size of a tag with a varint of 53 bits. */
const MAX_TAGGED_NUMBER_BYTES = 16;
/** Up to here a loop copies ASCII faster than a call of the runtime; the length takes one byte. */
const MAX_SHORT_TEXT_LENGTH = 64;

/** Writes a message after `headroom` unused bytes. Throws if the message does not serialise. */
export type BinaryWriter = (message: Message, headroom: number) => Buffer;

/** Writes a field. Returns false for a value that only the library writes or rejects. */
type WriteField = (out: GrowableBuffer, value: unknown) => boolean;

const WIRE_TYPE_VARINT = 0;
const WIRE_TYPE_FIXED64 = 1;
const WIRE_TYPE_LENGTH_DELIMITED = 2;

/**
 * Creates a writer for one message type. Its results equal those of the library's `toBinary`, which writes what is not
 * plain.
 */
export function createBinaryWriter(schema: DescMessage): BinaryWriter {
  const write = createMessageWriter(schema, []);
  return (message, headroom) => {
    if (write !== undefined) {
      const out = new GrowableBuffer(headroom);
      if (write(out, message as unknown as MessageFields)) return out.toBuffer();
    }
    const bytes = toBinary(schema, message);
    const result = Buffer.allocUnsafe(headroom + bytes.length);
    result.set(bytes, headroom);
    return result;
  };
}

type WriteMessage = (out: GrowableBuffer, fields: MessageFields) => boolean;

/** Returns undefined if the type has a field that only the library writes. */
function createMessageWriter(schema: DescMessage, ancestors: readonly DescMessage[]): WriteMessage | undefined {
  if (ancestors.includes(schema)) return undefined;
  const members: Member[] = [];
  for (const field of [...schema.fields].sort((a, b) => a.number - b.number)) {
    const write = createFieldWriter(field, [...ancestors, schema]);
    if (write === undefined || field.number >= 2 ** 28) return undefined;
    members.push({ name: field.localName, oneof: field.oneof?.localName, write });
  }
  const hasOneof = members.some(({ oneof }) => oneof !== undefined);
  return (out, fields) => {
    if (fields.$unknown !== undefined) return false;
    for (const member of members) {
      if (!member.write(out, hasOneof ? readMember(fields, member) : fields[member.name])) return false;
    }
    return true;
  };
}

interface Member {
  readonly name: string;
  /** Name of the oneof that the field belongs to. */
  readonly oneof: string | undefined;
  readonly write: WriteField;
}

function createFieldWriter(field: DescField, ancestors: readonly DescMessage[]): WriteField | undefined {
  if (field.fieldKind === "list") {
    if (field.listKind === "scalar" && field.scalar === ScalarType.STRING) {
      const write = createStringWriter(field.number);
      return (out, value) => Array.isArray(value) && value.every((item) => write(out, item));
    }
    if (field.listKind !== "message" || field.delimitedEncoding) return undefined;
    const write = createNestedWriter(field.number, field.message, ancestors);
    return write && ((out, value) => Array.isArray(value) && value.every((item) => write(out, item)));
  }
  if (field.fieldKind === "message" && !field.delimitedEncoding) {
    const write = createNestedWriter(field.number, field.message, ancestors);
    return write && ((out, value) => value === undefined || write(out, value));
  }
  if (field.fieldKind !== "enum" && field.fieldKind !== "scalar") return undefined;
  const write = createSingularWriter(field);
  if (write === undefined) return undefined;
  if (field.presence === FeatureSet_FieldPresence.IMPLICIT) {
    const zero = getZero(field);
    // A double of -0 is written.
    if (field.scalar === ScalarType.DOUBLE) return (out, value) => Object.is(value, zero) || write(out, value);
    return (out, value) => value === zero || write(out, value);
  }
  // Written even if it has its default value.
  if (field.presence !== FeatureSet_FieldPresence.EXPLICIT) return undefined;
  return (out, value) => value === undefined || write(out, value);
}

/** Creates a writer that writes defaults too. */
function createSingularWriter({ number, scalar }: DescField): WriteField | undefined {
  switch (scalar) {
    case ScalarType.STRING:
      return createStringWriter(number);
    case ScalarType.DOUBLE: {
      const tag = encodeTag(number, WIRE_TYPE_FIXED64);
      return (out, value) => {
        if (typeof value !== "number") return false;
        out.writeDoubleField(tag, value);
        return true;
      };
    }
    case ScalarType.BOOL: {
      const tag = encodeTag(number, WIRE_TYPE_VARINT);
      return (out, value) => {
        if (typeof value !== "boolean") return false;
        out.writeVarintField(tag, value ? 1 : 0);
        return true;
      };
    }
    // An enum.
    case undefined:
    case ScalarType.UINT32:
      return createVarintWriter(number, false);
    case ScalarType.INT64:
    case ScalarType.UINT64:
      return createVarintWriter(number, true);
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
    if (isLong) {
      if (typeof value !== "bigint" || value < 0n || value > MAX_SAFE_BIGINT) return false;
      out.writeVarintField(tag, Number(value));
    } else {
      // Enums are signed: the fast path writes the positive half of the range.
      if (typeof value !== "number" || !(value >= 0 && value < 2 ** 31) || !Number.isInteger(value)) return false;
      out.writeVarintField(tag, value);
    }
    return true;
  };
}

function createNestedWriter(
  number: number,
  schema: DescMessage,
  ancestors: readonly DescMessage[],
): WriteField | undefined {
  const write = createMessageWriter(schema, ancestors);
  if (write === undefined) return undefined;
  const tag = encodeTag(number, WIRE_TYPE_LENGTH_DELIMITED);
  /** Size of the length of the last message: the next is often as long. */
  let lengthBytes = 1;
  // A frozen one is part of many messages: streams of the same state differ only in what is around it.
  const encodeFrozen = memoizeFrozen((message) => {
    const out = new GrowableBuffer(0);
    return write(out, message as unknown as MessageFields) ? out.toBuffer() : undefined;
  });
  return (out, value) => {
    if (typeof value !== "object" || value === null) return false;
    if (Object.isFrozen(value)) {
      const bytes = encodeFrozen(value as Message);
      if (bytes !== undefined) out.writeBytesField(tag, bytes);
      return bytes !== undefined;
    }
    const start = out.beginNested(tag, lengthBytes);
    if (!write(out, value as MessageFields)) return false;
    lengthBytes = out.endNested(start, lengthBytes);
    return true;
  };
}

function encodeTag(number: number, wire: number): number {
  return number * 8 + wire;
}

/** A buffer of Protobuf's wire format that grows. A class because its methods are hot. */
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
    if (value.length <= MAX_SHORT_TEXT_LENGTH && this.writeShortAscii(value)) return;
    const size = Buffer.byteLength(value);
    this.writeVarint(size);
    if (size === value.length) this.offset += this.buffer.write(value, this.offset, "latin1");
    else this.offset += this.buffer.write(value, this.offset);
  }

  writeBytesField(tag: number, bytes: Uint8Array): void {
    this.ensureCapacity(MAX_TAGGED_NUMBER_BYTES + bytes.length);
    this.writeVarint(tag);
    this.writeVarint(bytes.length);
    this.buffer.set(bytes, this.offset);
    this.offset += bytes.length;
  }

  /** Leaves room for the length of a nested message, and returns where its content starts. */
  beginNested(tag: number, lengthBytes: number): number {
    this.ensureCapacity(MAX_TAGGED_NUMBER_BYTES);
    this.writeVarint(tag);
    this.offset += lengthBytes;
    return this.offset;
  }

  /** Writes the length of a nested message in front of its content, and returns the size of the length. */
  endNested(start: number, lengthBytes: number): number {
    const size = this.offset - start;
    let needed = 1;
    for (let rest = size; rest > 0x7f; rest = Math.floor(rest / 0x80)) needed += 1;
    if (needed !== lengthBytes) {
      this.ensureCapacity(MAX_TAGGED_NUMBER_BYTES);
      this.buffer.copyWithin(start - lengthBytes + needed, start, this.offset);
    }
    this.offset = start - lengthBytes;
    this.writeVarint(size);
    this.offset += size;
    return needed;
  }

  /** Returns false, and has written nothing, if a character is not ASCII. */
  private writeShortAscii(value: string): boolean {
    const { buffer, offset } = this;
    const { length } = value;
    for (let index = 0; index < length; index++) {
      const code = value.charCodeAt(index);
      if (code > 0x7f) return false;
      buffer[offset + 1 + index] = code;
    }
    buffer[offset] = length;
    this.offset = offset + 1 + length;
    return true;
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
