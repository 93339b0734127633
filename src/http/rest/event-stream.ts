import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { StreamQuota } from "../admission/stream-quota.js";
import { NO_STORE_HEADERS } from "../request/cache-headers.js";
import { toErrorBody } from "../request/error-mapping.js";
import type { AnyStreamOperation } from "../request/mounted-service.js";
import {
  buildCommonHeaders,
  createGetHandler,
  type HeaderList,
  type HttpExchange,
  type PathHandler,
  releaseSentHead,
  sendError,
  writeHead,
} from "../request/response.js";
import { admitStream } from "../stream/admit-stream.js";
import { writeFlushedChunk } from "../stream/flushed-chunk.js";
import type { StreamOutcome, StreamTransport } from "../stream/stream-transport.js";
import type { StreamingCalls } from "../stream/streaming-calls.js";
import { createEventPrinter, type EventPrinter, printEnd, printFailure, printRetry } from "./event-printer.js";
import { readEventStreamFields } from "./event-stream-fields.js";
import { createQueryBinder } from "./query-binder.js";

export interface EventStreamOptions {
  readonly calls: StreamingCalls;
  readonly quota: StreamQuota;
  /** Whether plain queries are bound without the general binder. */
  readonly fastPath: boolean;
  /** Returns a number from 0 up to 1. Default: Math.random */
  readonly random?: () => number;
}

const LAST_EVENT_ID_HEADER = "Last-Event-ID";

/** nginx buffers responses unless the last of these headers tells it not to. */
const EVENT_STREAM_HEADERS: HeaderList = [
  ...["content-type", "text/event-stream"],
  ...NO_STORE_HEADERS,
  ...["x-accel-buffering", "no"],
];

/**
 * Creates the handler that serves a server-streaming method under GET as Server-Sent Events (WHATWG HTML, 9.2). Errors
 * before the first message are those of any GET; a stream that is complete without one is 204, which ends the reconnects
 * of EventSource.
 */
export function createEventStreamHandler(
  method: DescMethod,
  operation: AnyStreamOperation,
  { calls, quota, fastPath, random = Math.random }: EventStreamOptions,
): PathHandler {
  const fields = readEventStreamFields(method);
  const bind = createQueryBinder(method.input, { fastPath, maxListItems: fields.maxListItems });
  const printer = createEventPrinter(fields);
  const lastEventIdName = fields.lastEventId.localName;

  function parse({ req }: HttpExchange, query: string): Message {
    const request = bind(query);
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
        admitStream(exchange, quota);
      } catch (error) {
        sendError(exchange, context.recordFailure(error));
        return;
      }
      const transport = new EventStreamTransport(exchange, printer, random);
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
      const error = context.recordFailure(outcome.error);
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
