import type { DescFile, DescService } from "@bufbuild/protobuf";
import { type GetRoute, readGetRoutes } from "../src/http/rest/get-routes.js";
import { getMethodOptions } from "./contract-options.js";
import { firstSentence, getComment, getFileComment } from "./doc-comments.js";
import { createErrorResponses, type ErrorResponses, errorSchema } from "./error-responses.js";
import { buildFieldExample, buildMessageExample } from "./examples.js";
import { type JsonObject, omitEmpty } from "./json-object.js";
import { listAlternativeNames, SHARED_PARAMETERS, toParameters } from "./parameters.js";
import { headersForStatus, RESPONSE_HEADERS } from "./response-headers.js";
import { createSchemaRegistry, type SchemaRegistry } from "./schemas.js";

/** What a description says of the whole, as package.json has it. */
export interface PackageInfo {
  readonly name: string;
  readonly version: string;
  /** SPDX identifier. */
  readonly license: string;
}

/** What holds over HTTP for every operation. */
const httpDescription =
  `Over HTTP, a parameter's name may also be written in snake_case. An unknown one, and a single one given
twice, is an error; an optional one that is empty counts as not given. In an answer every field is there: nothing is null or left out.
\`HEAD\` answers like \`GET\` without a body. Any origin may ask (CORS). Errors have the body \`Error\`, always as JSON; at a path where
there is nothing it is \`PATH_NOT_FOUND\` with status 404.`.replaceAll("\n", " ");

/**
 * The OpenAPI 3.1 description of all methods in these files that google.api.http puts under GET, as the GET layer serves
 * them. The same files give the same description to the last byte.
 */
export function generateOpenApi(files: readonly DescFile[], { name, version, license }: PackageInfo): JsonObject {
  const services = files.flatMap((file) => file.services.filter((service) => readGetRoutes(service).length > 0));
  const routes = services.flatMap(readGetRoutes);
  const own = new Set(routes.flatMap(({ method }) => getMethodOptions(method).reasons));
  const responses = createErrorResponses([...own]);
  const schemas = createSchemaRegistry();
  const described = [...new Set(services.map(({ file }) => file))].map(getFileComment);
  const paths = routes.map((route) => [route.path, { get: toOperation(route, schemas, responses) }] as const);
  return {
    openapi: "3.1.0",
    info: {
      title: name,
      version,
      description: [...described, httpDescription].join("\n\n"),
      license: { name: license, identifier: license },
    },
    servers: [{ url: "/", description: "The instance that serves this description." }],
    security: [],
    tags: services.map((service) => ({ name: service.name, description: getComment(service) })),
    paths: Object.fromEntries(paths),
    components: {
      schemas: Object.fromEntries([...schemas.named, ["Error", errorSchema] as const]),
      responses: responses.named,
      parameters: SHARED_PARAMETERS,
      headers: RESPONSE_HEADERS,
    },
  };
}

function toOperation(route: GetRoute, schemas: SchemaRegistry, responses: ErrorResponses): JsonObject {
  const { method } = route;
  const words = getComment(method);
  const { headers: ownHeaders, reasons } = getMethodOptions(method);
  const oneOf = listAlternativeNames(method.input);
  const alternatives = oneOf.map((name) => `\`${name}\``).join(", ");
  return omitEmpty({
    operationId: toOperationId(route),
    summary: firstSentence(words),
    description: oneOf.length === 0 ? words : `${words}\n\nAt least one of ${alternatives} is required.`,
    tags: [method.parent.name],
    "x-at-least-one-of": oneOf,
    parameters: toParameters(method.input, schemas),
    responses: {
      200: {
        description: getComment(method.output),
        headers: headersForStatus(200, ownHeaders),
        content: { "application/json": toResponseContent(route, schemas) },
      },
      304: {
        description: "What the caller has at hand is still right.",
        headers: headersForStatus(304, ownHeaders),
      },
      ...responses.forOperation(reasons),
    },
  });
}

/** A method's name; of a method with several paths, with the path's own part. */
function toOperationId({ method, path }: GetRoute): string {
  const paths = readGetRoutes(method.parent as DescService).filter((route) => route.method === method);
  return paths[0]?.path === path ? method.localName : `${method.localName}_${path.replace(/[^A-Za-z0-9]+/g, "_")}`;
}

/** The whole response, or the one field of it that alone is the answer. */
function toResponseContent({ method, responseBody }: GetRoute, schemas: SchemaRegistry): JsonObject {
  const { output } = method;
  if (responseBody === "") return { schema: schemas.forMessage(output), example: buildMessageExample(output) };
  const field = output.fields.find(({ name }) => name === responseBody);
  if (field === undefined) throw new Error(`${output.typeName} has no field ${responseBody}`);
  return { schema: schemas.forField(field), example: buildFieldExample(field, []) };
}
