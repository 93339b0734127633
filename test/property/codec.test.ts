import {
  create,
  type DescField,
  type DescMessage,
  fromBinary,
  type Message,
  ScalarType,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { file_hop_bridge_v1_bridge } from "../../gen/hop/bridge/v1/bridge_pb.js";
import { createProtobufJsonPrinter } from "../../src/http/codec/json-printer.js";
import { createFastPathBinaryReader } from "../../src/http/codec/read-binary.js";
import { createBinaryWriter } from "../../src/http/codec/write-binary.js";
import { getTestMessage } from "../unit/http/support/test-contract.js";

// The codec must agree with the library wherever it returns a result. Written messages include values of a wrong type,
// for which both must fail.

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.constantFrom("", "\ud800", "é".repeat(100), "a".repeat(64), "a".repeat(65), "a".repeat(128), '"\\\n'),
);
const whole32 = fc.constantFrom(0, 1, -1, 127, 128, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, -0, 0.5);
const whole64 = fc.oneof(
  fc.constantFrom(0n, 1n, -1n, 127n, 128n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 63n - 1n, 2n ** 63n, -(2n ** 63n)),
  fc.bigInt({ min: 0n, max: 2n ** 54n }),
);
const real = fc.oneof(fc.double(), fc.constantFrom(0, -0, Number.NaN, Number.NEGATIVE_INFINITY, 1e21));

const { STRING, BOOL, BYTES, DOUBLE, FLOAT, INT64, UINT64, SINT64, FIXED64, SFIXED64 } = ScalarType;
/** Values of the types that are not whole numbers of 32 bits. */
const scalars = new Map<ScalarType | undefined, fc.Arbitrary<unknown>>([
  [STRING, text],
  [BOOL, fc.boolean()],
  [BYTES, fc.uint8Array({ maxLength: 5 })],
  [DOUBLE, real],
  [FLOAT, real],
  ...[INT64, UINT64, SINT64, FIXED64, SFIXED64].map((type) => [type, whole64] as const),
]);

function someValue(field: DescField, isAny: boolean): fc.Arbitrary<unknown> {
  if (field.message !== undefined) return messages(field.message, isAny);
  if (field.enum !== undefined) return fc.constantFrom(0, 1, 2, 3, 9, -1);
  return scalars.get(field.scalar) ?? whole32;
}

/** Messages with some of their fields; with `isAny` also with values of a wrong type. */
function messages(schema: DescMessage, isAny: boolean): fc.Arbitrary<Message> {
  return fc.subarray(schema.fields, { maxLength: Math.min(9, schema.fields.length) }).chain((chosen) => {
    const fields: Record<string, fc.Arbitrary<unknown>> = {};
    for (const field of chosen) {
      const { oneof } = field;
      if (oneof !== undefined) {
        const choice = someValue(field, isAny).map((value) => ({ case: field.localName, value }));
        const wrong = fc.constantFrom<unknown>(null, 5, "5", {}, { case: "nope", value: 1 }, { case: field.localName });
        const none = fc.constant({ case: undefined });
        fields[oneof.localName] = isAny
          ? fc.oneof({ weight: 60, arbitrary: choice }, { weight: 5, arbitrary: none }, wrong)
          : choice;
        continue;
      }
      const value = field.fieldKind === "map" ? fc.constant({}) : someValue(field, isAny);
      const right = field.fieldKind === "list" ? fc.array(value, { maxLength: 3 }) : value;
      const wrong = fc.constantFrom<unknown>(null, 5, "5", 5n, true, [1]);
      fields[field.localName] = isAny ? fc.oneof({ weight: 60, arbitrary: right }, wrong) : right;
    }
    return fc.record(fields).map((init) => Object.assign(create(schema), init));
  });
}

const outcome = <T>(run: () => T): T | "fails" => {
  try {
    return run();
  } catch {
    return "fails";
  }
};

const outputs = [
  ...file_hop_bridge_v1_bridge.messages.filter(({ name }) => name.endsWith("Response")),
  ...(["Kinds", "Plain", "Printed", "Nested"] as const).map(getTestMessage),
];
describe.each(outputs.map((schema) => [schema.typeName, schema] as const))("%s: the fast-path writers", (_, schema) => {
  const writeBinary = createBinaryWriter(schema);
  const writeJson = createProtobufJsonPrinter(schema);

  test("write what the library writes", () => {
    const property = fc.property(messages(schema, true), fc.boolean(), (message, isUnknownKept) => {
      if (isUnknownKept) message.$unknown = [{ no: 99, wireType: 0, data: new Uint8Array([1]) }];
      const library = outcome(() => Buffer.from(toBinary(schema, message)).toString("hex"));
      expect(outcome(() => writeBinary(message, 5).subarray(5).toString("hex"))).toBe(library);
      expect(outcome(() => writeJson(message))).toBe(outcome(() => toJsonString(schema, message)));
    });
    fc.assert(property, { numRuns: 500 });
  });
});

const requests = file_hop_bridge_v1_bridge.messages.filter(({ name }) => name.endsWith("Request"));
const inputs = [...requests, ...(["Kinds", "Plain", "Nested"] as const).map(getTestMessage)];
describe.each(inputs.map((schema) => [schema.typeName, schema] as const))("%s: the fast-path reader", (_, schema) => {
  const readBinary = createFastPathBinaryReader(schema);

  test("reads what the library reads, or returns undefined", () => {
    let fastPathReads = 0;
    const property = fc.property(
      messages(schema, false),
      fc.nat({ max: 400 }),
      fc.nat({ max: 255 }),
      (message, offset, byte) => {
        const binary = outcome(() => Buffer.from(toBinary(schema, message)));
        if (binary === "fails") return;
        for (const changed of [false, true]) {
          const bytes = Buffer.from(binary);
          if (changed && offset < bytes.length) bytes[offset] = byte;
          const read = readBinary(bytes);
          if (read === undefined) continue;
          expect(read).toEqual(fromBinary(schema, bytes));
          fastPathReads += 1;
        }
      },
    );
    fc.assert(property, { numRuns: 500 });
    expect(fastPathReads).toBeGreaterThan(0);
  });
});
