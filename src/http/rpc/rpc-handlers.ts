import type { DescMethod, DescMethodServerStreaming, DescMethodUnary } from "@bufbuild/protobuf";
import { createConnectRouter, type HandlerContext, type Interceptor } from "@connectrpc/connect";
import { Health } from "../../../gen/grpc/health/v1/health_pb.js";
import { ServerReflection } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import type { CallContext } from "../../operations/operation.js";
import type { HttpLimits } from "../connection/http-limits.js";
import { toRequestFault } from "../request/error-mapping.js";
import { type AnyOperation, type MountedService, operationOf } from "../request/mounted-service.js";
import type { PathHandler } from "../request/response.js";
import { createRpcHandler, rpcOf } from "./connect-adapter.js";
import { createPlainMethod, type PlainMethod } from "./fast-path-method.js";
import { createHealth } from "./health-service.js";
import { answerQuestions, createReflection } from "./reflection-service.js";
import { COMPRESS_MIN_BYTES, gzip, tellFailure } from "./rpc-errors.js";

export interface RpcHandlers {
  /** Handlers by path that serve by Connect's adapter alone, whatever the request. */
  readonly adapter: ReadonlyMap<string, PathHandler>;
  /** The unary methods, by path, that have a short way in front of the adapter. */
  readonly plain: ReadonlyMap<string, PlainMethod>;
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
    acceptCompression: [gzip],
    compressMinBytes: COMPRESS_MIN_BYTES,
    interceptors: [observe],
  };
  const connect = createConnectRouter({ ...options, grpc: false, grpcWeb: false });
  const grpc = createConnectRouter({ ...options, connect: false });
  const plain = new Map<string, PlainMethod>();
  function serveUnary(method: DescMethod, operation: AnyOperation, isLimited: boolean): void {
    plain.set(`/${method.parent.typeName}/${method.name}`, createPlainMethod(method, operation, isLimited));
    if (method.methodKind !== "unary") throw new Error(`${method.name} streams, which no operation does`);
    const unary = method as DescMethodUnary;
    connect.rpc(unary, (request, context) => operation(request as never, contextOf(context)));
    grpc.rpc(asStreaming(unary), async function* (request, context) {
      yield await operation(request as never, contextOf(context));
    });
  }

  const all = [...services.map(({ service }) => service), Health, ServerReflection, ServerReflectionAlpha];
  const names = all.map(({ typeName }) => typeName);
  const health = createHealth(names, draining);
  const reflection = createReflection(
    all.map(({ file }) => file),
    names,
  );
  for (const mounted of services) {
    for (const method of mounted.service.methods) serveUnary(method, operationOf(mounted, method.localName), true);
  }
  // Whoever asks whether the server is well is to hear that it is, and not that too much was asked.
  serveUnary(Health.method.check, health.check, false);
  for (const router of [connect, grpc]) {
    router.rpc(Health.method.watch, health.watch);
    router.service(ServerReflection, { serverReflectionInfo: (asked) => answerQuestions(asked, reflection) });
    router.service(ServerReflectionAlpha, { serverReflectionInfo: (asked) => answerQuestions(asked, reflection) });
  }

  const grpcByPath = new Map(grpc.handlers.map((handler) => [handler.requestPath, handler]));
  const handlers = new Map<string, PathHandler>();
  for (const handler of connect.handlers) {
    const route = { connect: handler, grpc: grpcByPath.get(handler.requestPath) ?? handler };
    handlers.set(handler.requestPath, createRpcHandler(route, limits, draining));
  }
  return { adapter: handlers, plain };
}

// On gRPC's wire a unary call is a stream of one, and only streams let an interceptor see why a request cannot be read.
function asStreaming(method: DescMethodUnary): DescMethodServerStreaming {
  return { ...method, methodKind: "server_streaming" };
}

function contextOf({ values, timeoutMs }: HandlerContext): CallContext {
  return rpcOf(values).call.context(timeoutMs());
}

/** Sees every call's request and outcome: turns errors into those that callers are told, and notes the code. */
const observe: Interceptor = (next) => async (request) => {
  const rpc = rpcOf(request.contextValues);
  rpc.started = true;
  const domain = request.service.file.proto.package;
  async function* readable<T>(messages: AsyncIterable<T>) {
    try {
      yield* messages;
    } catch (error) {
      throw toRequestFault(error, domain);
    }
  }
  async function* noted<T>(messages: AsyncIterable<T>) {
    try {
      yield* messages;
      rpc.call.code = "ok";
    } catch (error) {
      throw tellFailure(rpc.call, error, domain);
    }
  }
  try {
    const answer = await next(request.stream ? { ...request, message: readable(request.message) } : request);
    if (answer.stream) return { ...answer, message: noted(answer.message) };
    rpc.call.code = "ok";
    return answer;
  } catch (error) {
    throw tellFailure(rpc.call, error, domain);
  }
};
