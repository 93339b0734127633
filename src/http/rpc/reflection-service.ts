import { type DescEnum, type DescExtension, type DescFile, type DescMessage, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";

// Both versions of the protocol have these shapes, under different type names.
type ReflectionRequest =
  | { case: "fileByFilename" | "fileContainingSymbol" | "allExtensionNumbersOfType" | "listServices"; value: string }
  | { case: "fileContainingExtension"; value: { containingType: string; extensionNumber: number } }
  | { case: undefined; value?: undefined };
type ReflectionResponse =
  | { case: "fileDescriptorResponse"; value: { fileDescriptorProto: Uint8Array<ArrayBuffer>[] } }
  | { case: "allExtensionNumbersResponse"; value: { baseTypeName: string; extensionNumber: number[] } }
  | { case: "listServicesResponse"; value: { service: { name: string }[] } }
  | { case: "errorResponse"; value: { errorCode: number; errorMessage: string } };

/** Answers one question of gRPC server reflection; both versions of the protocol ask the same. */
export type ReflectionHandler = (question: ReflectionRequest) => ReflectionResponse;

/** Reflection over the files that declare the named services, and all that those files import. */
export function createReflectionHandler(
  serviceFiles: readonly DescFile[],
  serviceNames: readonly string[],
): ReflectionHandler {
  const files = new Map<string, DescFile>();
  const symbols = new Map<string, DescFile>();
  const extensions = new Map<string, Map<number, DescFile>>();
  for (const file of serviceFiles) for (const each of collectImports(file)) files.set(each.proto.name, each);
  for (const file of files.values()) {
    const own = collectDeclarations(file);
    for (const name of own.names) symbols.set(name, file);
    for (const { extendee, number } of own.extensions) {
      const ofType = extensions.get(extendee.typeName) ?? new Map<number, DescFile>();
      extensions.set(extendee.typeName, ofType.set(number, file));
    }
  }
  /** Made once each: a question takes no more than a message of gRPC. */
  const answers = new Map<DescFile, ReflectionResponse>();
  function fileAnswer(file: DescFile | undefined): ReflectionResponse {
    if (file === undefined) return createNotFoundResponse();
    const known = answers.get(file);
    if (known !== undefined) return known;
    const fileDescriptorProto = [...collectImports(file)].map((each) =>
      toBinary(FileDescriptorProtoSchema, each.proto),
    );
    const answer: ReflectionResponse = { case: "fileDescriptorResponse", value: { fileDescriptorProto } };
    answers.set(file, answer);
    return answer;
  }
  const services = [...serviceNames].sort().map((name) => ({ name }));

  return (question) => {
    switch (question.case) {
      case "fileByFilename":
        return fileAnswer(files.get(question.value));
      case "fileContainingSymbol":
        return fileAnswer(symbols.get(question.value));
      case "fileContainingExtension":
        return fileAnswer(extensions.get(question.value.containingType)?.get(question.value.extensionNumber));
      case "allExtensionNumbersOfType": {
        if (!symbols.has(question.value)) return createNotFoundResponse();
        const extensionNumber = [...(extensions.get(question.value)?.keys() ?? [])];
        return { case: "allExtensionNumbersResponse", value: { baseTypeName: question.value, extensionNumber } };
      }
      case "listServices":
        return { case: "listServicesResponse", value: { service: services } };
      default:
        return createErrorResponse(Code.InvalidArgument, "nothing is asked");
    }
  };
}

function createNotFoundResponse(): ReflectionResponse {
  return createErrorResponse(Code.NotFound, "not known here");
}

function createErrorResponse(errorCode: Code, errorMessage: string): ReflectionResponse {
  return { case: "errorResponse", value: { errorCode, errorMessage } };
}

/** A file, then all that it imports, directly or not, each once. */
function collectImports(file: DescFile): Set<DescFile> {
  const all = new Set([file]);
  // A set's iteration goes on to what is added during it.
  for (const each of all) for (const imported of each.dependencies) all.add(imported);
  return all;
}

function collectDeclarations(file: DescFile): { names: string[]; extensions: DescExtension[] } {
  const names: string[] = [];
  const extensions: DescExtension[] = [];
  function addEnum({ typeName, values }: DescEnum): void {
    // The values of an enum stand beside it, not below it.
    const scope = typeName.slice(0, typeName.lastIndexOf(".") + 1);
    names.push(typeName, ...values.map(({ name }) => scope + name));
  }
  function addExtensions(some: readonly DescExtension[]): void {
    extensions.push(...some);
    names.push(...some.map(({ typeName }) => typeName));
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

/** Serves the stream of questions of either version. */
export async function* serveReflectionStream<R extends { host: string; messageRequest: ReflectionRequest }>(
  requests: AsyncIterable<R>,
  reflection: ReflectionHandler,
) {
  for await (const request of requests) {
    const messageResponse = reflection(request.messageRequest);
    yield { validHost: request.host, originalRequest: request, messageResponse };
  }
}
