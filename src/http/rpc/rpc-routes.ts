import type { DescMethod, DescMethodServerStreaming, DescMethodUnary, Message } from "@bufbuild/protobuf";
import { type ConnectRouter, createConnectRouter, type HandlerContext, type Interceptor } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { Health } from "../../../gen/grpc/health/v1/health_pb.js";
import { ServerReflection } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import type { OverloadManager } from "../admission/overload-manager.js";
import { COMPRESS_MIN_BYTES, gzipCompression } from "../codec/gzip.js";
import type { HttpLimits } from "../connection/http-limits.js";
import { toMalformedRequestError } from "../request/error-mapping.js";
import {
  type AnyOperation,
  getOperation,
  getStreamOperation,
  type MountedService,
  mountService,
} from "../request/mounted-service.js";
import type { HttpRoute, PathHandler } from "../request/response.js";
import type { StreamPlaces } from "../stream/stream-places.js";
import type { StreamingCalls } from "../stream/streaming-calls.js";
import { ConnectAdapter, getRequestContext, hasStartedKey } from "./connect-adapter.js";
import { createConnectFastPath } from "./connect-fast-path.js";
import {
  createHealthService,
  createReflectionHandler,
  type ReflectionCall,
  serveReflectionStream,
} from "./grpc-services.js";
import { mapConnectError, sendRpcError } from "./rpc-errors.js";
import { createStreamFastPath, type StreamMethod } from "./stream-fast-path.js";
import { UnaryMethod } from "./unary-method.js";

/** What the routes of all services share. */
export interface RpcRoutesOptions {
  readonly limits: HttpLimits;
  readonly draining: AbortSignal;
  readonly calls: StreamingCalls;
  /** Places of streams. Those of Connect's adapter, `generalPath`, take four times the memory. */
  readonly places: Readonly<Record<"operations" | "health" | "generalPath", StreamPlaces>>;
  readonly overload: OverloadManager;
  /** Whether fast paths serve plain requests in front of Connect's adapter. */
  readonly fastPaths: boolean;
}

/**
 * Creates the routes of services over gRPC, gRPC-Web and Connect, with gRPC health checking and reflection.
 * @returns also the unary methods by path, which the gRPC fast path serves before there is a request
 */
export function createRpcRoutes(services: readonly MountedService[], options: RpcRoutesOptions) {
  const { draining, places } = options;
  const descriptors = [...services.map(({ service }) => service), Health, ServerReflection, ServerReflectionAlpha];
  const serviceNames = descriptors.map(({ typeName }) => typeName);
  const builder = new RpcRoutesBuilder(options);
  for (const mounted of services) builder.addService(mounted, places.operations, true);
  // A health check that exceeds a rate limit would report a healthy server as failing.
  builder.addService(mountService(Health, createHealthService(serviceNames, draining)), places.health, false);
  builder.addReflection(
    descriptors.map(({ file }) => file),
    serviceNames,
  );
  return builder.build();
}

class RpcRoutesBuilder {
  readonly #options: RpcRoutesOptions;
  readonly #connect: ConnectRouter;
  readonly #grpc: ConnectRouter;
  readonly #unaryMethods = new Map<string, UnaryMethod>();
  readonly #streamMethods = new Map<string, StreamMethod>();
  readonly #rateLimitedPaths = new Set<string>();

  constructor(options: RpcRoutesOptions) {
    this.#options = options;
    const common = {
      readMaxBytes: options.limits.requestBytes,
      writeMaxBytes: options.limits.responseBytes,
      acceptCompression: [gzipCompression],
      compressMinBytes: COMPRESS_MIN_BYTES,
      interceptors: [errorMappingInterceptor],
    };
    this.#connect = createConnectRouter({ ...common, grpc: false, grpcWeb: false });
    this.#grpc = createConnectRouter({ ...common, connect: false });
  }

  /** @param places of its streams on the fast path */
  addService(mounted: MountedService, places: StreamPlaces, isRateLimited: boolean): void {
    for (const method of mounted.service.methods) {
      if (isRateLimited) this.#rateLimitedPaths.add(toPath(method));
      if (isUnary(method)) {
        this.#addUnaryMethod(method, getOperation(mounted, method.localName), isRateLimited);
      } else if (isServerStreaming(method)) {
        this.#addStreamMethod(method, { method, operation: getStreamOperation(mounted, method.localName), places });
      } else throw new Error(`${method.name} has a stream of requests, which operations do not support`);
    }
  }

  #addUnaryMethod(method: DescMethodUnary, operation: AnyOperation, isRateLimited: boolean): void {
    this.#unaryMethods.set(toPath(method), new UnaryMethod(method, operation, isRateLimited));
    this.#connect.rpc(method, (request, context) => runOperation(operation, request, context));
    this.#grpc.rpc(toServerStreaming(method), async function* (request, context) {
      yield await runOperation(operation, request, context);
    });
  }

  #addStreamMethod(method: DescMethodServerStreaming, streamMethod: StreamMethod): void {
    this.#streamMethods.set(toPath(method), streamMethod);
    const { calls, places } = this.#options;
    const { operation } = streamMethod;
    for (const router of [this.#connect, this.#grpc]) {
      router.rpc(method, (request, { values, timeoutMs, signal }) => {
        const context = getRequestContext(values);
        places.generalPath.admit({ context });
        return calls.iterate({ context, operation, request, remainingMs: timeoutMs(), signal });
      });
    }
  }

  addReflection(files: Parameters<typeof createReflectionHandler>[0], serviceNames: readonly string[]): void {
    const { places } = this.#options;
    const reflection = createReflectionHandler(files, serviceNames);
    const createServiceImpl = <R extends ReflectionCall>() => ({
      serverReflectionInfo(requests: AsyncIterable<R>, { values }: HandlerContext) {
        places.generalPath.admit({ context: getRequestContext(values) });
        return serveReflectionStream(requests, reflection);
      },
    });
    for (const router of [this.#connect, this.#grpc]) {
      router.service(ServerReflection, createServiceImpl()).service(ServerReflectionAlpha, createServiceImpl());
    }
  }

  build() {
    const grpcByPath = new Map(this.#grpc.handlers.map((handler) => [handler.requestPath, handler]));
    const byPath = new Map<string, HttpRoute>();
    for (const connect of this.#connect.handlers) {
      const { requestPath, service, method } = connect;
      const adapter = new ConnectAdapter({ connect, grpc: grpcByPath.get(requestPath) ?? connect }, this.#options);
      const general: PathHandler = (exchange, query) => adapter.handle(exchange, query);
      byPath.set(requestPath, {
        operation: `${service.typeName}/${method.name}`,
        isRpc: true,
        isRateLimited: this.#rateLimitedPaths.has(requestPath),
        isStream: !isUnary(method),
        handle: this.#options.fastPaths ? this.#addFastPath(connect, general) : general,
        reject: (exchange, error) => sendRpcError(exchange, error, service.file.proto.package),
      });
    }
    return { byPath, unaryMethods: this.#unaryMethods };
  }

  /** Returns the fast path of a method that falls back to `general`; `general` for a method without one. */
  #addFastPath({ requestPath }: UniversalHandler, general: PathHandler): PathHandler {
    const unary = this.#unaryMethods.get(requestPath);
    if (unary !== undefined) return createConnectFastPath(unary, this.#options, general);
    const stream = this.#streamMethods.get(requestPath);
    return stream === undefined ? general : createStreamFastPath(stream, this.#options, general);
  }
}

function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === "unary";
}

function isServerStreaming(method: DescMethod): method is DescMethodServerStreaming {
  return method.methodKind === "server_streaming";
}

function toPath({ parent, name }: DescMethod): string {
  return `/${parent.typeName}/${name}`;
}

// On the wire of gRPC a unary call is a stream of one message. Only streams show an interceptor why a request is
// malformed.
function toServerStreaming(method: DescMethodUnary): DescMethodServerStreaming {
  return { ...method, methodKind: "server_streaming" };
}

function runOperation(operation: AnyOperation, request: Message, { values, timeoutMs }: HandlerContext) {
  return getRequestContext(values).run(operation, request, timeoutMs());
}

/** Maps the errors of every call to public ones and records the outcome in the request context. */
const errorMappingInterceptor: Interceptor = (next) => async (request) => {
  const context = getRequestContext(request.contextValues);
  request.contextValues.set(hasStartedKey, true);
  const domain = request.service.file.proto.package;
  async function* mapReadErrors<T>(messages: AsyncIterable<T>) {
    try {
      yield* messages;
    } catch (error) {
      throw toMalformedRequestError(error, domain, context);
    }
  }
  async function* recordOutcome<T>(messages: AsyncIterable<T>) {
    try {
      yield* messages;
      context.code = "ok";
    } catch (error) {
      throw mapConnectError(context, error, domain);
    }
  }
  try {
    const response = await next(request.stream ? { ...request, message: mapReadErrors(request.message) } : request);
    if (response.stream) return { ...response, message: recordOutcome(response.message) };
    context.code = "ok";
    return response;
  } catch (error) {
    throw mapConnectError(context, error, domain);
  }
};
