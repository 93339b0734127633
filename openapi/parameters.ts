import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { getFieldOptions, listAlternativeFields } from "./contract-options.js";
import { getComment } from "./doc-comments.js";
import { getScalarExample } from "./examples.js";
import { componentRef, type JsonObject, omitEmpty } from "./json-object.js";
import type { SchemaRegistry } from "./schemas.js";

/** Parameters of every operation. */
export const SHARED_PARAMETERS = {
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
} satisfies Record<string, JsonObject>;

/** The fields of a request, then what every operation takes. */
export function toParameters(request: DescMessage, schemas: SchemaRegistry): JsonObject[] {
  const shared = Object.keys(SHARED_PARAMETERS).map((name) => componentRef("parameters", name));
  return [...request.fields.map((field) => toParameter(field, schemas)), ...shared];
}

function toParameter(field: DescField, schemas: SchemaRegistry): JsonObject {
  const { required, defaultValue } = getFieldOptions(field);
  const isMap = field.fieldKind === "map";
  const example = isMap ? {} : getScalarExample(field);
  return omitEmpty({
    name: field.jsonName,
    in: "query",
    description: getComment(field),
    required: required || undefined,
    style: isMap ? "deepObject" : undefined,
    explode: isMap ? true : undefined,
    schema: { ...schemas.forField(field), ...omitEmpty({ default: defaultValue }) },
    example: field.fieldKind === "list" && example !== undefined ? [example] : example,
  });
}

/** Names of parameters at least one of which must be given. OpenAPI has no word for it. */
export function listAlternativeNames(request: DescMessage): string[] {
  return listAlternativeFields(request).map(({ jsonName }) => jsonName);
}
