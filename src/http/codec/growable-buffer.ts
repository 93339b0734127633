const INITIAL_BUFFER_BYTES = 256;
/** Largest size of a tag with a varint of 53 bits. */
const MAX_TAGGED_NUMBER_BYTES = 16;
/** Up to here a loop copies ASCII faster than a call of the runtime; the length takes one byte. */
const MAX_SHORT_TEXT_LENGTH = 64;

/** A buffer of Protobuf's wire format that grows. A class because its methods are hot. */
export class GrowableBuffer {
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
