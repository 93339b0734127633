import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { rulesOf } from "./contract-options.js";
import { answeredValues } from "./enum-values.js";
import type { Json } from "./json-object.js";

/** The example that the contract has of a field's value; undefined: none. */
export function exampleOf(field: DescField): unknown {
  const { example, kind } = rulesOf(field);
  const text = example || kind?.example;
  if (text === undefined || text === "") return undefined;
  return field.scalar === undefined ? text : typedValue(field.scalar, text);
}

/** An answer made of the examples of its fields, and of defaults where there are none. Throws for one that holds itself. */
export function exampleOfMessage(message: DescMessage, within: readonly DescMessage[] = []): Json {
  if (within.includes(message)) throw new Error(`${message.typeName} contains itself and cannot be printed`);
  const inner = [...within, message];
  // Of a oneof one member at most is printed.
  const fields = message.fields.filter(({ oneof }, index) => {
    return oneof === undefined || message.fields.findIndex((field) => field.oneof === oneof) === index;
  });
  return Object.fromEntries(fields.map((field) => [field.jsonName, exampleOfField(field, inner)]));
}

/** The same of one field alone. */
export function exampleOfField(field: DescField, within: readonly DescMessage[]): unknown {
  if (field.fieldKind === "map") return {};
  if (field.fieldKind !== "list") return exampleValueOf(field, within);
  // A list of texts or numbers is empty more often than not.
  return field.message !== undefined || rulesOf(field).example !== "" ? [exampleValueOf(field, within)] : [];
}

function exampleValueOf(field: DescField, within: readonly DescMessage[]): unknown {
  if (field.message !== undefined) return exampleOfMessage(field.message, within);
  const example = exampleOf(field);
  if (example !== undefined) return example;
  if (field.enum !== undefined) return answeredValues(field.enum)[0]?.name;
  return typedValue(field.scalar as ScalarType, "");
}

/** A value from how it stands in the contract; from nothing, the type's default. */
export function typedValue(scalar: ScalarType, text: string): unknown {
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
