import {
  create,
  createFileRegistry,
  type DescMessage,
  type DescService,
  type MessageInitShape,
  setExtension,
} from "@bufbuild/protobuf";
import {
  DescriptorProtoSchema,
  FieldDescriptorProtoSchema,
  FieldOptions_JSType,
  FileDescriptorProtoSchema,
  FieldDescriptorProto_Label as Label,
  MethodOptionsSchema,
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

type FieldInit = MessageInitShape<typeof FieldDescriptorProtoSchema>;
type MessageInit = MessageInitShape<typeof DescriptorProtoSchema>;

let number = 0;
function field(name: string, type: Type, more: FieldInit = {}) {
  number += 1;
  const jsonName = name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  return create(FieldDescriptorProtoSchema, { name, jsonName, number, type, label: Label.OPTIONAL, ...more });
}

const message = (name: string, fields: NonNullable<MessageInit["field"]>, more: MessageInit = {}) =>
  create(DescriptorProtoSchema, { name, field: fields, ...more });

const REPEATED = { label: Label.REPEATED };
const COLOR = { typeName: `.${PACKAGE}.Color` };
const AS_TEXT = { options: { jstype: FieldOptions_JSType.JS_STRING } };
const CHOICE = { oneofIndex: 0 };
const optional = (oneofIndex: number) => ({ proto3Optional: true, oneofIndex });
const oneofs = (...names: readonly string[]) => names.map((name) => ({ name }));
const entryName = (name: string): string =>
  `${name.replace(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase())}Entry`;

const kinds = message(
  "Kinds",
  [
    ...Object.entries(SCALARS).map(([name, type]) => field(name, type)),
    field("long_text", Type.INT64, AS_TEXT),
    field("color", Type.ENUM, COLOR),
    ...Object.entries(SCALARS).map(([name, type]) => field(`repeated_${name}`, type, REPEATED)),
    field("repeated_color", Type.ENUM, { ...COLOR, ...REPEATED }),
    field("first_choice", Type.STRING, CHOICE),
    field("second_choice", Type.INT32, CHOICE),
    ...Object.keys(MAPS).map((name) =>
      field(name, Type.MESSAGE, { ...REPEATED, typeName: `.${PACKAGE}.Kinds.${entryName(name)}` }),
    ),
    field("optional_text", Type.STRING, optional(1)),
    field("optional_double", Type.DOUBLE, optional(2)),
    field("optional_color", Type.ENUM, { ...COLOR, ...optional(3) }),
  ],
  {
    oneofDecl: oneofs("choice", "_optional_text", "_optional_double", "_optional_color"),
    nestedType: Object.entries(MAPS).map(([name, [key, value]]) => ({
      name: entryName(name),
      field: [
        { name: "key", number: 1, type: key, label: Label.OPTIONAL },
        { name: "value", number: 2, type: value, label: Label.OPTIONAL },
      ],
      options: { mapEntry: true },
    })),
  },
);

/** The kinds of fields that GET both reads and prints. */
const plain = message("Plain", [
  field("double_value", Type.DOUBLE),
  field("bool_value", Type.BOOL),
  field("string_value", Type.STRING),
  field("uint32_value", Type.UINT32),
  field("repeated_string_value", Type.STRING, REPEATED),
  field("repeated_uint32_value", Type.UINT32, REPEATED),
]);

/** The other kinds of fields that GET prints. */
const printed = message(
  "Printed",
  [
    field("int64_value", Type.INT64),
    field("long_text", Type.INT64, AS_TEXT),
    field("repeated_double_value", Type.DOUBLE, REPEATED),
    field("repeated_color", Type.ENUM, { ...COLOR, ...REPEATED }),
    field("first_choice", Type.STRING, CHOICE),
    field("second_choice", Type.UINT32, CHOICE),
    field("optional_double", Type.DOUBLE, optional(1)),
  ],
  { oneofDecl: oneofs("choice", "_optional_double") },
);

const nested = message("Nested", [
  field("plain", Type.MESSAGE, { typeName: `.${PACKAGE}.Plain` }),
  field("texts", Type.STRING, REPEATED),
]);

const loop = message("Loop", [field("loop", Type.MESSAGE, { ...REPEATED, typeName: `.${PACKAGE}.Loop` })]);

/** Creates a service with a method `Echo`, with or without an HTTP annotation; request and response are Plain. */
export function createTestService(
  rule: Partial<Omit<HttpRule, "$typeName">> | undefined,
  { clientStreaming = false } = {},
): DescService {
  const options = create(MethodOptionsSchema);
  if (rule !== undefined) setExtension(options, http, create(HttpRuleSchema, rule));
  const type = `.${PACKAGE}.Plain`;
  const file = create(FileDescriptorProtoSchema, {
    name: "test/kinds/v1/kinds.proto",
    package: PACKAGE,
    syntax: "proto3",
    dependency: [file_google_api_annotations.proto.name],
    messageType: [kinds, plain, printed, nested, loop],
    enumType: [
      {
        name: "Color",
        value: [
          { name: "COLOR_UNSPECIFIED", number: 0 },
          { name: "RED", number: 1 },
          { name: "DARK_RED", number: -7 },
        ],
      },
    ],
    service: [
      { name: "KindsService", method: [{ name: "Echo", inputType: type, outputType: type, clientStreaming, options }] },
    ],
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
