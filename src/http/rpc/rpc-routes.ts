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
import {
  type AnyOperation,
  type AnyStreamOperation,
  getOperation,
  getStreamOperation,
  type MountedService,
} from "../request/mounted-service.js";
import type { HttpRoute, PathHandler } from "../request/response.js";
import { admitStream } from "../stream/admit-stream.js";
import { iterateMessages } from "../stream/message-iterator.js";
import type { StreamingCalls } from "../stream/streaming-calls.js";
import { createConnectAdapter, getAdapterCall } from "./connect-adapter.js";
import { createFastPathMethod, type FastPathMethod } from "./fast-path-method.js";
import { createHealthService } from "./health-service.js";
import { createReflectionHandler, serveReflectionStream } from "./reflection-service.js";
import { gzipCompression, mapConnectError } from "./rpc-errors.js";
import { sendRpcError } from "./send-rpc-error.js";
import { createServerStreamHandler } from "./server-stream.js";

/** Quotas of streaming calls. */
export interface StreamQuotas {
  readonly operations: StreamQuota;
  readonly health: StreamQuota;
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

/** What the routes of all services share. */
export interface RpcRoutesOptions {
  readonly limits: HttpLimits;
  readonly draining: AbortSignal;
  readonly calls: StreamingCalls;
  readonly quotas: StreamQuotas;
  readonly budget: BodyBudget;
}

/** A server-streaming method and its operation. */
interface StreamMethod {
  readonly method: DescMethodServerStreaming;
  readonly operation: AnyStreamOperation;
  /** Of its fast path. */
  readonly quota: StreamQuota;
}

/** Creates the routes of services over gRPC, gRPC-Web and Connect, with gRPC health checking and reflection. */
export function createRpcRoutes(
  services: readonly MountedService[],
  { limits, draining, calls, quotas, budget }: RpcRoutesOptions,
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
  const streamMethods = new Map<string, StreamMethod>();
  const rateLimitedPaths = new Set<string>();
  function addUnaryMethod(unary: DescMethodUnary, operation: AnyOperation, isRateLimited: boolean): void {
    fastPathMethods.set(toPath(unary), createFastPathMethod(unary, operation, isRateLimited));
    connect.rpc(unary, (request, handlerContext) => operation(request as never, toCallContext(handlerContext)));
    grpc.rpc(toServerStreaming(unary), async function* (request, handlerContext) {
      yield await operation(request as never, toCallContext(handlerContext));
    });
  }
  function addStreamMethod({ method, operation, quota }: StreamMethod): void {
    streamMethods.set(toPath(method), { method, operation, quota });
    for (const router of [connect, grpc]) {
      router.rpc(method, (request, { values, timeoutMs, signal }) => {
        const { context } = getAdapterCall(values);
        admitStream({ context }, quotas.generalPath);
        return iterateMessages(calls, { context, operation, request, remainingMs: timeoutMs(), signal });
      });
    }
  }

  const descriptors = [...services.map(({ service }) => service), Health, ServerReflection, ServerReflectionAlpha];
  const serviceNames = descriptors.map(({ typeName }) => typeName);
  const health = createHealthService(serviceNames, draining);
  const reflection = createReflectionHandler(
    descriptors.map(({ file }) => file),
    serviceNames,
  );
  for (const mounted of services) {
    for (const method of mounted.service.methods) {
      rateLimitedPaths.add(toPath(method));
      if (isUnary(method)) addUnaryMethod(method, getOperation(mounted, method.localName), true);
      else if (isServerStreaming(method)) {
        const operation = getStreamOperation(mounted, method.localName);
        addStreamMethod({ method, operation, quota: quotas.operations });
      } else throw new Error(`${method.name} has a stream of requests, which operations do not support`);
    }
  }
  // A health check that exceeds a rate limit would report a healthy server as failing.
  addUnaryMethod(Health.method.check, health.check, false);
  addStreamMethod({
    ...{ method: Health.method.watch, operation: health.watch as AnyStreamOperation, quota: quotas.health },
  });
  for (const router of [connect, grpc]) {
    router.service(ServerReflection, {
      serverReflectionInfo(requests, { values }) {
        admitStream(getAdapterCall(values), quotas.generalPath);
        return serveReflectionStream(requests, reflection);
      },
    });
    router.service(ServerReflectionAlpha, {
      serverReflectionInfo(requests, { values }) {
        admitStream(getAdapterCall(values), quotas.generalPath);
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
      isRateLimited: rateLimitedPaths.has(requestPath),
      handle: createConnectAdapter(handlers, limits, draining, budget),
      reject: (exchange, error) => sendRpcError(exchange, error, service.file.proto.package),
    });
  }
  const streamHandlers = new Map<string, PathHandler>();
  for (const [path, { method, operation, quota }] of streamMethods) {
    const general = generalRoutes.get(path)?.handle;
    if (general === undefined) throw new Error(`no route for ${path}`);
    const options = { limits, calls, quota, budget, general };
    streamHandlers.set(path, createServerStreamHandler(method, operation, options));
  }
  return { generalRoutes, fastPathMethods, streamHandlers };
}

function toPath({ parent, name }: DescMethod): string {
  return `/${parent.typeName}/${name}`;
}

function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === "unary";
}

function isServerStreaming(method: DescMethod): method is DescMethodServerStreaming {
  return method.methodKind === "server_streaming";
}

// On the wire of gRPC a unary call is a stream of one message. Only streams show an interceptor why a request is
// malformed.
function toServerStreaming(method: DescMethodUnary): DescMethodServerStreaming {
  return { ...method, methodKind: "server_streaming" };
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
