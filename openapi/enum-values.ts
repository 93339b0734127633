import type { DescEnum, DescEnumValue } from "@bufbuild/protobuf";

/** Returns the values of an enum without the unspecified one, whose name by convention ends in `_UNSPECIFIED`. */
export function listSpecifiedValues({ values }: DescEnum): DescEnumValue[] {
  return values.filter(({ name }) => !name.endsWith("_UNSPECIFIED"));
}
