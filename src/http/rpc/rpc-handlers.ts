import type { DescMethod, DescMethodServerStreaming, DescMethodUnary } from "@bufbuild/protobuf";
import { createConnectRouter, type HandlerContext, type Interceptor } from "@connectrpc/connect";
import { Health } from "../../../gen/grpc/health/v1/health_pb.js";
import { ServerReflection } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import type { CallContext } from "../../operations/operation.js";
import { COMPRESS_MIN_BYTES } from "../codec/compression.js";
import type { HttpLimits } from "../connection/http-limits.js";
import { toMalformedRequestError } from "../request/error-mapping.js";
import { type AnyOperation, getOperation, type MountedService } from "../request/mounted-service.js";
import type { PathHandler } from "../request/response.js";
import { createConnectAdapter, getAdapterCall } from "./connect-adapter.js";
import { createFastPathMethod, type FastPathMethod } from "./fast-path-method.js";
import { createHealthService } from "./health-service.js";
import { createReflectionHandler, serveReflectionStream } from "./reflection-service.js";
import { gzipCompression, mapRpcError } from "./rpc-errors.js";

export interface RpcHandlers {
  /** Handlers by path that serve by Connect's adapter alone, whatever the request. */
  readonly generalHandlers: ReadonlyMap<string, PathHandler>;
  /** The unary methods, by path, that have a short way in front of the adapter. */
  readonly fastPathMethods: ReadonlyMap<string, FastPathMethod>;
}

/**
 * What serves the methods of services over gRPC, gRPC-Web and Connect, and gRPC health checking and reflection.
 */
export function createRpcHandlers(
  services: readonly MountedService[],
  limits: HttpLimits,
  draining: AbortSignal,
): RpcHandlers {
  const options = {
    readMaxBytes: limits.requestBytes,
    writeMaxBytes: limits.responseBytes,
    acceptCompression: [gzipCompression],
    compressMinBytes: COMPRESS_MIN_BYTES,
    interceptors: [errorMappingInterceptor],
  };
  const connect = createConnectRouter({ ...options, grpc: false, grpcWeb: false });
  const grpc = createConnectRouter({ ...options, connect: false });
  const fastPathMethods = new Map<string, FastPathMethod>();
  function serveUnary(method: DescMethod, operation: AnyOperation, isLimited: boolean): void {
    fastPathMethods.set(
      `/${method.parent.typeName}/${method.name}`,
      createFastPathMethod(method, operation, isLimited),
    );
    if (method.methodKind !== "unary") throw new Error(`${method.name} streams, which no operation does`);
    const unary = method as DescMethodUnary;
    connect.rpc(unary, (request, context) => operation(request as never, toCallContext(context)));
    grpc.rpc(toServerStreaming(unary), async function* (request, context) {
      yield await operation(request as never, toCallContext(context));
    });
  }

  const all = [...services.map(({ service }) => service), Health, ServerReflection, ServerReflectionAlpha];
  const names = all.map(({ typeName }) => typeName);
  const health = createHealthService(names, draining);
  const reflection = createReflectionHandler(
    all.map(({ file }) => file),
    names,
  );
  for (const mounted of services) {
    for (const method of mounted.service.methods) serveUnary(method, getOperation(mounted, method.localName), true);
  }
  // Whoever asks whether the server is well is to hear that it is, and not that too much was asked.
  serveUnary(Health.method.check, health.check, false);
  for (const router of [connect, grpc]) {
    router.rpc(Health.method.watch, health.watch);
    router.service(ServerReflection, { serverReflectionInfo: (asked) => serveReflectionStream(asked, reflection) });
    router.service(ServerReflectionAlpha, {
      serverReflectionInfo: (asked) => serveReflectionStream(asked, reflection),
    });
  }

  const grpcByPath = new Map(grpc.handlers.map((handler) => [handler.requestPath, handler]));
  const handlers = new Map<string, PathHandler>();
  for (const handler of connect.handlers) {
    const route = { connect: handler, grpc: grpcByPath.get(handler.requestPath) ?? handler };
    handlers.set(handler.requestPath, createConnectAdapter(route, limits, draining));
  }
  return { generalHandlers: handlers, fastPathMethods };
}

// On gRPC's wire a unary call is a stream of one, and only streams let an interceptor see why a request cannot be read.
function toServerStreaming(method: DescMethodUnary): DescMethodServerStreaming {
  return { ...method, methodKind: "server_streaming" };
}

function toCallContext({ values, timeoutMs }: HandlerContext): CallContext {
  return getAdapterCall(values).context.toCallContext(timeoutMs());
}

/** Sees every call's request and outcome: turns errors into those that callers are told, and notes the code. */
const errorMappingInterceptor: Interceptor = (next) => async (request) => {
  const rpc = getAdapterCall(request.contextValues);
  rpc.hasStarted = true;
  const domain = request.service.file.proto.package;
  async function* readable<T>(messages: AsyncIterable<T>) {
    try {
      yield* messages;
    } catch (error) {
      throw toMalformedRequestError(error, domain);
    }
  }
  async function* noted<T>(messages: AsyncIterable<T>) {
    try {
      yield* messages;
      rpc.context.code = "ok";
    } catch (error) {
      throw mapRpcError(rpc.context, error, domain);
    }
  }
  try {
    const answer = await next(request.stream ? { ...request, message: readable(request.message) } : request);
    if (answer.stream) return { ...answer, message: noted(answer.message) };
    rpc.context.code = "ok";
    return answer;
  } catch (error) {
    throw mapRpcError(rpc.context, error, domain);
  }
};
