import type { DescMethod, DescMethodServerStreaming, DescMethodUnary } from "@bufbuild/protobuf";
import { createConnectRouter, type HandlerContext, type Interceptor } from "@connectrpc/connect";
import { Health } from "../../../gen/grpc/health/v1/health_pb.js";
import { ServerReflection } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import type { CallContext } from "../../operations/operation.js";
import type { BodyBudget } from "../admission/body-budget.js";
import type { StreamQuota } from "../admission/stream-quota.js";
import { COMPRESS_MIN_BYTES } from "../codec/compression.js";
import type { HttpLimits } from "../connection/http-limits.js";
import { toMalformedRequestError } from "../request/error-mapping.js";
import { type AnyOperation, getOperation, type MountedService } from "../request/mounted-service.js";
import type { HttpRoute, PathHandler } from "../request/response.js";
import { createConnectAdapter, getAdapterCall } from "./connect-adapter.js";
import { createFastPathMethod, type FastPathMethod } from "./fast-path-method.js";
import { createHealthService } from "./health-service.js";
import { createReflectionHandler, serveReflectionStream } from "./reflection-service.js";
import { gzipCompression, mapConnectError } from "./rpc-errors.js";
import { sendRpcError } from "./send-rpc-error.js";
import { createServerStreamHandler } from "./server-stream.js";

/** Quotas of streaming calls, by the path that serves them. */
export interface StreamQuotas {
  readonly fastPath: StreamQuota;
  /** Streams of Connect's adapter take four times the memory. */
  readonly generalPath: StreamQuota;
}

export interface RpcRoutes {
  /** Routes by path that serve every request by Connect's adapter. */
  readonly generalRoutes: ReadonlyMap<string, HttpRoute>;
  /** The unary methods by path: fast paths may serve them in front of the adapter. */
  readonly fastPathMethods: ReadonlyMap<string, FastPathMethod>;
  /** Fast paths of server-streaming methods by path. */
  readonly streamHandlers: ReadonlyMap<string, PathHandler>;
}

/** Creates the routes of services over gRPC, gRPC-Web and Connect, with gRPC health checking and reflection. */
export function createRpcRoutes(
  services: readonly MountedService[],
  limits: HttpLimits,
  draining: AbortSignal,
  quotas: StreamQuotas,
  budget: BodyBudget,
): RpcRoutes {
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
  function addUnaryMethod(method: DescMethod, operation: AnyOperation, isRateLimited: boolean): void {
    if (method.methodKind !== "unary") throw new Error(`${method.name} is a stream, but operations are unary`);
    fastPathMethods.set(
      `/${method.parent.typeName}/${method.name}`,
      createFastPathMethod(method, operation, isRateLimited),
    );
    const unary = method as DescMethodUnary;
    connect.rpc(unary, (request, handlerContext) => operation(request as never, toCallContext(handlerContext)));
    grpc.rpc(toServerStreaming(unary), async function* (request, handlerContext) {
      yield await operation(request as never, toCallContext(handlerContext));
    });
  }

  const descriptors = [...services.map(({ service }) => service), Health, ServerReflection, ServerReflectionAlpha];
  const serviceNames = descriptors.map(({ typeName }) => typeName);
  const health = createHealthService(serviceNames, draining);
  const reflection = createReflectionHandler(
    descriptors.map(({ file }) => file),
    serviceNames,
  );
  for (const mounted of services) {
    for (const method of mounted.service.methods) addUnaryMethod(method, getOperation(mounted, method.localName), true);
  }
  // A health check that exceeds a rate limit would report a healthy server as failing.
  addUnaryMethod(Health.method.check, health.check, false);
  for (const router of [connect, grpc]) {
    router.rpc(Health.method.watch, (request, handlerContext) => {
      admitStream(handlerContext, quotas.generalPath);
      return health.watch(request, handlerContext);
    });
    router.service(ServerReflection, {
      serverReflectionInfo(requests, handlerContext) {
        admitStream(handlerContext, quotas.generalPath);
        return serveReflectionStream(requests, reflection);
      },
    });
    router.service(ServerReflectionAlpha, {
      serverReflectionInfo(requests, handlerContext) {
        admitStream(handlerContext, quotas.generalPath);
        return serveReflectionStream(requests, reflection);
      },
    });
  }

  const grpcByPath = new Map(grpc.handlers.map((handler) => [handler.requestPath, handler]));
  const generalRoutes = new Map<string, HttpRoute>();
  for (const handler of connect.handlers) {
    const { requestPath, service, method } = handler;
    const handlers = { connect: handler, grpc: grpcByPath.get(requestPath) ?? handler };
    generalRoutes.set(requestPath, {
      operation: `${service.typeName}/${method.name}`,
      isRpc: true,
      isRateLimited: fastPathMethods.get(requestPath)?.isRateLimited ?? false,
      handle: createConnectAdapter(handlers, limits, draining, budget),
      reject: (exchange, error) => sendRpcError(exchange, error, service.file.proto.package),
    });
  }
  const { watch } = Health.method;
  const watchPath = `/${Health.typeName}/${watch.name}`;
  const general = generalRoutes.get(watchPath)?.handle;
  if (general === undefined) throw new Error(`no route for ${watchPath}`);
  const watchOptions = { limits, quota: quotas.fastPath, budget, general };
  const streamHandlers = new Map([[watchPath, createServerStreamHandler(watch, health.watchStream, watchOptions)]]);
  return { generalRoutes, fastPathMethods, streamHandlers };
}

// On the wire of gRPC a unary call is a stream of one message. Only streams show an interceptor why a request is
// malformed.
function toServerStreaming(method: DescMethodUnary): DescMethodServerStreaming {
  return { ...method, methodKind: "server_streaming" };
}

/**
 * Takes a place for a streaming call until its request ends. Not until its generator ends: Connect abandons the
 * generators of calls that are reset.
 */
function admitStream({ values }: HandlerContext, quota: StreamQuota): void {
  const { context } = getAdapterCall(values);
  context.onEnd(quota.acquire(context.caller));
}

function toCallContext({ values, timeoutMs }: HandlerContext): CallContext {
  return getAdapterCall(values).context.toCallContext(timeoutMs());
}

/** Maps the errors of every call to public ones and records the outcome in the request context. */
const errorMappingInterceptor: Interceptor = (next) => async (request) => {
  const call = getAdapterCall(request.contextValues);
  call.hasStarted = true;
  const domain = request.service.file.proto.package;
  async function* mapReadErrors<T>(messages: AsyncIterable<T>) {
    try {
      yield* messages;
    } catch (error) {
      throw toMalformedRequestError(error, domain);
    }
  }
  async function* recordOutcome<T>(messages: AsyncIterable<T>) {
    try {
      yield* messages;
      call.context.code = "ok";
    } catch (error) {
      throw mapConnectError(call.context, error, domain);
    }
  }
  try {
    const response = await next(request.stream ? { ...request, message: mapReadErrors(request.message) } : request);
    if (response.stream) return { ...response, message: recordOutcome(response.message) };
    call.context.code = "ok";
    return response;
  } catch (error) {
    throw mapConnectError(call.context, error, domain);
  }
};
