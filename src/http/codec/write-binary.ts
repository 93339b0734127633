import { type DescField, type DescMessage, type Message, ScalarType, toBinary } from "@bufbuild/protobuf";

/** Writes a message behind so many bytes left free in front. Throws where the message does not serialise. */
export type BinaryWriter = (message: Message, free: number) => Buffer;

type Fields = Readonly<Record<string, unknown>>;
/** Writes a field that is set. False where the value is none for a plain hand: the library then writes or refuses all. */
type WriteField = (out: Output, value: unknown) => boolean;

/** How a field without a presence of its own is described. */
const IMPLICIT = 2;
const START_SIZE = 256;
const WIRE_VARINT = 0;
const WIRE_DOUBLE = 1;
const WIRE_LENGTH = 2;
/** Longest form of a number that fits 53 bits, with its tag. */
const LONGEST_NUMBER = 16;
const UINT32_LIMIT = 2 ** 32;
const LARGEST = BigInt(Number.MAX_SAFE_INTEGER);

/** A writer for one type of message, equal to the library's `toBinary`, which it calls for all that is not plain. */
export function createBinaryWriter(schema: DescMessage): BinaryWriter {
  const write = messageWriter(schema, []);
  return (message, free) => {
    if (write !== undefined) {
      const out = new Output(free);
      if (write(out, message as unknown as Fields)) return out.done();
    }
    const bytes = toBinary(schema, message);
    const whole = Buffer.allocUnsafe(free + bytes.length);
    whole.set(bytes, free);
    return whole;
  };
}

type WriteMessage = (out: Output, fields: Fields) => boolean;

/** Undefined where the type has a field that only the library writes. */
function messageWriter(schema: DescMessage, within: readonly DescMessage[]): WriteMessage | undefined {
  if (within.includes(schema)) return undefined;
  const members: { readonly name: string; readonly write: WriteField }[] = [];
  for (const field of [...schema.fields].sort((a, b) => a.number - b.number)) {
    const write = fieldWriter(field, [...within, schema]);
    if (write === undefined || field.number >= 2 ** 28) return undefined;
    members.push({ name: field.localName, write });
  }
  return (out, fields) => {
    if (fields.$unknown !== undefined) return false;
    for (const { name, write } of members) if (!write(out, fields[name])) return false;
    return true;
  };
}

function fieldWriter(field: DescField, within: readonly DescMessage[]): WriteField | undefined {
  if (field.oneof !== undefined) return undefined;
  if (field.fieldKind === "list") {
    if (field.listKind === "scalar" && field.scalar === ScalarType.STRING) {
      const write = textWriter(field.number);
      return (out, value) => Array.isArray(value) && value.every((each) => write(out, each));
    }
    if (field.listKind === "message" && !field.delimitedEncoding) {
      const inner = messageWriter(field.message, within);
      if (inner === undefined) return undefined;
      const tag = tagOf(field.number, WIRE_LENGTH);
      return (out, value) => Array.isArray(value) && value.every((each) => writeInner(out, tag, inner, each));
    }
    return undefined;
  }
  // What is set to its default is written where the type tells it from what is not set.
  if (field.presence !== IMPLICIT) return undefined;
  if (field.fieldKind === "enum") return numberWriter(field.number, false);
  if (field.fieldKind !== "scalar") return undefined;
  switch (field.scalar) {
    case ScalarType.STRING: {
      const write = textWriter(field.number);
      return (out, value) => value === "" || write(out, value);
    }
    case ScalarType.DOUBLE: {
      const tag = tagOf(field.number, WIRE_DOUBLE);
      return (out, value) => {
        if (typeof value !== "number") return false;
        if (!Object.is(value, 0)) out.double(tag, value);
        return true;
      };
    }
    case ScalarType.BOOL: {
      const tag = tagOf(field.number, WIRE_VARINT);
      return (out, value) => {
        if (value === true) out.number(tag, 1);
        return typeof value === "boolean";
      };
    }
    case ScalarType.UINT32:
      return numberWriter(field.number, false);
    case ScalarType.INT64:
    case ScalarType.UINT64:
      return numberWriter(field.number, true);
    default:
      return undefined;
  }
}

function textWriter(number: number): WriteField {
  const tag = tagOf(number, WIRE_LENGTH);
  return (out, value) => {
    if (typeof value !== "string") return false;
    out.text(tag, value);
    return true;
  };
}

function numberWriter(number: number, isLong: boolean): WriteField {
  const tag = tagOf(number, WIRE_VARINT);
  return (out, value) => {
    if (value === 0 || value === 0n) return typeof value === (isLong ? "bigint" : "number");
    if (isLong) {
      if (typeof value !== "bigint" || value < 0n || value > LARGEST) return false;
      out.number(tag, Number(value));
    } else {
      // Enums are signed: half the range is enough for those that exist, and the library has the rest.
      if (typeof value !== "number" || !(value > 0 && value < UINT32_LIMIT / 2) || !Number.isInteger(value))
        return false;
      out.number(tag, value);
    }
    return true;
  };
}

function writeInner(out: Output, tag: number, write: WriteMessage, value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const inner = new Output(0);
  if (!write(inner, value as Fields)) return false;
  out.bytes(tag, inner.done());
  return true;
}

function tagOf(number: number, wire: number): number {
  return number * 8 + wire;
}

/** Bytes that grow. */
class Output {
  private buffer = Buffer.allocUnsafe(START_SIZE);
  private at: number;

  constructor(free: number) {
    this.at = free;
  }

  done(): Buffer {
    return this.buffer.subarray(0, this.at);
  }

  number(tag: number, value: number): void {
    this.need(LONGEST_NUMBER);
    this.varint(tag);
    this.varint(value);
  }

  double(tag: number, value: number): void {
    this.need(LONGEST_NUMBER);
    this.varint(tag);
    this.at = this.buffer.writeDoubleLE(value, this.at);
  }

  text(tag: number, value: string): void {
    // A character takes three bytes at most, for each of its two halves where it has two.
    this.need(LONGEST_NUMBER + value.length * 3);
    this.varint(tag);
    const size = Buffer.byteLength(value);
    this.varint(size);
    if (size === value.length) this.at += this.buffer.write(value, this.at, "latin1");
    else this.at += this.buffer.write(value, this.at);
  }

  bytes(tag: number, value: Buffer): void {
    this.need(LONGEST_NUMBER + value.length);
    this.varint(tag);
    this.varint(value.length);
    this.buffer.set(value, this.at);
    this.at += value.length;
  }

  private varint(value: number): void {
    let left = value;
    while (left > 0x7f) {
      this.buffer[this.at++] = (left % 0x80) | 0x80;
      left = Math.floor(left / 0x80);
    }
    this.buffer[this.at++] = left;
  }

  private need(bytes: number): void {
    if (this.at + bytes <= this.buffer.length) return;
    const larger = Buffer.allocUnsafe((this.at + bytes) * 2);
    larger.set(this.buffer.subarray(0, this.at));
    this.buffer = larger;
  }
}
