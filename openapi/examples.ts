import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { getRuleExample } from "./constraints.js";
import { getFieldOptions, listSpecifiedValues, mayBeUnset } from "./contract-options.js";
import type { JsonObject } from "./json-object.js";

/** Returns the example of a field's value: the field's own, or that of its shared schema. */
export function getValueExample(field: DescField): unknown {
  const { rules, schema } = getFieldOptions(field);
  const example = getRuleExample(rules, field);
  if (example !== undefined || schema === undefined || schema.example === "") return example;
  return field.scalar === undefined ? schema.example : parseScalar(field.scalar, schema.example);
}

/**
 * Builds an example response from the examples of the fields; fields without one get their default.
 * @throws Error for a message that contains itself.
 */
export function buildMessageExample(message: DescMessage, ancestors: readonly DescMessage[] = []): JsonObject {
  if (ancestors.includes(message)) throw new Error(`${message.typeName} contains itself and cannot be printed`);
  const path = [...ancestors, message];
  const fields = message.fields.filter((field, index) => {
    const { oneof } = field;
    // At most one member of a oneof is printed, and what is set only on request is not part of the usual response.
    return oneof === undefined
      ? !mayBeUnset(field)
      : message.fields.findIndex((other) => other.oneof === oneof) === index;
  });
  return Object.fromEntries(fields.map((field) => [field.jsonName, buildFieldExample(field, path)]));
}

/** Builds the example of one field, as `buildMessageExample` does. */
export function buildFieldExample(field: DescField, ancestors: readonly DescMessage[]): unknown {
  if (field.fieldKind === "map") return {};
  if (field.fieldKind !== "list") return buildValueExample(field, ancestors);
  // Lists of scalars are usually empty, so only an example of the field itself fills one.
  const hasItem = field.message !== undefined || getRuleExample(getFieldOptions(field).rules, field) !== undefined;
  return hasItem ? [buildValueExample(field, ancestors)] : [];
}

function buildValueExample(field: DescField, ancestors: readonly DescMessage[]): unknown {
  if (field.message !== undefined) return buildMessageExample(field.message, ancestors);
  const example = getValueExample(field);
  if (example !== undefined) return example;
  if (field.enum !== undefined) return listSpecifiedValues(field.enum)[0]?.name;
  return parseScalar(field.scalar as ScalarType, "");
}

/** Parses a value as the contract writes it; empty text gives the type's default. */
export function parseScalar(scalar: ScalarType, text: string): unknown {
  switch (scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return text;
    case ScalarType.BOOL:
      return text === "true";
    default:
      return Number(text);
  }
}
