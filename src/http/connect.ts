import type { DescMethod, DescMethodServerStreaming, DescMethodUnary } from "@bufbuild/protobuf";
import { Code, ConnectError, createConnectRouter, type HandlerContext, type Interceptor } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import { compressionGzip } from "@connectrpc/connect-node";
import { Health } from "../../gen/grpc/health/v1/health_pb.js";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import type { CallContext } from "../operations/operation.js";
import type { PathHandler } from "./answer.js";
import { toConnectError, toRequestFault } from "./errors.js";
import { createHealth } from "./health.js";
import type { HttpLimits } from "./limits.js";
import { type AnyOperation, type MountedService, operationOf } from "./mount.js";
import { answerQuestions, createReflection } from "./reflection.js";
import { createRpcHandler, rpcOf } from "./rpc-handler.js";

/**
 * Handlers, by path, for the methods of services over gRPC, gRPC-Web and Connect, and for gRPC health checking and
 * reflection.
 */
export function createRpcHandlers(
  services: readonly MountedService[],
  limits: HttpLimits,
  draining: AbortSignal,
): Map<string, PathHandler> {
  const options = {
    readMaxBytes: limits.requestBytes,
    writeMaxBytes: limits.responseBytes,
    acceptCompression: [gzip],
    interceptors: [observe],
  };
  const connect = createConnectRouter({ ...options, grpc: false, grpcWeb: false });
  const grpc = createConnectRouter({ ...options, connect: false });
  function serveUnary(method: DescMethod, operation: AnyOperation): void {
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
    for (const method of mounted.service.methods) serveUnary(method, operationOf(mounted, method.localName));
  }
  serveUnary(Health.method.check, health.check);
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
  return handlers;
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
  function failed(error: unknown): ConnectError {
    const told = error instanceof ConnectError ? error : toConnectError(rpc.call.fail(error), domain);
    rpc.call.code = codeToString(told.code);
    return told;
  }
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
      throw failed(error);
    }
  }
  try {
    const answer = await next(request.stream ? { ...request, message: readable(request.message) } : request);
    if (answer.stream) return { ...answer, message: noted(answer.message) };
    rpc.call.code = "ok";
    return answer;
  } catch (error) {
    throw failed(error);
  }
};

/** Gzip with the truth about broken input; brotli would cost far more time than it saves bytes. */
const gzip: Compression = {
  ...compressionGzip,
  async decompress(bytes, readMaxBytes) {
    try {
      return await compressionGzip.decompress(bytes, readMaxBytes);
    } catch (error) {
      if (error instanceof ConnectError && error.code === Code.ResourceExhausted) throw error;
      throw new ConnectError("the request does not decompress", Code.InvalidArgument);
    }
  },
};
