import type { DescEnum, DescField } from "@bufbuild/protobuf";
import { file_buf_validate_validate as standardFile } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { describe, expect, test } from "vitest";
import { file_buf_validate_validate as vendoredFile } from "../../../openapi/gen/buf/validate/validate_pb.js";

// proto/buf/validate/validate.proto declares a part of the standard file, and declares nothing differently.

function describeField({ proto, oneof }: DescField): unknown {
  const { name, number, type, label, typeName } = proto;
  return { name, number, type, label, typeName, oneof: oneof?.name };
}

function describeEnum({ values }: DescEnum): unknown {
  return values.map(({ name, number }) => ({ name, number }));
}

describe("the vendored part of buf.validate", () => {
  test("has the package, syntax and language options of the standard", () => {
    const { package: name, syntax, options } = vendoredFile.proto;
    const standard = standardFile.proto;
    expect({ name, syntax, ...options }).toEqual({
      name: standard.package,
      syntax: standard.syntax,
      ...standard.options,
    });
  });

  test.each(vendoredFile.messages.map((message) => [message.name, message] as const))(
    "declares %s alike",
    (_, message) => {
      const standard = standardFile.messages.find(({ typeName }) => typeName === message.typeName);
      for (const field of message.fields) {
        const counterpart = standard?.fields.find(({ number }) => number === field.number);
        expect(counterpart && describeField(counterpart)).toEqual(describeField(field));
      }
    },
  );

  test.each(vendoredFile.enums.map((type) => [type.name, type] as const))("declares %s alike", (_, type) => {
    const standard = standardFile.enums.find(({ typeName }) => typeName === type.typeName);
    expect(standard && describeEnum(standard)).toEqual(describeEnum(type));
  });

  test("declares the extensions alike", () => {
    expect(vendoredFile.extensions.map(({ proto }) => proto.name)).toEqual(["message", "field"]);
    for (const extension of vendoredFile.extensions) {
      const standard = standardFile.extensions.find(({ typeName }) => typeName === extension.typeName);
      const { number, type, typeName, extendee, label } = extension.proto;
      expect(standard?.proto).toMatchObject({ number, type, typeName, extendee, label });
    }
  });
});
