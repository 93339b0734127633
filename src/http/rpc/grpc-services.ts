import {
  create,
  createRegistry,
  type DescEnum,
  type DescExtension,
  type DescFile,
  type DescMessage,
  type DescService,
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
  const check: Operation<Request, Response> = ({ service }) => {
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
  const files = new Set(serviceFiles.flatMap((file) => [...collectImports(file)]));
  const filesByName = new Map([...files].map((file) => [file.proto.name, file]));
  const registry = createRegistry(...files);
  const types = [...registry];
  const extensions = types.filter((type) => type.kind === "extension");
  const filesByMember = new Map(types.flatMap((type) => listMembers(type).map((name) => [name, type.file] as const)));
  const findFile = (symbol: string): DescFile | undefined => registry.get(symbol)?.file ?? filesByMember.get(symbol);
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
        return getFileResponse(filesByName.get(request.value));
      case "fileContainingSymbol":
        return getFileResponse(findFile(request.value));
      case "fileContainingExtension": {
        const { containingType, extensionNumber } = request.value;
        const extendee = registry.getMessage(containingType);
        return getFileResponse(extendee && registry.getExtensionFor(extendee, extensionNumber)?.file);
      }
      case "allExtensionNumbersOfType": {
        if (findFile(request.value) === undefined) return createNotFoundResponse();
        const ofType = extensions.filter(({ extendee }) => extendee.typeName === request.value);
        const extensionNumber = ofType.map(({ number }) => number);
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

/** Returns the full names that a type declares beside its own. */
function listMembers(type: DescEnum | DescExtension | DescMessage | DescService): string[] {
  const { typeName } = type;
  switch (type.kind) {
    case "enum": {
      // Enum values live in the scope of the enum, not below it.
      const scope = typeName.slice(0, typeName.lastIndexOf(".") + 1);
      return type.values.map(({ name }) => scope + name);
    }
    case "message":
      return [...type.fields, ...type.oneofs].map(({ name }) => `${typeName}.${name}`);
    case "service":
      return type.methods.map(({ name }) => `${typeName}.${name}`);
    default:
      return [];
  }
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
