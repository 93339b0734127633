import type { DescMethod, Message } from "@bufbuild/protobuf";
import { ServiceError } from "../../errors.js";
import { createRestJsonPrinter, type JsonPrinter } from "../codec/json-printer.js";
import { type MessageFields, memoizeFrozen } from "../codec/messages.js";
import { toErrorBody } from "../request/error-mapping.js";
import type { AnyStreamOperation } from "../request/mounted-service.js";
import {
  createGetHandler,
  type HttpExchange,
  type PathHandler,
  releaseSentHead,
  sendError,
  writeHead,
} from "../request/response.js";
import { buildCommonHeaders, NO_STORE_HEADERS, toHeaderList } from "../request/response-headers.js";
import { writeFlushedChunk } from "../stream/flushed-chunk.js";
import type { StreamPlaces } from "../stream/stream-places.js";
import type { StreamingCalls, StreamOutcome, StreamTransport } from "../stream/streaming-calls.js";
import { type EventStreamFields, readEventStreamFields } from "./annotations.js";
import { createQueryParser } from "./query-parser.js";

export interface EventStreamOptions {
  readonly calls: StreamingCalls;
  readonly places: StreamPlaces;
  /** Whether plain queries are parsed without the general parser, and ordinary responses sent in one write. */
  readonly fastPath: boolean;
  /** Returns a number from 0 up to 1. Default: Math.random */
  readonly random?: () => number;
}

const LAST_EVENT_ID_HEADER = "Last-Event-ID";

/** nginx buffers responses unless the last of these headers tells it not to. */
const EVENT_STREAM_HEADERS = toHeaderList({
  "content-type": "text/event-stream",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
});

/**
 * Creates the handler that serves a server-streaming method under GET as Server-Sent Events (WHATWG HTML, 9.2). Errors
 * before the first message are those of any GET; a stream that is complete without one is 204, which ends the reconnects
 * of EventSource.
 */
export function createEventStreamHandler(
  method: DescMethod,
  operation: AnyStreamOperation,
  { calls, places, fastPath, random = Math.random }: EventStreamOptions,
): PathHandler {
  const fields = readEventStreamFields(method);
  const parseQuery = createQueryParser(method.input, { fastPath, maxListItems: fields.maxListItems });
  const printer = new EventPrinter(fields);
  const lastEventIdName = fields.lastEventId.localName;

  function parse({ req }: HttpExchange, query: string): Message {
    const request = parseQuery(query);
    const lastEventId = req.headers["last-event-id"];
    if (typeof lastEventId === "string" && lastEventId !== "")
      Object.assign(request, { [lastEventIdName]: lastEventId });
    return request;
  }

  return createGetHandler(
    (exchange, query) => {
      const { req, res, context } = exchange;
      let request: Message;
      try {
        request = parse(exchange, query);
        if (req.method === "HEAD") {
          context.code = "ok";
          writeEventStreamHead(exchange);
          res.end();
          return;
        }
        places.admit(exchange);
      } catch (error) {
        sendError(exchange, context.recordFailure(error));
        return;
      }
      const transport = new EventStreamTransport(exchange, printer, fields.lastEventId.jsonName, random);
      calls.open({ context, operation, request, transport, remainingMs: undefined });
    },
    [LAST_EVENT_ID_HEADER],
  );
}

/** Sends the messages of one stream. A class because there are thousands: its methods are shared. */
class EventStreamTransport implements StreamTransport {
  private lastId = "";

  constructor(
    private readonly exchange: HttpExchange,
    private readonly printer: EventPrinter,
    /** Name of the parameter that Last-Event-ID sets. */
    private readonly lastEventIdField: string,
    private readonly random: () => number,
  ) {}

  write(message: Message, onFlushed: () => void): number {
    const { exchange, printer } = this;
    const id = printer.getId(message) || this.lastId;
    const event = printer.print(message, id);
    this.lastId = id;
    const text = this.start() + event;
    writeFlushedChunk(exchange.res, text, onFlushed);
    releaseSentHead(exchange.res);
    return Buffer.byteLength(text);
  }

  finish(outcome: StreamOutcome): void {
    const { exchange, lastId } = this;
    const { res, context } = exchange;
    if (outcome.kind === "failed") {
      const error = context.recordFailure(this.nameHeader(outcome.error));
      if (res.headersSent) endWith(exchange, printFailure(toErrorBody(error)));
      else sendError(exchange, error);
      return;
    }
    context.code = "ok";
    // An empty response would be one that EventSource does not repeat.
    if (outcome.kind === "interrupted") endWith(exchange, this.start());
    else if (res.headersSent) endWith(exchange, printEnd(lastId));
    else {
      writeHead(res, 204, [...buildCommonHeaders(context), ...NO_STORE_HEADERS]);
      res.end();
    }
  }

  /** Names the header in a refusal of its value: the caller has not sent the parameter, EventSource has sent the header. */
  private nameHeader(error: unknown): unknown {
    const { lastEventIdField: field, exchange } = this;
    const isFromHeader = Boolean(exchange.req.headers["last-event-id"]);
    if (!isFromHeader || !(error instanceof ServiceError) || error.field !== field) return error;
    return new ServiceError(error.reason, `${LAST_EVENT_ID_HEADER}: ${error.message}`, { field, cause: error });
  }

  /** Writes the head of the response if it is not written yet. Returns what comes before the first event. */
  private start(): string {
    if (this.exchange.res.headersSent) return "";
    writeEventStreamHead(this.exchange);
    return printRetry(this.random);
  }
}

function writeEventStreamHead({ res, context }: HttpExchange): void {
  writeHead(res, 200, [...buildCommonHeaders(context), ...EVENT_STREAM_HEADERS, ...context.buildResponseHeaders()]);
}

function endWith({ res }: HttpExchange, text: string): void {
  if (text === "") res.end();
  else res.end(text);
}

/** What an id may hold: visible ASCII. Line ends would end the field, and a NUL would make it void. */
const ID_PATTERN = /^[\x21-\x7e]*$/;

/** The earliest and the latest time at which a client that lost its stream comes back. */
const MIN_RETRY_MS = 1000;
const MAX_RETRY_MS = 5000;

/** Prints the messages of a method as Server-Sent Events. */
class EventPrinter {
  readonly #fields: EventStreamFields;
  /** By member. A frozen message, which is sent to all who watch the same, is printed once. */
  readonly #printers = new Map<string | undefined, { readonly start: string; readonly print: JsonPrinter }>();

  constructor(fields: EventStreamFields) {
    this.#fields = fields;
    for (const { localName, jsonName, message } of fields.members) {
      if (message === undefined) continue;
      this.#printers.set(localName, {
        start: `event: ${jsonName}\n`,
        print: memoizeFrozen(createRestJsonPrinter(message)),
      });
    }
  }

  /** Returns the id of a message; empty: it has none. Throws for one that the format cannot hold. */
  getId(message: Message): string {
    const text = readField(message, this.#fields.id.localName) as string;
    if (!ID_PATTERN.test(text)) throw new Error("the id of an event is not visible ASCII");
    return text;
  }

  /**
   * Prints a message, with its member's JSON on one line. Throws for a message without an event.
   * @param id of the event: its own, or the last one of the stream
   */
  print(message: Message, id: string): string {
    const event = readField(message, this.#fields.oneofName) as { readonly case?: string; readonly value?: Message };
    const printer = this.#printers.get(event.case);
    if (printer === undefined || event.value === undefined) throw new Error("a message of a stream has no event");
    return `${printer.start}${printId(id)}data: ${printer.print(event.value)}\n\n`;
  }
}

function readField(message: Message, name: string): unknown {
  return (message as unknown as MessageFields)[name];
}

/** Prints the event that completes a stream, with the last id. */
function printEnd(lastId: string): string {
  return `event: end\n${printId(lastId)}data: {}\n\n`;
}

function printId(id: string): string {
  return id === "" ? "" : `id: ${id}\n`;
}

/** Prints a failure after the first event. Not as `error`, which is EventSource's own. */
function printFailure(errorBody: string): string {
  return `event: failure\ndata: ${errorBody}\n\n`;
}

/** Prints when to come back. With jitter: when a server stops, the clients of all its streams come back. */
function printRetry(random: () => number): string {
  return `retry: ${Math.round(MIN_RETRY_MS + random() * (MAX_RETRY_MS - MIN_RETRY_MS))}\n\n`;
}
