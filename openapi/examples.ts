import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { getFieldOptions } from "./contract-options.js";
import { listSpecifiedValues } from "./enum-values.js";
import type { JsonObject } from "./json-object.js";

/** The example that the contract has of a field's value; undefined: none. */
export function getScalarExample(field: DescField): unknown {
  const { example, kind } = getFieldOptions(field);
  const text = example || kind?.example;
  if (text === undefined || text === "") return undefined;
  return field.scalar === undefined ? text : parseScalar(field.scalar, text);
}

/** An answer made of the examples of its fields, and of defaults where there are none. Throws for one that holds itself. */
export function buildMessageExample(message: DescMessage, within: readonly DescMessage[] = []): JsonObject {
  if (within.includes(message)) throw new Error(`${message.typeName} contains itself and cannot be printed`);
  const inner = [...within, message];
  // Of a oneof one member at most is printed.
  const fields = message.fields.filter(({ oneof }, index) => {
    return oneof === undefined || message.fields.findIndex((field) => field.oneof === oneof) === index;
  });
  return Object.fromEntries(fields.map((field) => [field.jsonName, buildFieldExample(field, inner)]));
}

/** The same of one field alone. */
export function buildFieldExample(field: DescField, within: readonly DescMessage[]): unknown {
  if (field.fieldKind === "map") return {};
  if (field.fieldKind !== "list") return buildValueExample(field, within);
  // A list of texts or numbers is empty more often than not.
  return field.message !== undefined || getFieldOptions(field).example !== "" ? [buildValueExample(field, within)] : [];
}

function buildValueExample(field: DescField, within: readonly DescMessage[]): unknown {
  if (field.message !== undefined) return buildMessageExample(field.message, within);
  const example = getScalarExample(field);
  if (example !== undefined) return example;
  if (field.enum !== undefined) return listSpecifiedValues(field.enum)[0]?.name;
  return parseScalar(field.scalar as ScalarType, "");
}

/** A value from how it stands in the contract; from nothing, the type's default. */
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
