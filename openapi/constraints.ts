import type { DescField } from "@bufbuild/protobuf";
import type { FieldRules } from "./gen/buf/validate/validate_pb.js";
import { type JsonObject, omitEmpty } from "./json-object.js";

/** Returns the JSON Schema keywords for the `buf.validate` rules of one value. CEL rules have no counterpart. */
export function toConstraints(rules: FieldRules | undefined): JsonObject {
  switch (rules?.type.case) {
    case "string": {
      const { in: values, minLen, maxLen } = rules.type.value;
      const pattern = toEcmaPattern(rules.type.value.pattern);
      return omitEmpty({ pattern, enum: values, minLength: toLength(minLen), maxLength: toLength(maxLen) });
    }
    case "double":
    case "int64":
    case "uint32": {
      const { lessThan, greaterThan } = rules.type.value;
      return omitEmpty({
        minimum: greaterThan.case === "gte" ? Number(greaterThan.value) : undefined,
        exclusiveMinimum: greaterThan.case === "gt" ? Number(greaterThan.value) : undefined,
        maximum: lessThan.case === "lte" ? Number(lessThan.value) : undefined,
        exclusiveMaximum: lessThan.case === "lt" ? Number(lessThan.value) : undefined,
      });
    }
    default:
      return {};
  }
}

/** Returns a pattern of RE2 as one of ECMA-262, which has no flag in a pattern: `(?i)ab` becomes `[aA][bB]`. */
function toEcmaPattern(pattern: string): string {
  if (!pattern.startsWith("(?i)")) return pattern;
  return pattern.slice(4).replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`);
}

function toLength(length: bigint): number | undefined {
  return length === 0n ? undefined : Number(length);
}

/** Returns the first example in the rules of one value, as JSON prints it. */
export function getRuleExample(rules: FieldRules | undefined, { enum: enumType }: DescField): unknown {
  switch (rules?.type.case) {
    case "string":
    case "bool":
    case "double":
    case "uint32":
      return rules.type.value.example[0];
    case "int64": {
      const [example] = rules.type.value.example;
      return example === undefined ? undefined : Number(example);
    }
    case "enum": {
      const [example] = rules.type.value.example;
      return enumType?.values.find(({ number }) => number === example)?.name;
    }
    default:
      return undefined;
  }
}
