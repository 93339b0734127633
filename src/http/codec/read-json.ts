import { type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { createMessageFactory } from "./message-factory.js";
import { UNESCAPED_JSON_TEXT } from "./unescaped-json-text.js";

/**
 * Reads a plain message: one flat object of strings that need no escape and numbers for doubles, each field once.
 * Undefined for any other, right or wrong, which the library then reads or refuses.
 */
export type FastPathJsonReader = (text: string) => Message | undefined;

const NUMBER_PATTERN = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

interface JsonField {
  readonly name: string;
  readonly bit: number;
  readonly isText: boolean;
}

/** A reader for one type of message, equal to the library's `fromJsonString` in all that it reads. */
export function createFastPathJsonReader(schema: DescMessage): FastPathJsonReader {
  const newMessage = createMessageFactory(schema);
  const members = new Map<string, JsonField>();
  schema.fields.forEach((field, index) => {
    // There are no more bits for a number to hold.
    if (index > 30 || !isFastPathField(field)) return;
    const member = { name: field.localName, bit: 2 ** index, isText: field.scalar === ScalarType.STRING };
    members.set(field.name, member).set(field.jsonName, member);
  });

  return (text) => {
    const message = newMessage() as Message & Record<string, unknown>;
    let given = 0;
    let at = skipWhitespace(text, 0);
    if (text.charCodeAt(at) !== OPEN_BRACE) return undefined;
    at = skipWhitespace(text, at + 1);
    if (text.charCodeAt(at) === CLOSE_BRACE) return skipWhitespace(text, at + 1) === text.length ? message : undefined;
    for (;;) {
      if (text.charCodeAt(at) !== QUOTE) return undefined;
      const nameEnd = text.indexOf('"', at + 1);
      if (nameEnd === -1) return undefined;
      const member = members.get(text.slice(at + 1, nameEnd));
      if (member === undefined || (given & member.bit) !== 0) return undefined;
      given |= member.bit;
      at = skipWhitespace(text, nameEnd + 1);
      if (text.charCodeAt(at) !== COLON) return undefined;
      at = skipWhitespace(text, at + 1);
      if (member.isText) {
        if (text.charCodeAt(at) !== QUOTE) return undefined;
        const end = text.indexOf('"', at + 1);
        if (end === -1) return undefined;
        const value = text.slice(at + 1, end);
        if (!UNESCAPED_JSON_TEXT.test(value)) return undefined;
        message[member.name] = value;
        at = end + 1;
      } else {
        const end = findNumberEnd(text, at);
        const digits = text.slice(at, end);
        const value = Number(digits);
        if (!NUMBER_PATTERN.test(digits) || !Number.isFinite(value)) return undefined;
        message[member.name] = value;
        at = end;
      }
      at = skipWhitespace(text, at);
      const next = text.charCodeAt(at);
      at = skipWhitespace(text, at + 1);
      if (next === CLOSE_BRACE) return at === text.length ? message : undefined;
      if (next !== COMMA) return undefined;
    }
  };
}

function isFastPathField(field: DescField): boolean {
  const isScalar = field.fieldKind === "scalar" && field.oneof === undefined;
  return isScalar && (field.scalar === ScalarType.STRING || field.scalar === ScalarType.DOUBLE);
}

function skipWhitespace(text: string, from: number): number {
  let at = from;
  for (;;) {
    const code = text.charCodeAt(at);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return at;
    at += 1;
  }
}

/** Where the characters end of which numbers are made. */
function findNumberEnd(text: string, from: number): number {
  let at = from;
  for (;;) {
    const code = text.charCodeAt(at);
    const isDigit = code >= 0x30 && code <= 0x39;
    // Plus, minus, dot, E and e.
    if (!isDigit && code !== 0x2b && code !== 0x2d && code !== 0x2e && code !== 0x45 && code !== 0x65) return at;
    at += 1;
  }
}
