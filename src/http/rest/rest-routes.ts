import { hash } from "node:crypto";
import type { Message } from "@bufbuild/protobuf";
import { createRestJsonPrinter } from "../codec/json-printer.js";
import { memoizeFrozen } from "../codec/messages.js";
import {
  type CallOutcome,
  getOperation,
  getStreamOperation,
  invokeOperation,
  type MountedService,
} from "../request/mounted-service.js";
import {
  createGetHandler,
  type HttpExchange,
  type HttpRoute,
  MIN_SHARED_BODY_BYTES,
  type PathHandler,
  sendError,
} from "../request/response.js";
import { type GetRoute, readGetRoutes } from "./annotations.js";
import { createEventStreamHandler, type EventStreamOptions } from "./event-stream.js";
import { createQueryBinder } from "./query-binder.js";
import { type JsonBody, sendJson } from "./send-json.js";

/** Creates the routes, by path, of the methods that google.api.http serves under GET. */
export function createRestRoutes(
  services: readonly MountedService[],
  options: EventStreamOptions,
): Map<string, HttpRoute> {
  const routes = new Map<string, HttpRoute>();
  for (const mounted of services) {
    for (const route of readGetRoutes(mounted.service)) {
      const { path, method } = route;
      if (routes.has(path)) throw new Error(`two methods share GET ${path}`);
      const isStream = method.methodKind === "server_streaming";
      routes.set(path, {
        operation: `${method.parent.typeName}/${method.name}`,
        isRpc: false,
        isRateLimited: true,
        isStream,
        handle: isStream
          ? createEventStreamHandler(method, getStreamOperation(mounted, method.localName), options)
          : createUnaryHandler(mounted, route, options.fastPath),
        reject: sendError,
      });
    }
  }
  return routes;
}

/** @param fastPath whether plain queries are bound without the general binder, and ordinary responses sent in one write */
function createUnaryHandler(
  mounted: MountedService,
  { method, responseBody }: GetRoute,
  fastPath: boolean,
): PathHandler {
  const operation = getOperation(mounted, method.localName);
  const bind = createQueryBinder(method.input, { fastPath });
  const print = createRestJsonPrinter(method.output, responseBody);
  const write = memoizeFrozen((message, isMemoized) =>
    toJsonBody(print(message), !Object.isExtensible(message), isMemoized),
  );
  return createGetHandler((exchange, query) => {
    const call = new RestCall(exchange, write, fastPath);
    let request: Message;
    try {
      request = bind(query);
    } catch (error) {
      call.fail(error);
      return;
    }
    invokeOperation(operation, request, { context: exchange.context, timeoutMs: undefined }, call);
  });
}

class RestCall implements CallOutcome {
  constructor(
    private readonly exchange: HttpExchange,
    private readonly write: (message: Message) => JsonBody,
    private readonly fastPath: boolean,
  ) {}

  succeed(message: Message): void {
    let body: JsonBody;
    try {
      body = this.write(message);
    } catch (error) {
      this.fail(error);
      return;
    }
    sendJson(this.exchange, body, this.fastPath);
  }

  fail(error: unknown): void {
    sendError(this.exchange, this.exchange.context.recordFailure(error));
  }
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
