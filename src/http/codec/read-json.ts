import { type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { UNESCAPED_JSON_TEXT } from "./json-text.js";
import { createMessageFactory } from "./message-factory.js";

/**
 * Reads a plain message: one object of strings without escapes, numbers, and lists of such strings and of plain messages,
 * each field once. Returns undefined for any other input, valid or not, which the library then reads or rejects.
 */
export type FastPathJsonReader = (text: string) => Message | undefined;

const NUMBER_PATTERN = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;
const UINT32_PATTERN = /^(?:0|[1-9][0-9]{0,8})$/;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

interface JsonField {
  readonly name: string;
  readonly bit: number;
  readonly isList: boolean;
  readonly read: ReadValue;
}

/** Where a reader stands in a text. */
interface Cursor {
  readonly text: string;
  offset: number;
}

/** Reads a value and moves the cursor behind it. Returns undefined for one that is not plain. */
type ReadValue = (cursor: Cursor) => unknown;

/** Creates a reader for one message type. Its results equal those of the library's `fromJsonString`. */
export function createFastPathJsonReader(schema: DescMessage): FastPathJsonReader {
  const read = createMessageReader(schema, []);
  return (text) => {
    const cursor = { text, offset: skipWhitespace(text, 0) };
    const message = read(cursor);
    return skipWhitespace(text, cursor.offset) === text.length ? message : undefined;
  };
}

function createMessageReader(
  schema: DescMessage,
  ancestors: readonly DescMessage[],
): (cursor: Cursor) => Message | undefined {
  const newMessage = createMessageFactory(schema);
  const members = new Map<string, JsonField>();
  schema.fields.forEach((field, index) => {
    const read = createValueReader(field, [...ancestors, schema]);
    // Bit operations work on 31 bits.
    if (index > 30 || read === undefined) return;
    const member = { name: field.localName, bit: 2 ** index, isList: field.fieldKind === "list", read };
    members.set(field.name, member).set(field.jsonName, member);
  });

  return (cursor) => {
    const { text } = cursor;
    const message = newMessage() as Message & Record<string, unknown>;
    let presentFields = 0;
    if (text.charCodeAt(cursor.offset) !== OPEN_BRACE) return undefined;
    let offset = skipWhitespace(text, cursor.offset + 1);
    if (text.charCodeAt(offset) === CLOSE_BRACE) {
      cursor.offset = offset + 1;
      return message;
    }
    for (;;) {
      if (text.charCodeAt(offset) !== QUOTE) return undefined;
      const nameEnd = text.indexOf('"', offset + 1);
      if (nameEnd === -1) return undefined;
      const member = members.get(text.slice(offset + 1, nameEnd));
      if (member === undefined || (presentFields & member.bit) !== 0) return undefined;
      presentFields |= member.bit;
      offset = skipWhitespace(text, nameEnd + 1);
      if (text.charCodeAt(offset) !== COLON) return undefined;
      cursor.offset = skipWhitespace(text, offset + 1);
      const value = member.isList ? readList(cursor, member.read) : member.read(cursor);
      if (value === undefined) return undefined;
      message[member.name] = value;
      offset = skipWhitespace(text, cursor.offset);
      const next = text.charCodeAt(offset);
      if (next === CLOSE_BRACE) {
        cursor.offset = offset + 1;
        return message;
      }
      if (next !== COMMA) return undefined;
      offset = skipWhitespace(text, offset + 1);
    }
  };
}

function createValueReader(field: DescField, ancestors: readonly DescMessage[]): ReadValue | undefined {
  if (field.fieldKind === "list" && field.listKind === "message") {
    return ancestors.includes(field.message) || field.message.typeName.startsWith("google.protobuf.")
      ? undefined
      : createMessageReader(field.message, ancestors);
  }
  if (field.oneof !== undefined) return undefined;
  if (field.fieldKind === "list") return field.scalar === ScalarType.STRING ? readText : undefined;
  if (field.fieldKind !== "scalar") return undefined;
  if (field.scalar === ScalarType.STRING) return readText;
  if (field.scalar === ScalarType.UINT32) return (cursor) => readNumber(cursor, UINT32_PATTERN);
  return field.scalar === ScalarType.DOUBLE ? (cursor) => readNumber(cursor, NUMBER_PATTERN) : undefined;
}

function readText(cursor: Cursor): string | undefined {
  const { text, offset } = cursor;
  if (text.charCodeAt(offset) !== QUOTE) return undefined;
  const end = text.indexOf('"', offset + 1);
  if (end === -1) return undefined;
  cursor.offset = end + 1;
  const value = text.slice(offset + 1, end);
  return UNESCAPED_JSON_TEXT.test(value) ? value : undefined;
}

function readNumber(cursor: Cursor, pattern: RegExp): number | undefined {
  const end = findNumberEnd(cursor.text, cursor.offset);
  const digits = cursor.text.slice(cursor.offset, end);
  cursor.offset = end;
  const value = Number(digits);
  return pattern.test(digits) && Number.isFinite(value) ? value : undefined;
}

function readList(cursor: Cursor, read: ReadValue): unknown[] | undefined {
  const { text } = cursor;
  if (text.charCodeAt(cursor.offset) !== OPEN_BRACKET) return undefined;
  const items: unknown[] = [];
  cursor.offset = skipWhitespace(text, cursor.offset + 1);
  if (text.charCodeAt(cursor.offset) === CLOSE_BRACKET) {
    cursor.offset += 1;
    return items;
  }
  for (;;) {
    const item = read(cursor);
    if (item === undefined) return undefined;
    items.push(item);
    const offset = skipWhitespace(text, cursor.offset);
    const next = text.charCodeAt(offset);
    cursor.offset = next === CLOSE_BRACKET ? offset + 1 : skipWhitespace(text, offset + 1);
    if (next === CLOSE_BRACKET) return items;
    if (next !== COMMA) return undefined;
  }
}

function skipWhitespace(text: string, from: number): number {
  let offset = from;
  for (;;) {
    const code = text.charCodeAt(offset);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return offset;
    offset += 1;
  }
}

/** Returns the end of the characters that numbers consist of. */
function findNumberEnd(text: string, from: number): number {
  let offset = from;
  for (;;) {
    const code = text.charCodeAt(offset);
    const isDigit = code >= 0x30 && code <= 0x39;
    // Plus, minus, dot, E and e.
    if (!isDigit && code !== 0x2b && code !== 0x2d && code !== 0x2e && code !== 0x45 && code !== 0x65) return offset;
    offset += 1;
  }
}
