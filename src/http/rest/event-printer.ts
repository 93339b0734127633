import type { Message } from "@bufbuild/protobuf";
import type { EventStreamFields } from "./event-stream-fields.js";
import { createRestJsonPrinter, type RestJsonPrinter } from "./json-printer.js";

/** Prints the messages of a method as Server-Sent Events. */
export interface EventPrinter {
  /** Returns the id of a message; empty: it has none. Throws for one that the format cannot hold. */
  getId(message: Message): string;
  /**
   * Prints a message, with its member's JSON on one line. Throws for a message without an event.
   * @param id of the event: its own, or the last one of the stream
   */
  print(message: Message, id: string): string;
}

/** What an id may hold: visible ASCII. Line ends would end the field, and a NUL would make it void. */
const ID_PATTERN = /^[\x21-\x7e]*$/;

/** The earliest and the latest time at which a client that lost its stream comes back. */
const MIN_RETRY_MS = 1000;
const MAX_RETRY_MS = 5000;

export function createEventPrinter({ id, oneofName, members }: EventStreamFields): EventPrinter {
  const printers = new Map<string, { readonly start: string; readonly print: RestJsonPrinter }>();
  for (const { localName, jsonName, message } of members) {
    if (message === undefined) continue;
    printers.set(localName, { start: `event: ${jsonName}\n`, print: createRestJsonPrinter(message) });
  }
  const read = (message: Message, name: string) => (message as unknown as Readonly<Record<string, unknown>>)[name];
  return {
    getId(message) {
      const text = read(message, id.localName) as string;
      if (!ID_PATTERN.test(text)) throw new Error("the id of an event is not visible ASCII");
      return text;
    },
    print(message, eventId) {
      const event = read(message, oneofName) as { readonly case?: string; readonly value?: Message };
      const printer = printers.get(event.case ?? "");
      if (printer === undefined || event.value === undefined) throw new Error("a message of a stream has no event");
      return `${printer.start}${printId(eventId)}data: ${printer.print(event.value)}\n\n`;
    },
  };
}

/** Prints the event that completes a stream, with the last id. */
export function printEnd(lastId: string): string {
  return `event: end\n${printId(lastId)}data: {}\n\n`;
}

function printId(id: string): string {
  return id === "" ? "" : `id: ${id}\n`;
}

/** Prints a failure after the first event. Not as `error`, which is EventSource's own. */
export function printFailure(errorBody: string): string {
  return `event: failure\ndata: ${errorBody}\n\n`;
}

/** Prints when to come back. With jitter: when a server stops, the clients of all its streams come back. */
export function printRetry(random: () => number): string {
  return `retry: ${Math.round(MIN_RETRY_MS + random() * (MAX_RETRY_MS - MIN_RETRY_MS))}\n\n`;
}
