import { type DescField, type DescMessage, type DescMethod, getOption } from "@bufbuild/protobuf";
import {
  type FieldRules,
  field as fieldOption,
  type Kind,
  kind as kindOption,
  type MessageRules,
  type MethodRules,
  message as messageOption,
  method as methodOption,
} from "../gen/hop/rules/v1/rules_pb.js";

/** What the contract says of a field beyond its type. */
export interface FieldOptions extends Omit<FieldRules, "kind" | "keyKind"> {
  readonly kind: Kind | undefined;
  readonly keyKind: Kind | undefined;
}

/** Throws where the field names a kind that its file does not have. */
export function getFieldOptions(field: DescField): FieldOptions {
  const rules = getOption(field, fieldOption);
  return { ...rules, kind: resolveKind(field, rules.kind), keyKind: resolveKind(field, rules.keyKind) };
}

function resolveKind(field: DescField, name: string): Kind | undefined {
  if (name === "") return undefined;
  const { file, typeName } = field.parent;
  const kind = getOption(file, kindOption).find((each) => each.name === name);
  if (kind === undefined) throw new Error(`${typeName}.${field.name} is of kind ${name}, which its file does not have`);
  return kind;
}

export function getMethodOptions(method: DescMethod): MethodRules {
  return getOption(method, methodOption);
}

/** Fields at least one of which a request must have. Throws where the request has no such field. */
export function listAlternativeFields(message: DescMessage): DescField[] {
  const { atLeastOneOf }: MessageRules = getOption(message, messageOption);
  return atLeastOneOf.map((name) => {
    const field = message.fields.find((each) => each.name === name);
    if (field === undefined) throw new Error(`${message.typeName} has no field ${name}`);
    return field;
  });
}
