import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { alternativesOf, rulesOf } from "./contract-options.js";
import { wordsOf } from "./doc-comments.js";
import { exampleOf } from "./examples.js";
import { given, type Json, ref } from "./json-object.js";
import type { Schemas } from "./schemas.js";

/** Parameters of every operation. */
export const sharedParameters = {
  Refresh: {
    name: "refresh",
    in: "query",
    description: "Accepted and without effect: clients of the older server send it.",
    deprecated: true,
    schema: { type: "string" },
  },
  RequestId: {
    name: "X-Request-Id",
    in: "header",
    description: "Id of the request, for the log. One that is not of this form is replaced.",
    schema: { type: "string", pattern: "^[A-Za-z0-9._-]{1,128}$" },
  },
  IfNoneMatch: {
    name: "If-None-Match",
    in: "header",
    description: "The `ETag` of an answer that is at hand. Where it is still right, the answer is 304 without a body.",
    schema: { type: "string" },
  },
} satisfies Record<string, Json>;

/** The fields of a request, then what every operation takes. */
export function parametersOf(request: DescMessage, schemas: Schemas): Json[] {
  const shared = Object.keys(sharedParameters).map((name) => ref("parameters", name));
  return [...request.fields.map((field) => parameterOf(field, schemas)), ...shared];
}

function parameterOf(field: DescField, schemas: Schemas): Json {
  const { required, defaultValue } = rulesOf(field);
  const isMap = field.fieldKind === "map";
  const example = isMap ? {} : exampleOf(field);
  return given({
    name: field.jsonName,
    in: "query",
    description: wordsOf(field),
    required: required || undefined,
    style: isMap ? "deepObject" : undefined,
    explode: isMap ? true : undefined,
    schema: { ...schemas.ofField(field), ...given({ default: defaultValue }) },
    example: field.fieldKind === "list" && example !== undefined ? [example] : example,
  });
}

/** Names of parameters at least one of which must be given. OpenAPI has no word for it. */
export function atLeastOneOf(request: DescMessage): string[] {
  return alternativesOf(request).map(({ jsonName }) => jsonName);
}
