import { Buffer } from "node:buffer";
import { hash } from "node:crypto";
import type { Message } from "@bufbuild/protobuf";
import { isPromise, type MaybePromise } from "../../resilience/maybe-async.js";
import { memoizeFrozen } from "../codec/memoize-frozen.js";
import {
  type AnyOperation,
  getOperation,
  getStreamOperation,
  type MountedService,
} from "../request/mounted-service.js";
import {
  createGetHandler,
  type HttpExchange,
  type HttpRoute,
  type PathHandler,
  sendError,
} from "../request/response.js";
import { MIN_SHARED_BODY_BYTES } from "../request/shared-body.js";
import { createEventStreamHandler, type EventStreamOptions } from "./event-stream.js";
import { type GetRoute, readGetRoutes } from "./get-routes.js";
import { createRestJsonPrinter } from "./json-printer.js";
import { createQueryBinder, type QueryBinder } from "./query-binder.js";
import { type JsonBody, sendJson } from "./send-json.js";

export interface RestRoutesOptions extends EventStreamOptions {
  /** Whether plain queries are bound without the general binder, and ordinary responses sent in one write. */
  readonly fastPath: boolean;
}

/** Creates the routes, by path, of the methods that google.api.http serves under GET. */
export function createRestRoutes(
  services: readonly MountedService[],
  options: RestRoutesOptions,
): Map<string, HttpRoute> {
  const routes = new Map<string, HttpRoute>();
  for (const mounted of services) {
    for (const route of readGetRoutes(mounted.service)) {
      const { path, method } = route;
      if (routes.has(path)) throw new Error(`two methods share GET ${path}`);
      routes.set(path, {
        operation: `${method.parent.typeName}/${method.name}`,
        isRpc: false,
        isRateLimited: true,
        handle: createHandler(mounted, route, options),
        reject: sendError,
      });
    }
  }
  return routes;
}

function createHandler(
  mounted: MountedService,
  { method, responseBody }: GetRoute,
  options: RestRoutesOptions,
): PathHandler {
  const { fastPath } = options;
  if (method.methodKind === "server_streaming") {
    return createEventStreamHandler(method, getStreamOperation(mounted, method.localName), options);
  }
  const bind = createQueryBinder(method.input, { fastPath });
  const print = createRestJsonPrinter(method.output, responseBody);
  const write = memoizeFrozen((message, isMemoized) =>
    toJsonBody(print(message), !Object.isExtensible(message), isMemoized),
  );
  return createRestHandler(getOperation(mounted, method.localName), bind, write, fastPath);
}

/** @param hasValidator whether callers can ask again with the hash of the text */
function toJsonBody(text: string, hasValidator: boolean, isMemoized: boolean): JsonBody {
  const byteLength = Buffer.byteLength(text);
  if (!hasValidator) return { text, byteLength, etag: undefined };
  const etag = `"${hash("sha256", text, "base64url")}"`;
  // Only texts that are sent repeatedly are encoded, and short ones are faster to send as part of the headers.
  const isEncoded = isMemoized && byteLength >= MIN_SHARED_BODY_BYTES;
  return { text, byteLength, etag, bytes: isEncoded ? Buffer.from(text) : undefined };
}

function createRestHandler(
  operation: AnyOperation,
  bind: QueryBinder,
  write: (message: Message) => JsonBody,
  fastPath: boolean,
): PathHandler {
  function succeed(exchange: HttpExchange, message: Message): void {
    let body: JsonBody;
    try {
      body = write(message);
    } catch (error) {
      fail(exchange, error);
      return;
    }
    sendJson(exchange, body, fastPath);
  }
  function fail(exchange: HttpExchange, error: unknown): void {
    sendError(exchange, exchange.context.recordFailure(error));
  }
  return createGetHandler((exchange, query) => {
    let result: MaybePromise<Message>;
    try {
      result = operation(bind(query) as never, exchange.context.toCallContext(undefined));
    } catch (error) {
      fail(exchange, error);
      return;
    }
    if (isPromise(result)) {
      result.then(
        (message) => succeed(exchange, message),
        (error: unknown) => fail(exchange, error),
      );
    } else succeed(exchange, result);
  });
}
