import type { DescField, DescMessage, DescMethod } from "@bufbuild/protobuf";
import { getFieldOptions, getMaxListItems, listAlternativeFields, listExclusiveFields } from "./contract-options.js";
import { getComment } from "./doc-comments.js";
import { getValueExample, parseScalar } from "./examples.js";
import { componentRef, type JsonObject, omitEmpty } from "./json-object.js";
import type { SchemaRegistry } from "./schemas.js";

/** Parameters that operations share. */
const SHARED_PARAMETERS = {
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
  LastEventId: {
    name: "Last-Event-ID",
    in: "header",
    description: "`id` of the last event, to resume a stream. Wins over the parameter for it.",
    schema: { type: "string" },
  },
} satisfies Record<string, JsonObject>;

type SharedParameter = keyof typeof SHARED_PARAMETERS;

const UNARY_PARAMETERS: readonly SharedParameter[] = ["Refresh", "RequestId", "IfNoneMatch"];
const STREAM_PARAMETERS: readonly SharedParameter[] = ["Refresh", "RequestId", "LastEventId"];

/** Returns the shared parameters that some of the methods have. */
export function listSharedParameters(methods: readonly DescMethod[]): JsonObject {
  const names = new Set(methods.flatMap(listSharedNames));
  return Object.fromEntries(Object.entries(SHARED_PARAMETERS).filter(([name]) => names.has(name as SharedParameter)));
}

function listSharedNames({ methodKind }: DescMethod): readonly SharedParameter[] {
  return methodKind === "unary" ? UNARY_PARAMETERS : STREAM_PARAMETERS;
}

/** Returns the parameters for the fields of a request, without those that hold messages, followed by the shared ones. */
export function toParameters(method: DescMethod, schemas: SchemaRegistry): JsonObject[] {
  const maxListItems = getMaxListItems(method);
  const own = listQueryFields(method.input).map((field) => toParameter(field, schemas, maxListItems));
  return [...own, ...listSharedNames(method).map((name) => componentRef("parameters", name))];
}

function listQueryFields({ fields }: DescMessage): DescField[] {
  return fields.filter(({ message }) => message === undefined);
}

function toParameter(field: DescField, schemas: SchemaRegistry, maxListItems: number | undefined): JsonObject {
  const { isRequiredInQuery, defaultValue: defaultText } = getFieldOptions(field);
  const defaultValue =
    defaultText === "" || field.scalar === undefined ? defaultText : parseScalar(field.scalar, defaultText);
  const isMap = field.fieldKind === "map";
  const isList = field.fieldKind === "list";
  const example = isMap ? {} : getValueExample(field);
  return omitEmpty({
    name: field.jsonName,
    in: "query",
    description: getComment(field),
    required: isRequiredInQuery || undefined,
    style: isMap ? "deepObject" : isList ? "form" : undefined,
    explode: isMap || isList ? true : undefined,
    schema: {
      ...schemas.forParameter(field),
      ...omitEmpty({ default: defaultValue, maxItems: isList ? maxListItems : undefined }),
    },
    example: isList && example !== undefined ? [example] : example,
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
  const inQuery = listQueryFields(request);
  const toNames = (fields: readonly DescField[]) =>
    fields.filter((field) => inQuery.includes(field)).map(({ jsonName }) => jsonName);
  const alternatives = toNames(listAlternativeFields(request));
  const exclusives = toNames(listExclusiveFields(request));
  const quote = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(", ");
  const sentences: string[] = [];
  if (alternatives.length > 0) sentences.push(`At least one of ${quote(alternatives)} is required.`);
  if (exclusives.length > 0) sentences.push(`At most one of ${quote(exclusives)} may be given.`);
  return { alternatives, exclusives, sentences };
}
