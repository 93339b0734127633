import {
  create,
  type DescEnum,
  type DescExtension,
  type DescFile,
  type DescMessage,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type HealthCheckRequestSchema,
  HealthCheckResponseSchema,
  HealthCheckResponse_ServingStatus as Status,
} from "../../../gen/grpc/health/v1/health_pb.js";
import type { Operation, StreamOperation } from "../../operations/operation.js";

// The services that every gRPC server has: health checking and reflection.

type Request = MessageShape<typeof HealthCheckRequestSchema>;
type Response = MessageShape<typeof HealthCheckResponseSchema>;

/** Creates the gRPC health service: every service is SERVING until the server drains. */
export function createHealthService(serviceNames: readonly string[], draining: AbortSignal) {
  // The empty name stands for the server as a whole.
  const serviceNameSet = new Set(["", ...serviceNames]);
  const getStatus = () => (draining.aborted ? Status.NOT_SERVING : Status.SERVING);
  const check: Operation<Request, Response> = async ({ service }) => {
    if (!serviceNameSet.has(service)) throw new ConnectError("unknown service", Code.NotFound);
    return create(HealthCheckResponseSchema, { status: getStatus() });
  };
  const watch: StreamOperation<Request, Response> = ({ service }, stream) => {
    const initial = serviceNameSet.has(service) ? getStatus() : Status.SERVICE_UNKNOWN;
    const send = (status: Status) => stream.send(create(HealthCheckResponseSchema, { status }));
    send(initial);
    return {
      onReady() {},
      onDrain() {
        if (initial === Status.SERVING) send(Status.NOT_SERVING);
        stream.end();
      },
      onEnd() {},
    };
  };
  return { check, watch };
}

// Both versions of the protocol have these shapes, under different type names.
type ReflectionRequest =
  | { case: "fileByFilename" | "fileContainingSymbol" | "allExtensionNumbersOfType" | "listServices"; value: string }
  | { case: "fileContainingExtension"; value: { containingType: string; extensionNumber: number } }
  | { case: undefined; value?: undefined };
/** One request of the stream, of either version. */
export interface ReflectionCall {
  readonly host: string;
  readonly messageRequest: ReflectionRequest;
}
type ReflectionResponse =
  | { case: "fileDescriptorResponse"; value: { fileDescriptorProto: Uint8Array<ArrayBuffer>[] } }
  | { case: "allExtensionNumbersResponse"; value: { baseTypeName: string; extensionNumber: number[] } }
  | { case: "listServicesResponse"; value: { service: { name: string }[] } }
  | { case: "errorResponse"; value: { errorCode: number; errorMessage: string } };

/** Answers one request of gRPC server reflection, of either version of the protocol. */
export type ReflectionHandler = (request: ReflectionRequest) => ReflectionResponse;

/** Creates reflection over the files that declare the services, and over all files that they import. */
export function createReflectionHandler(
  serviceFiles: readonly DescFile[],
  serviceNames: readonly string[],
): ReflectionHandler {
  const files = new Map<string, DescFile>();
  const symbols = new Map<string, DescFile>();
  const extensions = new Map<string, Map<number, DescFile>>();
  for (const file of serviceFiles)
    for (const imported of collectImports(file)) files.set(imported.proto.name, imported);
  for (const file of files.values()) {
    const declarations = collectDeclarations(file);
    for (const name of declarations.names) symbols.set(name, file);
    for (const { extendee, number } of declarations.extensions) {
      const ofType = extensions.get(extendee.typeName) ?? new Map<number, DescFile>();
      extensions.set(extendee.typeName, ofType.set(number, file));
    }
  }
  /** Responses by file, built once each: a request must not cost more than another gRPC call. */
  const fileResponses = new Map<DescFile, ReflectionResponse>();
  function getFileResponse(file: DescFile | undefined): ReflectionResponse {
    if (file === undefined) return createNotFoundResponse();
    const cached = fileResponses.get(file);
    if (cached !== undefined) return cached;
    const fileDescriptorProto = [...collectImports(file)].map((imported) =>
      toBinary(FileDescriptorProtoSchema, imported.proto),
    );
    const response: ReflectionResponse = { case: "fileDescriptorResponse", value: { fileDescriptorProto } };
    fileResponses.set(file, response);
    return response;
  }
  const services = [...serviceNames].sort().map((name) => ({ name }));

  return (request) => {
    switch (request.case) {
      case "fileByFilename":
        return getFileResponse(files.get(request.value));
      case "fileContainingSymbol":
        return getFileResponse(symbols.get(request.value));
      case "fileContainingExtension":
        return getFileResponse(extensions.get(request.value.containingType)?.get(request.value.extensionNumber));
      case "allExtensionNumbersOfType": {
        if (!symbols.has(request.value)) return createNotFoundResponse();
        const extensionNumber = [...(extensions.get(request.value)?.keys() ?? [])];
        return { case: "allExtensionNumbersResponse", value: { baseTypeName: request.value, extensionNumber } };
      }
      case "listServices":
        return { case: "listServicesResponse", value: { service: services } };
      default:
        return createErrorResponse(Code.InvalidArgument, "the request is empty");
    }
  };
}

function createNotFoundResponse(): ReflectionResponse {
  return createErrorResponse(Code.NotFound, "not found");
}

function createErrorResponse(errorCode: Code, errorMessage: string): ReflectionResponse {
  return { case: "errorResponse", value: { errorCode, errorMessage } };
}

/** Returns a file and everything that it imports, directly or not, each once. */
function collectImports(file: DescFile): Set<DescFile> {
  const all = new Set([file]);
  // The iteration of a set includes items that are added during it.
  for (const current of all) for (const imported of current.dependencies) all.add(imported);
  return all;
}

function collectDeclarations(file: DescFile): { names: string[]; extensions: DescExtension[] } {
  const names: string[] = [];
  const extensions: DescExtension[] = [];
  function addEnum({ typeName, values }: DescEnum): void {
    // Enum values live in the scope of the enum, not below it.
    const scope = typeName.slice(0, typeName.lastIndexOf(".") + 1);
    names.push(typeName, ...values.map(({ name }) => scope + name));
  }
  function addExtensions(descriptors: readonly DescExtension[]): void {
    extensions.push(...descriptors);
    names.push(...descriptors.map(({ typeName }) => typeName));
  }
  function addMessage(message: DescMessage): void {
    const inner = [...message.fields, ...message.oneofs].map(({ name }) => `${message.typeName}.${name}`);
    names.push(message.typeName, ...inner);
    message.nestedEnums.forEach(addEnum);
    message.nestedMessages.forEach(addMessage);
    addExtensions(message.nestedExtensions);
  }
  for (const { typeName, methods } of file.services) {
    names.push(typeName, ...methods.map(({ name }) => `${typeName}.${name}`));
  }
  file.enums.forEach(addEnum);
  file.messages.forEach(addMessage);
  addExtensions(file.extensions);
  return { names, extensions };
}

/** Serves the stream of requests of either version. */
export async function* serveReflectionStream<R extends ReflectionCall>(
  requests: AsyncIterable<R>,
  reflection: ReflectionHandler,
) {
  for await (const request of requests) {
    const messageResponse = reflection(request.messageRequest);
    yield { validHost: request.host, originalRequest: request, messageResponse };
  }
}
