import { create, createFileRegistry, type DescMessage, type DescService, setExtension } from "@bufbuild/protobuf";
import {
  DescriptorProtoSchema,
  EnumDescriptorProtoSchema,
  FieldDescriptorProtoSchema,
  FieldOptions_JSType,
  FieldOptionsSchema,
  FileDescriptorProtoSchema,
  FieldDescriptorProto_Label as Label,
  MethodDescriptorProtoSchema,
  MethodOptionsSchema,
  ServiceDescriptorProtoSchema,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";
import { file_google_api_annotations, http } from "../../../../gen/google/api/annotations_pb.js";
import { type HttpRule, HttpRuleSchema } from "../../../../gen/google/api/http_pb.js";

/** A contract with fields of every kind, created at run time, to test the generic layer beyond the service's contract. */
const PACKAGE = "test.kinds.v1";

const SCALARS = {
  double_value: Type.DOUBLE,
  float_value: Type.FLOAT,
  int64_value: Type.INT64,
  uint64_value: Type.UINT64,
  int32_value: Type.INT32,
  fixed64_value: Type.FIXED64,
  fixed32_value: Type.FIXED32,
  bool_value: Type.BOOL,
  string_value: Type.STRING,
  bytes_value: Type.BYTES,
  uint32_value: Type.UINT32,
  sfixed32_value: Type.SFIXED32,
  sfixed64_value: Type.SFIXED64,
  sint32_value: Type.SINT32,
  sint64_value: Type.SINT64,
} as const;

const MAPS = {
  by_text: [Type.STRING, Type.STRING],
  by_number: [Type.INT32, Type.BOOL],
  by_long: [Type.UINT64, Type.INT64],
  by_flag: [Type.BOOL, Type.DOUBLE],
} as const;

let number = 0;
function field(name: string, type: Type, more: Partial<{ typeName: string; label: Label; oneofIndex: number }> = {}) {
  number += 1;
  const jsonName = name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  return create(FieldDescriptorProtoSchema, { name, jsonName, number, type, label: Label.OPTIONAL, ...more });
}

const OPTIONAL = ["optional_text", "optional_double", "optional_color"] as const;
const COLOR = { typeName: `.${PACKAGE}.Color` };

const kinds = create(DescriptorProtoSchema, {
  name: "Kinds",
  field: [
    ...Object.entries(SCALARS).map(([name, type]) => field(name, type)),
    create(FieldDescriptorProtoSchema, {
      ...field("long_text", Type.INT64),
      options: create(FieldOptionsSchema, { jstype: FieldOptions_JSType.JS_STRING }),
    }),
    field("color", Type.ENUM, COLOR),
    ...Object.entries(SCALARS).map(([name, type]) => field(`repeated_${name}`, type, { label: Label.REPEATED })),
    field("repeated_color", Type.ENUM, { ...COLOR, label: Label.REPEATED }),
    field("first_choice", Type.STRING, { oneofIndex: 0 }),
    field("second_choice", Type.INT32, { oneofIndex: 0 }),
    ...Object.keys(MAPS).map((name) =>
      field(name, Type.MESSAGE, { label: Label.REPEATED, typeName: `.${PACKAGE}.Kinds.${entryName(name)}` }),
    ),
    ...OPTIONAL.map((name, index) =>
      create(FieldDescriptorProtoSchema, {
        ...field(name, name === "optional_text" ? Type.STRING : name === "optional_double" ? Type.DOUBLE : Type.ENUM),
        ...(name === "optional_color" ? COLOR : {}),
        proto3Optional: true,
        oneofIndex: index + 1,
      }),
    ),
  ],
  oneofDecl: [{ name: "choice" }, ...OPTIONAL.map((name) => ({ name: `_${name}` }))],
  nestedType: Object.entries(MAPS).map(([name, [key, value]]) => ({
    name: entryName(name),
    field: [
      { name: "key", number: 1, type: key, label: Label.OPTIONAL },
      { name: "value", number: 2, type: value, label: Label.OPTIONAL },
    ],
    options: { mapEntry: true },
  })),
});

function entryName(name: string): string {
  return `${name.replace(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase())}Entry`;
}

/** The kinds of fields that GET both reads and prints. */
const plain = create(DescriptorProtoSchema, {
  name: "Plain",
  field: [
    field("double_value", Type.DOUBLE),
    field("bool_value", Type.BOOL),
    field("string_value", Type.STRING),
    field("uint32_value", Type.UINT32),
    field("repeated_string_value", Type.STRING, { label: Label.REPEATED }),
    field("repeated_uint32_value", Type.UINT32, { label: Label.REPEATED }),
  ],
});

/** The other kinds of fields that GET prints. */
const printed = create(DescriptorProtoSchema, {
  name: "Printed",
  field: [
    field("int64_value", Type.INT64),
    create(FieldDescriptorProtoSchema, {
      ...field("long_text", Type.INT64),
      options: create(FieldOptionsSchema, { jstype: FieldOptions_JSType.JS_STRING }),
    }),
    field("repeated_double_value", Type.DOUBLE, { label: Label.REPEATED }),
    field("repeated_color", Type.ENUM, { ...COLOR, label: Label.REPEATED }),
    field("first_choice", Type.STRING, { oneofIndex: 0 }),
    field("second_choice", Type.UINT32, { oneofIndex: 0 }),
    create(FieldDescriptorProtoSchema, {
      ...field("optional_double", Type.DOUBLE, { oneofIndex: 1 }),
      proto3Optional: true,
    }),
  ],
  oneofDecl: [{ name: "choice" }, { name: "_optional_double" }],
});

const nested = create(DescriptorProtoSchema, {
  name: "Nested",
  field: [
    field("plain", Type.MESSAGE, { typeName: `.${PACKAGE}.Plain` }),
    field("texts", Type.STRING, { label: Label.REPEATED }),
  ],
});

const loop = create(DescriptorProtoSchema, {
  name: "Loop",
  field: [field("loop", Type.MESSAGE, { typeName: `.${PACKAGE}.Loop`, label: Label.REPEATED })],
});

/** Creates a service with a method `Echo`, with or without an HTTP annotation; request and response are Plain. */
export function createTestService(
  rule: Partial<Omit<HttpRule, "$typeName">> | undefined,
  { clientStreaming = false } = {},
): DescService {
  const options = create(MethodOptionsSchema);
  if (rule !== undefined) setExtension(options, http, create(HttpRuleSchema, rule));
  const method = create(MethodDescriptorProtoSchema, {
    name: "Echo",
    inputType: `.${PACKAGE}.Plain`,
    outputType: `.${PACKAGE}.Plain`,
    clientStreaming,
    options,
  });
  const file = create(FileDescriptorProtoSchema, {
    name: "test/kinds/v1/kinds.proto",
    package: PACKAGE,
    syntax: "proto3",
    dependency: [file_google_api_annotations.proto.name],
    messageType: [kinds, plain, printed, nested, loop],
    enumType: [
      create(EnumDescriptorProtoSchema, {
        name: "Color",
        value: [
          { name: "COLOR_UNSPECIFIED", number: 0 },
          { name: "RED", number: 1 },
          { name: "DARK_RED", number: -7 },
        ],
      }),
    ],
    service: [create(ServiceDescriptorProtoSchema, { name: "KindsService", method: [method] })],
  });
  const registry = createFileRegistry(file, (name) =>
    name === file_google_api_annotations.proto.name ? file_google_api_annotations : undefined,
  );
  const service = registry.getService(`${PACKAGE}.KindsService`);
  if (service === undefined) throw new Error("the test's contract has no service");
  return service;
}

/** Builds the message types of the contract. */
export function getTestMessage(name: "Kinds" | "Plain" | "Printed" | "Nested" | "Loop"): DescMessage {
  const type = createTestService(undefined).file.messages.find((message) => message.name === name);
  if (type === undefined) throw new Error(`the test's contract has no ${name}`);
  return type;
}
