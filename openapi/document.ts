import type { DescFile, DescService } from "@bufbuild/protobuf";
import { type GetRoute, readGetRoutes } from "../src/http/rest/get-routes.js";
import { rulesOfMethod } from "./contract-options.js";
import { firstSentence, wordsOf, wordsOfFile } from "./doc-comments.js";
import { createErrorResponses, type ErrorResponses, errorSchema } from "./error-responses.js";
import { exampleOfField, exampleOfMessage } from "./examples.js";
import { given, type Json } from "./json-object.js";
import { atLeastOneOf, parametersOf, sharedParameters } from "./parameters.js";
import { headers, headersOfStatus } from "./response-headers.js";
import { createSchemas, type Schemas } from "./schemas.js";

/** What a description says of the whole, as package.json has it. */
export interface About {
  readonly name: string;
  readonly version: string;
  /** SPDX identifier. */
  readonly license: string;
}

/** What holds over HTTP for every operation. */
const overHttp =
  `Over HTTP, a parameter's name may also be written in snake_case. An unknown one, and a single one given
twice, is an error; an optional one that is empty counts as not given. In an answer every field is there: nothing is null or left out.
\`HEAD\` answers like \`GET\` without a body. Any origin may ask (CORS). Errors have the body \`Error\`, always as JSON; at a path where
there is nothing it is \`PATH_NOT_FOUND\` with status 404.`.replaceAll("\n", " ");

/**
 * The OpenAPI 3.1 description of all methods in these files that google.api.http puts under GET, as the GET layer serves
 * them. The same files give the same description to the last byte.
 */
export function toOpenApi(files: readonly DescFile[], { name, version, license }: About): Json {
  const services = files.flatMap((file) => file.services.filter((service) => readGetRoutes(service).length > 0));
  const routes = services.flatMap(readGetRoutes);
  const own = new Set(routes.flatMap(({ method }) => rulesOfMethod(method).reasons));
  const responses = createErrorResponses([...own]);
  const schemas = createSchemas();
  const described = [...new Set(services.map(({ file }) => file))].map(wordsOfFile);
  const paths = routes.map((route) => [route.path, { get: operationOf(route, schemas, responses) }] as const);
  return {
    openapi: "3.1.0",
    info: {
      title: name,
      version,
      description: [...described, overHttp].join("\n\n"),
      license: { name: license, identifier: license },
    },
    servers: [{ url: "/", description: "The instance that serves this description." }],
    security: [],
    tags: services.map((service) => ({ name: service.name, description: wordsOf(service) })),
    paths: Object.fromEntries(paths),
    components: {
      schemas: Object.fromEntries([...schemas.named, ["Error", errorSchema] as const]),
      responses: responses.named,
      parameters: sharedParameters,
      headers,
    },
  };
}

function operationOf(route: GetRoute, schemas: Schemas, responses: ErrorResponses): Json {
  const { method } = route;
  const words = wordsOf(method);
  const { headers: ownHeaders, reasons } = rulesOfMethod(method);
  const oneOf = atLeastOneOf(method.input);
  const alternatives = oneOf.map((name) => `\`${name}\``).join(", ");
  return given({
    operationId: operationIdOf(route),
    summary: firstSentence(words),
    description: oneOf.length === 0 ? words : `${words}\n\nAt least one of ${alternatives} is required.`,
    tags: [method.parent.name],
    "x-at-least-one-of": oneOf,
    parameters: parametersOf(method.input, schemas),
    responses: {
      200: {
        description: wordsOf(method.output),
        headers: headersOfStatus(200, ownHeaders),
        content: { "application/json": bodyOf(route, schemas) },
      },
      304: {
        description: "What the caller has at hand is still right.",
        headers: headersOfStatus(304, ownHeaders),
      },
      ...responses.ofOperation(reasons),
    },
  });
}

/** A method's name; of a method with several paths, with the path's own part. */
function operationIdOf({ method, path }: GetRoute): string {
  const paths = readGetRoutes(method.parent as DescService).filter((route) => route.method === method);
  return paths[0]?.path === path ? method.localName : `${method.localName}_${path.replace(/[^A-Za-z0-9]+/g, "_")}`;
}

/** The whole response, or the one field of it that alone is the answer. */
function bodyOf({ method, responseBody }: GetRoute, schemas: Schemas): Json {
  const { output } = method;
  if (responseBody === "") return { schema: schemas.ofMessage(output), example: exampleOfMessage(output) };
  const field = output.fields.find(({ name }) => name === responseBody);
  if (field === undefined) throw new Error(`${output.typeName} has no field ${responseBody}`);
  return { schema: schemas.ofField(field), example: exampleOfField(field, []) };
}
