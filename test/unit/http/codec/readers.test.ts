import { create, type DescMessage, type MessageShape, toBinary, toJsonString } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import {
  BatchGetQuotesRequestSchema,
  ListTransfersRequestSchema,
  WatchTransfersRequestSchema,
} from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { createFastPathBinaryReader } from "../../../../src/http/codec/read-binary.js";
import { createFastPathJsonReader } from "../../../../src/http/codec/read-json.js";

// That the fast path itself reads what the contract has; test/property/codec.test.ts compares it with the library.

const examples = [
  [
    "lists of strings",
    create(WatchTransfersRequestSchema, { transferId: ["1", "", "2"], resumeToken: "x".repeat(300) }),
  ],
  ["an optional number", create(ListTransfersRequestSchema, { account: "0x1", pageSize: 1000 })],
  ["an optional number of 0", create(ListTransfersRequestSchema, { pageSize: 0 })],
  [
    "lists of messages",
    create(BatchGetQuotesRequestSchema, { requests: [{ amount: "1", slippage: 0.5 }, {}, { token: "USDC" }] }),
  ],
] as const;
const schemas: Readonly<Record<string, DescMessage>> = Object.fromEntries(
  [WatchTransfersRequestSchema, ListTransfersRequestSchema, BatchGetQuotesRequestSchema].map((schema) => [
    schema.typeName,
    schema,
  ]),
);

describe.each(examples)("%s", (_, message) => {
  test("are read without the library, in binary and in JSON", () => {
    const schema = schemas[message.$typeName] as DescMessage;
    const bytes = Buffer.from(toBinary(schema, message as MessageShape<DescMessage>));
    expect(createFastPathBinaryReader(schema)(bytes)).toEqual(message);
    const text = toJsonString(schema, message as MessageShape<DescMessage>);
    expect(createFastPathJsonReader(schema)(Buffer.from(text))).toEqual(message);
  });
});

test.each([
  ["a length beyond the end", "0a05"],
  ["a length without an end", "0affffffffff"],
  ["a text beyond ASCII", "0a01ff"],
])("leaves %s to the library", (_, hex) => {
  expect(createFastPathBinaryReader(WatchTransfersRequestSchema)(Buffer.from(hex, "hex"))).toBeUndefined();
});

test.each([
  '{"transferId":["1",]}',
  '{"transferId":["1"',
  '{"transferId":"1"}',
  '{"transferId":[null]}',
  '{"transferId":[1]}',
])("leaves %s to the library", (text) => {
  expect(createFastPathJsonReader(WatchTransfersRequestSchema)(Buffer.from(text))).toBeUndefined();
});
