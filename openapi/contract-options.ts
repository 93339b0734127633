import {
  type DescEnum,
  type DescEnumValue,
  type DescField,
  type DescMessage,
  type DescMethod,
  getOption,
  hasOption,
} from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import {
  type FieldRules,
  field as fieldRules,
  Ignore,
  message as messageRules,
} from "./gen/buf/validate/validate_pb.js";
import { FieldBehavior, field_behavior as fieldBehavior } from "./gen/google/api/field_behavior_pb.js";
import { event_stream as eventStreamOption } from "./gen/hop/http/v1/event_stream_pb.js";
import {
  type Operation,
  operation as operationOption,
  property as propertyOption,
  type Schema,
  schema as schemaOption,
} from "./gen/hop/openapi/v1/options_pb.js";

/** What the contract's annotations state about a field, beyond its type. */
export interface FieldOptions {
  readonly isRequired: boolean;
  /** Whether a query needs it: it does if the field is required, and by an option of its own. */
  readonly isRequiredInQuery: boolean;
  /** Rules of the value: of a list's items, of a map's values. */
  readonly rules: FieldRules | undefined;
  /** Rules of a map's keys. */
  readonly keyRules: FieldRules | undefined;
  /** Largest number of items of a list; undefined: no limit. */
  readonly maxItems: number | undefined;
  /** Whether the rules do not apply to an empty value. */
  readonly isEmptyAllowed: boolean;
  /** Shared schema of the value: of a list's items, of a map's values. */
  readonly schema: Schema | undefined;
  /** Applies when a request leaves the field empty; empty if there is none. */
  readonly defaultValue: string;
}

/** @throws Error when the field refers to a schema that its file does not declare, or annotations contradict. */
export function getFieldOptions(field: DescField): FieldOptions {
  const rules = hasOption(field, fieldRules) ? getOption(field, fieldRules) : undefined;
  const { schema, defaultValue, requiredInQuery } = getOption(field, propertyOption);
  const isRequired = getOption(field, fieldBehavior).includes(FieldBehavior.REQUIRED);
  if (isRequired !== (rules?.required ?? false)) {
    throw new Error(`${toFullName(field)}: google.api.field_behavior and buf.validate disagree about "required"`);
  }
  return {
    isRequired,
    isRequiredInQuery: isRequired || requiredInQuery,
    ...splitRules(rules),
    isEmptyAllowed: rules?.ignore === Ignore.IF_ZERO_VALUE,
    schema: schema === "" ? undefined : findSchema(field, schema),
    defaultValue,
  };
}

function splitRules(rules: FieldRules | undefined): Pick<FieldOptions, "rules" | "keyRules" | "maxItems"> {
  const none = { keyRules: undefined, maxItems: undefined };
  switch (rules?.type.case) {
    case "repeated": {
      const { items, maxItems } = rules.type.value;
      return { ...none, rules: items, maxItems: maxItems === 0n ? undefined : Number(maxItems) };
    }
    case "map":
      return { ...none, rules: rules.type.value.values, keyRules: rules.type.value.keys };
    default:
      return { ...none, rules };
  }
}

function findSchema(field: DescField, name: string): Schema {
  const schema = getOption(field.parent.file, schemaOption).find((candidate) => candidate.name === name);
  if (schema !== undefined) return schema;
  throw new Error(`${toFullName(field)} refers to schema ${name}, which its file does not declare`);
}

function toFullName({ parent, name }: DescField): string {
  return `${parent.typeName}.${name}`;
}

export function getOperationOptions(method: DescMethod): Operation {
  return getOption(method, operationOption);
}

/** Returns how many items all lists of a query may have together; undefined: no limit. */
export function getMaxListItems(method: DescMethod): number | undefined {
  return getOption(method, eventStreamOption).maxListItems || undefined;
}

/** Returns whether a message may be without this field: a message, a member of a oneof or an `optional` field. */
export function mayBeUnset({ presence }: DescField): boolean {
  return presence === FeatureSet_FieldPresence.EXPLICIT;
}

/** Matches a CEL expression that requires at least one of some fields, such as `has(this.a) || has(this.b)`. */
const AT_LEAST_ONE_OF = /^has\(this\.\w+\)(?: \|\| has\(this\.\w+\))+$/;
/** Matches a CEL expression that excludes two fields together: `!(has(this.a) && has(this.b))`. */
const AT_MOST_ONE_OF = /^!\(has\(this\.\w+\) && has\(this\.\w+\)\)$/;

/**
 * Returns the fields of which a request must set at least one. The rules of `buf.validate` include "exactly one", but
 * "at least one" takes a CEL expression; other expressions have no counterpart in OpenAPI.
 */
export function listAlternativeFields(message: DescMessage): DescField[] {
  return listFieldsOfExpressions(message, AT_LEAST_ONE_OF);
}

/** Returns the two fields of which a request may set only one. */
export function listExclusiveFields(message: DescMessage): DescField[] {
  return listFieldsOfExpressions(message, AT_MOST_ONE_OF);
}

function listFieldsOfExpressions(message: DescMessage, pattern: RegExp): DescField[] {
  const expressions = getOption(message, messageRules).cel.map(({ expression }) => expression);
  const names = expressions
    .filter((expression) => pattern.test(expression))
    .flatMap((expression) => [...expression.matchAll(/this\.(\w+)/g)].map(([, name]) => name));
  return names.map((name) => {
    const field = message.fields.find((candidate) => candidate.name === name);
    if (field === undefined) throw new Error(`${message.typeName} has no field ${name}`);
    return field;
  });
}

/** Returns the values of an enum without the unspecified one, whose name by convention ends in `_UNSPECIFIED`. */
export function listSpecifiedValues({ values }: DescEnum): DescEnumValue[] {
  return values.filter(({ name }) => !name.endsWith("_UNSPECIFIED"));
}
