import type { DescEnum, DescEnumValue } from "@bufbuild/protobuf";

/** The values of an enum but the one that stands for none, which by convention (and `buf lint`) ends in `_UNSPECIFIED`. */
export function listSpecifiedValues({ values }: DescEnum): DescEnumValue[] {
  return values.filter(({ name }) => !name.endsWith("_UNSPECIFIED"));
}
