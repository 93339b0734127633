import { createHash } from "node:crypto";
import type { Message } from "@bufbuild/protobuf";
import { ServiceError } from "../../errors.js";
import { keptForFrozen } from "../codec/memoize-frozen.js";
import { type AnyOperation, type MountedService, operationOf } from "../request/mounted-service.js";
import type { LimitHandler } from "../request/rate-limiter.js";
import {
  answerError,
  answerJson,
  answerOptions,
  type Exchange,
  type JsonBody,
  type PathHandler,
} from "../request/response.js";
import { readGetRoutes } from "./get-routes.js";
import { createPrinter } from "./json-printer.js";
import { createQueryBinder, type QueryBinder } from "./query-binder.js";

const METHODS = "GET, HEAD, OPTIONS";

/** Handlers, by path, for the methods that google.api.http puts under GET. */
export function createRestHandlers(services: readonly MountedService[], limit: LimitHandler): Map<string, PathHandler> {
  const handlers = new Map<string, PathHandler>();
  for (const mounted of services) {
    for (const { path, method, responseBody } of readGetRoutes(mounted.service)) {
      if (handlers.has(path)) throw new Error(`two methods want GET ${path}`);
      const operation = operationOf(mounted, method.localName);
      const bind = createQueryBinder(method.input);
      const print = createPrinter(method.output, responseBody);
      const write = keptForFrozen((message, isKept) => toBody(print(message), isKept));
      const name = `${method.parent.typeName}/${method.name}`;
      handlers.set(path, limit(createHandler(name, operation, bind, write), name, answerError));
    }
  }
  return handlers;
}

/** Only a text that is given again and again is worth a validator. */
function toBody(text: string, isKept: boolean): JsonBody {
  const etag = isKept ? `"${createHash("sha256").update(text).digest("base64url")}"` : undefined;
  return { text, size: Buffer.byteLength(text), etag };
}

function createHandler(
  name: string,
  operation: AnyOperation,
  bind: QueryBinder,
  write: (message: Message) => JsonBody,
): PathHandler {
  function succeed(exchange: Exchange, answer: Message): void {
    let body: JsonBody;
    try {
      body = write(answer);
    } catch (error) {
      fail(exchange, error);
      return;
    }
    answerJson(exchange, body);
  }
  function fail(exchange: Exchange, error: unknown): void {
    answerError(exchange, exchange.call.fail(error));
  }
  function get(exchange: Exchange, query: string): void {
    let answer: Message | Promise<Message>;
    try {
      answer = operation(bind(query) as never, exchange.call.context(undefined));
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
  return (exchange, query) => {
    const { req, call } = exchange;
    call.operation = name;
    if (req.method === "GET" || req.method === "HEAD") get(exchange, query);
    else if (req.method === "OPTIONS") answerOptions(exchange, METHODS);
    else {
      const error = new ServiceError("METHOD_NOT_ALLOWED", `the method must be one of ${METHODS}`);
      answerError(exchange, error, { headers: ["allow", METHODS] });
    }
  };
}
