import { type DescEnum, type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { toConstraints } from "./constraints.js";
import { getFieldOptions, listSpecifiedValues, mayBeUnset } from "./contract-options.js";
import { getComment } from "./doc-comments.js";
import { parseScalar } from "./examples.js";
import type { Schema } from "./gen/hop/openapi/v1/options_pb.js";
import { componentRef, type JsonObject, omitEmpty } from "./json-object.js";

/** The schemas of one description. */
export interface SchemaRegistry {
  /** Component schemas by name: the messages, enums and shared schemas requested so far. */
  readonly named: ReadonlyMap<string, JsonObject>;
  /** Returns the schema of a response. Fields are required, because defaults are printed, except those that may be unset. */
  forMessage(message: DescMessage): JsonObject;
  /** Returns the schema of a field in a response, without its description. */
  forField(field: DescField): JsonObject;
  /** Returns the schema of a query parameter. An empty parameter counts as absent, so no schema allows it. */
  forParameter(field: DescField): JsonObject;
}

type Usage = "response" | "parameter";

export function createSchemaRegistry(): SchemaRegistry {
  const named = new Map<string, JsonObject>();
  /** What each name stands for; the same owner may request its schema again. */
  const owners = new Map<string, unknown>();

  function register(name: string, owner: unknown, build: () => JsonObject): JsonObject {
    const current = owners.get(name);
    if (current === undefined) {
      owners.set(name, owner);
      // Reserves the position, because the schema may refer to itself.
      named.set(name, {});
      named.set(name, build());
    } else if (current !== owner) throw new Error(`two schemas share the name ${name}`);
    return componentRef("schemas", name);
  }

  function forMessage(message: DescMessage): JsonObject {
    return register(toSchemaName(message), message, () => {
      const { fields } = message;
      return omitEmpty({
        type: "object",
        description: getComment(message),
        properties: Object.fromEntries(
          fields.map((field) => [
            field.jsonName,
            { ...toFieldSchema(field, "response"), description: getComment(field) },
          ]),
        ),
        required: fields.filter((field) => !mayBeUnset(field)).map(({ jsonName }) => jsonName),
      });
    });
  }

  function forEnum(type: DescEnum): JsonObject {
    return register(toSchemaName(type), type, () => {
      const values = listSpecifiedValues(type);
      const items = values.map((value) => `- \`${value.name}\`: ${getComment(value)}`);
      return omitEmpty({
        type: "string",
        description: [getComment(type), items.join("\n")].join("\n\n"),
        enum: values.map((value) => value.name),
      });
    });
  }

  /** Registers a shared schema. Fields that refer to it must agree on type and constraints. */
  function forSharedSchema(
    { name, description, format, example, furtherExamples }: Schema,
    scalar: ScalarType,
    constraints: JsonObject,
  ) {
    const { pattern, enum: values, ...others } = constraints;
    const schema = {
      ...toScalarSchema(scalar),
      ...omitEmpty({ description, pattern, enum: values, format }),
      ...others,
      ...(example === "" ? {} : { examples: [example, ...furtherExamples].map((text) => parseScalar(scalar, text)) }),
    };
    return register(name, JSON.stringify(schema), () => schema);
  }

  function toValueSchema(field: DescField, usage: Usage): JsonObject {
    if (field.message !== undefined) return forMessage(field.message);
    if (field.enum !== undefined) return forEnum(field.enum);
    const { rules, schema: shared, isEmptyAllowed } = getFieldOptions(field);
    const scalar = field.scalar as ScalarType;
    const constraints = toConstraints(rules);
    const schema =
      shared === undefined
        ? { ...toScalarSchema(scalar), ...constraints }
        : forSharedSchema(shared, scalar, constraints);
    const isTextOrEmpty = usage === "response" && isEmptyAllowed && scalar === ScalarType.STRING;
    return isTextOrEmpty ? { anyOf: [schema, { type: "string", const: "" }] } : schema;
  }

  function toFieldSchema(field: DescField, usage: Usage): JsonObject {
    const value = toValueSchema(field, usage);
    if (field.fieldKind === "list") {
      return omitEmpty({ type: "array", items: value, maxItems: getFieldOptions(field).maxItems });
    }
    if (field.fieldKind !== "map") return value;
    const { enum: keys } = toConstraints(getFieldOptions(field).keyRules);
    if (!Array.isArray(keys)) return { type: "object", additionalProperties: value };
    return {
      type: "object",
      properties: Object.fromEntries(keys.map((key: string) => [key, value])),
      additionalProperties: false,
    };
  }

  return {
    named,
    forMessage,
    forField: (field) => toFieldSchema(field, "response"),
    forParameter: (field) => toFieldSchema(field, "parameter"),
  };
}

/** Returns a type's name without its package. */
function toSchemaName({ typeName, file }: DescMessage | DescEnum): string {
  return typeName.slice(file.proto.package.length + 1).replaceAll(".", "");
}

/** Returns the schema of a scalar as the GET layer prints it: 64-bit integers are numbers within the safe range. */
function toScalarSchema(scalar: ScalarType): JsonObject {
  switch (scalar) {
    case ScalarType.STRING:
      return { type: "string" };
    case ScalarType.BOOL:
      return { type: "boolean" };
    case ScalarType.BYTES:
      return { type: "string", contentEncoding: "base64" };
    case ScalarType.DOUBLE:
      return { type: "number", format: "double" };
    case ScalarType.FLOAT:
      return { type: "number", format: "float" };
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return { type: "integer", format: "int32" };
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return { type: "integer", minimum: 0, maximum: 2 ** 32 - 1 };
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return {
        ...{ type: "integer", format: "int64" },
        ...{ minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER },
      };
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER };
  }
}
