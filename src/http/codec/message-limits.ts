import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { ServiceError } from "../../errors.js";
import { createTooManyItemsError, MAX_LISTED_MESSAGES } from "../../operations/parameters.js";
import { JsonScanner } from "../../resilience/http-client/json-size.js";

// What a request may hold, whatever reads it: a few bytes of gzip are 32,000 empty messages, each of which would be an object.

/** Most fields of a request, those of its parts included; in JSON also its lists and their values. */
export const MAX_REQUEST_MEMBERS = 2_000;

/** Most messages, groups, lists and objects inside each other. */
export const MAX_REQUEST_DEPTH = 16;

/** @throws ServiceError INVALID_PARAMETER for a message that holds too much. Anything else is for its reader to find. */
export function assertBinaryLimits(schema: DescMessage, bytes: Uint8Array): void {
  try {
    new BinaryScan(bytes).scanMessage(schema, bytes.length, 1);
  } catch (error) {
    if (error instanceof ServiceError) throw error;
  }
}

/** The same for JSON in UTF-8. */
export function assertJsonLimits(schema: DescMessage, bytes: Uint8Array): void {
  const lists = new Map<string, number>();
  for (const field of schema.fields) {
    if (!isMessageList(field)) continue;
    lists.set(field.jsonName, MAX_LISTED_MESSAGES).set(field.name, MAX_LISTED_MESSAGES);
  }
  const limits = { depth: MAX_REQUEST_DEPTH, members: MAX_REQUEST_MEMBERS, lists };
  const excess = new JsonScanner(limits).scan(bytes);
  if (excess === undefined) return;
  throw excess.kind === "list" ? createTooManyItemsError(excess.name, excess.max) : createExcessError(excess.kind);
}

/** One pass over a binary message that skips its values. Reads tags and lengths as the library does. */
class BinaryScan {
  readonly #reader: BinaryReader;
  #members = 0;

  constructor(bytes: Uint8Array) {
    this.#reader = new BinaryReader(bytes);
  }

  /** @param schema undefined for what has no fields with messages */
  scanMessage(schema: DescMessage | undefined, end: number, depth: number): void {
    const reader = this.#reader;
    if (depth > MAX_REQUEST_DEPTH) throw createExcessError("depth");
    const counts = new Map<DescField, number>();
    while (reader.pos < end) {
      const [number, wireType] = reader.tag();
      if (wireType === WireType.EndGroup) return;
      this.#members += 1;
      if (this.#members > MAX_REQUEST_MEMBERS) throw createExcessError("members");
      const field = schema?.fields.find((candidate) => candidate.number === number && isNested(candidate));
      if (field !== undefined && isMessageList(field)) {
        const count = (counts.get(field) ?? 0) + 1;
        if (count > MAX_LISTED_MESSAGES) throw createTooManyItemsError(field.jsonName, MAX_LISTED_MESSAGES);
        counts.set(field, count);
      }
      if (wireType === WireType.StartGroup) this.scanMessage(field?.message, end, depth + 1);
      else if (wireType === WireType.LengthDelimited && field !== undefined) {
        const length = reader.uint32();
        this.scanMessage(field.message, reader.pos + length, depth + 1);
      } else reader.skip(wireType, number);
    }
  }
}

function isNested({ fieldKind, message }: DescField): boolean {
  return fieldKind === "map" || message !== undefined;
}

function isMessageList(field: DescField): boolean {
  return field.fieldKind === "list" && field.listKind === "message";
}

function createExcessError(kind: "depth" | "members"): ServiceError {
  const problem =
    kind === "depth"
      ? `is nested deeper than ${MAX_REQUEST_DEPTH} levels`
      : `has more than ${MAX_REQUEST_MEMBERS} members`;
  return new ServiceError("INVALID_PARAMETER", `the request ${problem}`);
}
