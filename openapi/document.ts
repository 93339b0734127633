import type { DescFile, DescService } from "@bufbuild/protobuf";
import { type GetRoute, readGetRoutes } from "../src/http/rest/annotations.js";
import { getOperationOptions } from "./contract-options.js";
import { firstSentence, getComment, getFileComment } from "./doc-comments.js";
import { buildFieldExample, buildMessageExample } from "./examples.js";
import { type JsonObject, omitEmpty } from "./json-object.js";
import { listParameterGroups, listSharedParameters, toParameters } from "./parameters.js";
import { createErrorResponses, ERROR_SCHEMA, type ErrorResponses } from "./responses/error-responses.js";
import { toEventStreamResponses } from "./responses/event-stream-response.js";
import { headersForStatus, RESPONSE_HEADERS } from "./responses/response-headers.js";
import { createSchemaRegistry, type SchemaRegistry } from "./schemas.js";

/** Metadata from package.json. */
export interface PackageInfo {
  readonly name: string;
  readonly version: string;
  /** SPDX identifier. */
  readonly license: string;
}

/** Rules of HTTP that apply to every operation. */
const HTTP_DESCRIPTION =
  `Over HTTP, parameter names may also be written in snake_case. An unknown parameter is an error,
and so is one given twice that is no list; an optional parameter that is empty counts as absent. Responses contain
every field but those that the schema does not require: nothing is null. \`HEAD\` works like \`GET\`, without the body. CORS allows any origin. Errors have the body \`Error\`,
always as JSON; at an unknown path it is \`PATH_NOT_FOUND\` with status 404.`.replaceAll("\n", " ");

/**
 * Generates the OpenAPI 3.1 description of all methods in these files that `google.api.http` maps to GET. The result
 * depends on nothing but the arguments.
 */
export function generateOpenApi(files: readonly DescFile[], { name, version, license }: PackageInfo): JsonObject {
  const services = files.flatMap((file) => file.services.filter((service) => readGetRoutes(service).length > 0));
  const routes = services.flatMap(readGetRoutes);
  const specificReasons = new Set(routes.flatMap(({ method }) => getOperationOptions(method).reasons));
  const responses = createErrorResponses([...specificReasons]);
  const schemas = createSchemaRegistry();
  const fileComments = [...new Set(services.map(({ file }) => file))].map(getFileComment);
  const paths = routes.map((route) => [route.path, { get: toOperation(route, schemas, responses) }] as const);
  return {
    openapi: "3.1.0",
    info: {
      title: name,
      version,
      description: [...fileComments, HTTP_DESCRIPTION].join("\n\n"),
      license: { name: license, identifier: license },
    },
    servers: [{ url: "/", description: "The server that serves this description." }],
    security: [],
    tags: services.map((service) => ({ name: service.name, description: getComment(service) })),
    paths: Object.fromEntries(paths),
    components: {
      schemas: Object.fromEntries([...schemas.named, ["Error", ERROR_SCHEMA] as const]),
      responses: responses.named,
      parameters: listSharedParameters(routes.map(({ method }) => method)),
      headers: RESPONSE_HEADERS,
    },
  };
}

function toOperation(route: GetRoute, schemas: SchemaRegistry, responses: ErrorResponses): JsonObject {
  const { method } = route;
  const comment = getComment(method);
  const { reasons } = getOperationOptions(method);
  const { alternatives, exclusives, sentences } = listParameterGroups(method.input);
  return omitEmpty({
    operationId: toOperationId(route),
    summary: firstSentence(comment),
    description: sentences.length === 0 ? comment : `${comment}\n\n${sentences.join(" ")}`,
    tags: [method.parent.name],
    "x-at-least-one-of": alternatives,
    "x-at-most-one-of": exclusives,
    parameters: toParameters(method, schemas),
    responses: {
      ...(method.methodKind === "unary" ? toUnaryResponses(route, schemas) : toEventStreamResponses(method, schemas)),
      ...responses.forOperation(reasons),
    },
  });
}

function toUnaryResponses(route: GetRoute, schemas: SchemaRegistry): JsonObject {
  const { headers } = getOperationOptions(route.method);
  return {
    200: {
      description: getComment(route.method.output),
      headers: headersForStatus(200, headers),
      content: { "application/json": toResponseContent(route, schemas) },
    },
    304: {
      description: "The cached response is still current.",
      headers: headersForStatus(304, headers),
    },
  };
}

/** Returns the method's name; further paths of the same method append theirs. */
function toOperationId({ method, path }: GetRoute): string {
  const paths = readGetRoutes(method.parent as DescService).filter((route) => route.method === method);
  return paths[0]?.path === path ? method.localName : `${method.localName}_${path.replace(/[^A-Za-z0-9]+/g, "_")}`;
}

/** Returns the content of a response: the whole message, or the one field that `response_body` names. */
function toResponseContent({ method, responseBody }: GetRoute, schemas: SchemaRegistry): JsonObject {
  const { output } = method;
  if (responseBody === "") return { schema: schemas.forMessage(output), example: buildMessageExample(output) };
  const field = output.fields.find(({ name }) => name === responseBody);
  if (field === undefined) throw new Error(`${output.typeName} has no field ${responseBody}`);
  return { schema: schemas.forField(field), example: buildFieldExample(field, []) };
}
