import { create, type Message } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import {
  GetTransferStatusResponse_State,
  GetTransferStatusResponseSchema,
  ListAvailableRoutesResponseSchema,
} from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { createRestJsonPrinter } from "../../../../src/http/rest/json-printer.js";
import { getTestMessage } from "../support/test-contract.js";

const kinds = getTestMessage("Kinds");
const printKinds = createRestJsonPrinter(kinds);
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
  ["doubleValue", Number.NaN, 0],
  ["doubleValue", Number.POSITIVE_INFINITY, 0],
  ["doubleValue", Number.NEGATIVE_INFINITY, 0],
  ["doubleValue", -0, 0],
  ["doubleValue", 1e300, 1e300],
  ["doubleValue", 5e-324, 5e-324],
  ["uint64Value", 2n ** 64n - 1n, Number.MAX_SAFE_INTEGER],
  ["int64Value", -42n, -42],
  ["longText", "-9223372036854775808", -Number.MAX_SAFE_INTEGER],
  ["boolValue", true, true],
  ["bytesValue", new Uint8Array([255, 239, 1]), "/+8B"],
  ["stringValue", 'a"\\\n\u2028é\ud800', 'a"\\\n\u2028é\ud800'],
  ["repeatedDoubleValue", [1.5, Number.NaN], [1.5, 0]],
  ["repeatedColor", [0, -7, 5], ["COLOR_UNSPECIFIED", "DARK_RED", 5]],
  ["byText", { 'k"': "v" }, { 'k"': "v" }],
  ["byLong", { 3: 2n ** 62n }, { 3: Number.MAX_SAFE_INTEGER }],
  ["optionalDouble", undefined, undefined],
  ["optionalDouble", 0, 0],
])("prints %s %s", (name, value, expected) => {
  const message = create(kinds, value === undefined ? {} : { [name]: value });
  expect(parsed(printKinds(message))[name]).toEqual(expected);
});

test("prints only the member of a oneof that is set", () => {
  expect(parsed(printKinds(create(kinds)))).not.toHaveProperty("firstChoice");
  const chosen = parsed(printKinds(create(kinds, { choice: { case: "secondChoice", value: 0 } })));
  expect(chosen).toMatchObject({ secondChoice: 0 });
  expect(chosen).not.toHaveProperty("firstChoice");
});

test("leaves an unset message out, and prints an empty one with its defaults", () => {
  const nested = getTestMessage("Nested");
  const print = createRestJsonPrinter(nested);
  expect(parsed(print(create(nested)))).toEqual({ texts: [] });
  const kindsOnly = parsed(print(create(nested, { kinds: {} })));
  expect(kindsOnly).toMatchObject({ kinds: { stringValue: "", repeatedColor: [] }, texts: [] });
  expect(kindsOnly.kinds).not.toHaveProperty("optionalText");
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
  expect(() => createRestJsonPrinter(kinds, "nope")).toThrow("test.kinds.v1.Kinds has no field nope");
});
