import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { getFieldOptions, listAlternativeFields, listExclusiveFields } from "./contract-options.js";
import { getComment } from "./doc-comments.js";
import { getValueExample } from "./examples.js";
import { componentRef, type JsonObject, omitEmpty } from "./json-object.js";
import type { SchemaRegistry } from "./schemas.js";

/** Parameters of every operation. */
export const SHARED_PARAMETERS = {
  Refresh: {
    name: "refresh",
    in: "query",
    description: "Has no effect: accepted because clients of the older server send it.",
    deprecated: true,
    schema: { type: "string" },
  },
  RequestId: {
    name: "X-Request-Id",
    in: "header",
    description: "ID of the request, for the log. A value of another form is replaced.",
    schema: { type: "string", pattern: "^[A-Za-z0-9._-]{1,128}$" },
  },
  IfNoneMatch: {
    name: "If-None-Match",
    in: "header",
    description: "`ETag` of a cached response. If it is still current, the response is 304 without a body.",
    schema: { type: "string" },
  },
} satisfies Record<string, JsonObject>;

/** Returns the parameters for the fields of a request, followed by those of every operation. */
export function toParameters(request: DescMessage, schemas: SchemaRegistry): JsonObject[] {
  const shared = Object.keys(SHARED_PARAMETERS).map((name) => componentRef("parameters", name));
  return [...request.fields.map((field) => toParameter(field, schemas)), ...shared];
}

function toParameter(field: DescField, schemas: SchemaRegistry): JsonObject {
  const { isRequired, defaultValue } = getFieldOptions(field);
  const isMap = field.fieldKind === "map";
  const example = isMap ? {} : getValueExample(field);
  return omitEmpty({
    name: field.jsonName,
    in: "query",
    description: getComment(field),
    required: isRequired || undefined,
    style: isMap ? "deepObject" : undefined,
    explode: isMap ? true : undefined,
    schema: { ...schemas.forParameter(field), ...omitEmpty({ default: defaultValue }) },
    example: field.fieldKind === "list" && example !== undefined ? [example] : example,
  });
}

/** Parameters that depend on each other. OpenAPI has no keyword for this. */
export interface ParameterGroups {
  /** At least one of these is required. */
  readonly alternatives: readonly string[];
  /** At most one of these may be given. */
  readonly exclusives: readonly string[];
  /** Both as sentences. */
  readonly sentences: readonly string[];
}

export function listParameterGroups(request: DescMessage): ParameterGroups {
  const alternatives = listAlternativeFields(request).map(({ jsonName }) => jsonName);
  const exclusives = listExclusiveFields(request).map(({ jsonName }) => jsonName);
  const quote = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(", ");
  const sentences: string[] = [];
  if (alternatives.length > 0) sentences.push(`At least one of ${quote(alternatives)} is required.`);
  if (exclusives.length > 0) sentences.push(`At most one of ${quote(exclusives)} may be given.`);
  return { alternatives, exclusives, sentences };
}
