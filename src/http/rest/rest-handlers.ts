import { createHash } from "node:crypto";
import type { Message } from "@bufbuild/protobuf";
import { memoizeFrozen } from "../codec/memoize-frozen.js";
import { type AnyOperation, getOperation, type MountedService } from "../request/mounted-service.js";
import type { RateLimitMiddleware } from "../request/rate-limiter.js";
import {
  createGetHandler,
  type HttpExchange,
  type JsonBody,
  type PathHandler,
  sendError,
  sendJson,
} from "../request/response.js";
import { readGetRoutes } from "./get-routes.js";
import { createRestJsonPrinter } from "./json-printer.js";
import { createQueryBinder, type QueryBinder } from "./query-binder.js";

/** Handlers, by path, for the methods that google.api.http puts under GET. */
export function createRestHandlers(
  services: readonly MountedService[],
  limit: RateLimitMiddleware,
): Map<string, PathHandler> {
  const handlers = new Map<string, PathHandler>();
  for (const mounted of services) {
    for (const { path, method, responseBody } of readGetRoutes(mounted.service)) {
      if (handlers.has(path)) throw new Error(`two methods want GET ${path}`);
      const operation = getOperation(mounted, method.localName);
      const bind = createQueryBinder(method.input);
      const print = createRestJsonPrinter(method.output, responseBody);
      const write = memoizeFrozen((message, isKept) => toJsonBody(print(message), isKept));
      const name = `${method.parent.typeName}/${method.name}`;
      handlers.set(path, limit(createRestHandler(name, operation, bind, write), name, sendError));
    }
  }
  return handlers;
}

/** Only a text that is given again and again is worth a validator. */
function toJsonBody(text: string, isKept: boolean): JsonBody {
  const etag = isKept ? `"${createHash("sha256").update(text).digest("base64url")}"` : undefined;
  return { text, byteLength: Buffer.byteLength(text), etag };
}

function createRestHandler(
  name: string,
  operation: AnyOperation,
  bind: QueryBinder,
  write: (message: Message) => JsonBody,
): PathHandler {
  function succeed(exchange: HttpExchange, answer: Message): void {
    let body: JsonBody;
    try {
      body = write(answer);
    } catch (error) {
      fail(exchange, error);
      return;
    }
    sendJson(exchange, body);
  }
  function fail(exchange: HttpExchange, error: unknown): void {
    sendError(exchange, exchange.context.recordFailure(error));
  }
  function get(exchange: HttpExchange, query: string): void {
    let answer: Message | Promise<Message>;
    try {
      answer = operation(bind(query) as never, exchange.context.toCallContext(undefined));
    } catch (error) {
      fail(exchange, error);
      return;
    }
    if (answer instanceof Promise) {
      answer.then(
        (message) => succeed(exchange, message),
        (error: unknown) => fail(exchange, error),
      );
    } else succeed(exchange, answer);
  }
  const handler = createGetHandler(get);
  return (exchange, query) => {
    exchange.context.operation = name;
    handler(exchange, query);
  };
}
