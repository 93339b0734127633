import { type DescEnum, type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import type { Kind } from "../gen/hop/rules/v1/rules_pb.js";
import { getFieldOptions } from "./contract-options.js";
import { getComment } from "./doc-comments.js";
import { listSpecifiedValues } from "./enum-values.js";
import { parseScalar } from "./examples.js";
import { componentRef, type JsonObject, omitEmpty } from "./json-object.js";

/** The schemas of one description. */
export interface SchemaRegistry {
  /** Those that have a name, under it: of messages, enums and kinds that were asked for. */
  readonly named: ReadonlyMap<string, JsonObject>;
  /** Of an answer. Every field is required: defaults are printed. Only members of a oneof can be missing. */
  forMessage(message: DescMessage): JsonObject;
  /** Of a field in an answer or a query, without words about it. */
  forField(field: DescField): JsonObject;
}

export function createSchemaRegistry(): SchemaRegistry {
  const named = new Map<string, JsonObject>();
  /** Whose schema stands under a name. */
  const owners = new Map<string, unknown>();

  function name(wanted: string, owner: unknown, make: () => JsonObject): JsonObject {
    const known = owners.get(wanted);
    if (known === undefined) {
      owners.set(wanted, owner);
      // Its place is kept, since it may refer to itself.
      named.set(wanted, {});
      named.set(wanted, make());
    } else if (known !== owner) throw new Error(`two schemas want the name ${wanted}`);
    return componentRef("schemas", wanted);
  }

  function forMessage(message: DescMessage): JsonObject {
    return name(toSchemaName(message), message, () => {
      const { fields } = message;
      return omitEmpty({
        type: "object",
        description: getComment(message),
        properties: Object.fromEntries(
          fields.map((field) => [field.jsonName, { ...forField(field), description: getComment(field) }]),
        ),
        required: fields.filter(({ oneof }) => oneof === undefined).map(({ jsonName }) => jsonName),
      });
    });
  }

  function ofEnum(type: DescEnum): JsonObject {
    return name(toSchemaName(type), type, () => {
      const values = listSpecifiedValues(type);
      const words = values.map((value) => `- \`${value.name}\`: ${getComment(value)}`);
      return omitEmpty({
        type: "string",
        description: [getComment(type), words.join("\n")].join("\n\n"),
        enum: values.map((value) => value.name),
      });
    });
  }

  /** A kind has no type of its own: it is that of the fields that are of this kind, and of all of them the same. */
  function ofKind(kind: Kind, scalar: ScalarType): JsonObject {
    return name(kind.name, `${kind.name} ${ScalarType[scalar]}`, () => {
      const { description, pattern, values, format, minimum, below, example } = kind;
      return {
        ...toScalarSchema(scalar),
        ...omitEmpty({ description, pattern, enum: values, format, minimum, exclusiveMaximum: below }),
        ...(example === "" ? {} : { examples: [parseScalar(scalar, example)] }),
      };
    });
  }

  function ofValue(field: DescField): JsonObject {
    if (field.message !== undefined) return forMessage(field.message);
    if (field.enum !== undefined) return ofEnum(field.enum);
    const { kind, orEmpty } = getFieldOptions(field);
    const scalar = field.scalar as ScalarType;
    const schema = kind === undefined ? toScalarSchema(scalar) : ofKind(kind, scalar);
    return orEmpty ? { anyOf: [schema, { type: "string", const: "" }] } : schema;
  }

  function forField(field: DescField): JsonObject {
    if (field.fieldKind === "list") return { type: "array", items: ofValue(field) };
    if (field.fieldKind !== "map") return ofValue(field);
    const keys = getFieldOptions(field).keyKind?.values ?? [];
    const value = ofValue(field);
    if (keys.length === 0) return { type: "object", additionalProperties: value };
    return {
      type: "object",
      properties: Object.fromEntries(keys.map((key) => [key, value])),
      additionalProperties: false,
    };
  }

  return { named, forMessage, forField };
}

/** A type's name without its package. */
function toSchemaName({ typeName, file }: DescMessage | DescEnum): string {
  return typeName.slice(file.proto.package.length + 1).replaceAll(".", "");
}

/** As the GET layer prints and reads it: 64-bit integers are numbers, and none that a double does not hold. */
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
