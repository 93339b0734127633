import { create, type Message } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import {
  GetTransferStatusResponse_State,
  GetTransferStatusResponseSchema,
  ListAvailableRoutesResponseSchema,
} from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { createRestJsonPrinter } from "../../../../src/http/codec/json-printer.js";
import { getTestMessage } from "../support/test-contract.js";

const [plain, printed] = [getTestMessage("Plain"), getTestMessage("Printed")];
const parsed = (text: string): Record<string, unknown> => JSON.parse(text);

test("prints fields in declaration order, with defaults and without null", () => {
  const text = createRestJsonPrinter(GetTransferStatusResponseSchema)(create(GetTransferStatusResponseSchema));
  // Details that are not set are left out.
  const { fields } = GetTransferStatusResponseSchema;
  const names = fields.filter(({ message }) => message === undefined).map(({ jsonName }) => jsonName);
  expect(Object.keys(parsed(text))).toEqual(names);
  expect(text).not.toContain("null");
  expect(parsed(text)).toMatchObject({
    transferId: "",
    sourceChainId: 0,
    amountUsd: 0,
    deadline: 0,
    bonded: false,
    state: "STATE_UNSPECIFIED",
    otherTransferIds: [],
  });
});

test("prints enums by name, unknown ones by number, and 64-bit integers as numbers", () => {
  const print = createRestJsonPrinter(GetTransferStatusResponseSchema);
  const message = create(GetTransferStatusResponseSchema, {
    state: GetTransferStatusResponse_State.UNBONDABLE,
    deadline: 1_700_000_000n,
    timestamp: 2n ** 60n,
    otherTransferIds: ["0xa", "0xb"],
  });
  expect(parsed(print(message))).toMatchObject({
    state: "UNBONDABLE",
    deadline: 1_700_000_000,
    timestamp: Number.MAX_SAFE_INTEGER,
    otherTransferIds: ["0xa", "0xb"],
  });
  message.state = 9 as GetTransferStatusResponse_State;
  message.timestamp = -(2n ** 60n);
  expect(parsed(print(message))).toMatchObject({ state: 9, timestamp: -Number.MAX_SAFE_INTEGER });
});

test.each([
  [plain, "doubleValue", Number.NaN, 0],
  [plain, "doubleValue", Number.POSITIVE_INFINITY, 0],
  [plain, "doubleValue", Number.NEGATIVE_INFINITY, 0],
  [plain, "doubleValue", -0, 0],
  [plain, "doubleValue", 1e300, 1e300],
  [plain, "doubleValue", 5e-324, 5e-324],
  [plain, "boolValue", true, true],
  [plain, "uint32Value", 2 ** 32 - 1, 2 ** 32 - 1],
  [plain, "stringValue", 'a"\\\n\u2028é\ud800', 'a"\\\n\u2028é\ud800'],
  [printed, "int64Value", -42n, -42],
  [printed, "longText", "-9223372036854775808", -Number.MAX_SAFE_INTEGER],
  [printed, "repeatedDoubleValue", [1.5, Number.NaN], [1.5, 0]],
  [printed, "repeatedColor", [0, -7, 5], ["COLOR_UNSPECIFIED", "DARK_RED", 5]],
  [printed, "optionalDouble", undefined, undefined],
  [printed, "optionalDouble", 0, 0],
])("prints $0.name.$1 $2", (schema, name, value, expected) => {
  const message = create(schema, value === undefined ? {} : { [name]: value });
  expect(parsed(createRestJsonPrinter(schema)(message))[name]).toEqual(expected);
});

test("prints only the member of a oneof that is set", () => {
  const print = createRestJsonPrinter(printed);
  expect(parsed(print(create(printed)))).not.toHaveProperty("firstChoice");
  const chosen = parsed(print(create(printed, { choice: { case: "secondChoice", value: 0 } })));
  expect(chosen).toMatchObject({ secondChoice: 0 });
  expect(chosen).not.toHaveProperty("firstChoice");
});

test("leaves an unset message out, and prints an empty one with its defaults", () => {
  const nested = getTestMessage("Nested");
  const print = createRestJsonPrinter(nested);
  expect(parsed(print(create(nested)))).toEqual({ texts: [] });
  const plainOnly = parsed(print(create(nested, { plain: {} })));
  expect(plainOnly).toMatchObject({ plain: { stringValue: "", repeatedStringValue: [] }, texts: [] });
});

test("prints a single field as the whole body", () => {
  const print = createRestJsonPrinter(ListAvailableRoutesResponseSchema, "routes");
  expect(print(create(ListAvailableRoutesResponseSchema))).toBe("[]");
  const message: Message = create(ListAvailableRoutesResponseSchema, {
    routes: [{ token: "USDC", sourceChainSlug: "ethereum", sourceChainId: 1, destinationChainSlug: "optimism" }],
  });
  expect(print(message)).toBe(
    '[{"token":"USDC","sourceChainSlug":"ethereum","sourceChainId":1,"destinationChainSlug":"optimism","destinationChainId":0}]',
  );
});

test("rejects types that it cannot print when it is created", () => {
  expect(() => createRestJsonPrinter(getTestMessage("Loop"))).toThrow("test.kinds.v1.Loop contains itself");
  expect(() => createRestJsonPrinter(getTestMessage("Kinds"))).toThrow("a type without a printer");
  expect(() => createRestJsonPrinter(plain, "nope")).toThrow("test.kinds.v1.Plain has no field nope");
});
