import type { Message } from "@bufbuild/protobuf";
import type { EventStreamFields } from "./event-stream-fields.js";
import { createRestJsonPrinter, type RestJsonPrinter } from "./json-printer.js";

/** Prints the messages of one stream as Server-Sent Events, and remembers the last id. */
export interface EventPrinter {
  /** Throws for a message without an event, or with an id that the format cannot hold. */
  print(message: Message): string;
  /** Prints the event that completes a stream, with the last id. */
  printEnd(): string;
}

/** What an id may hold: visible ASCII. Line ends would end the field, and a NUL would make it void. */
const ID_PATTERN = /^[\x21-\x7e]*$/;

/** The earliest and the latest time at which a client that lost its stream comes back. */
const MIN_RETRY_MS = 1000;
const MAX_RETRY_MS = 5000;

/** Creates printers for the streams of one method: of the messages, each member's JSON stands on one line. */
export function createEventPrinterFactory({ id, oneofName, members }: EventStreamFields): () => EventPrinter {
  const printers = new Map<string, { readonly start: string; readonly print: RestJsonPrinter }>();
  for (const { localName, jsonName, message } of members) {
    if (message === undefined) continue;
    printers.set(localName, { start: `event: ${jsonName}\n`, print: createRestJsonPrinter(message) });
  }
  return () => {
    let lastId = "";
    const printId = (): string => (lastId === "" ? "" : `id: ${lastId}\n`);
    return {
      print(message) {
        const fields = message as unknown as Readonly<Record<string, unknown>>;
        const event = fields[oneofName] as { readonly case?: string; readonly value?: Message };
        const printer = printers.get(event.case ?? "");
        if (printer === undefined || event.value === undefined) throw new Error("a message of a stream has no event");
        const token = fields[id.localName] as string;
        if (!ID_PATTERN.test(token)) throw new Error("the id of an event is not visible ASCII");
        if (token !== "") lastId = token;
        return `${printer.start}${printId()}data: ${printer.print(event.value)}\n\n`;
      },
      printEnd: () => `event: end\n${printId()}data: {}\n\n`,
    };
  };
}

/** Prints a failure after the first event. Not as `error`, which is EventSource's own. */
export function printFailure(errorBody: string): string {
  return `event: failure\ndata: ${errorBody}\n\n`;
}

/** Prints when to come back. With jitter: when a server stops, the clients of all its streams come back. */
export function printRetry(random: () => number): string {
  return `retry: ${Math.round(MIN_RETRY_MS + random() * (MAX_RETRY_MS - MIN_RETRY_MS))}\n\n`;
}
