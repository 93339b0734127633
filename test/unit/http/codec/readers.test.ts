import { create, type DescMessage, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import {
  BatchGetQuotesRequestSchema,
  ListTransfersRequestSchema,
  WatchTransfersRequestSchema,
} from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { createFastPathBinaryReader } from "../../../../src/http/codec/read-binary.js";

// That the fast path itself reads what the contract has; test/property/codec.test.ts compares it with the library.

test.each([
  ["lists of strings", WatchTransfersRequestSchema, { transferId: ["1", "", "2"], resumeToken: "x".repeat(300) }],
  ["an optional number", ListTransfersRequestSchema, { account: "0x1", pageSize: 1000 }],
  ["an optional number of 0", ListTransfersRequestSchema, { pageSize: 0 }],
  ["lists of messages", BatchGetQuotesRequestSchema, { requests: [{ slippage: 0.5 }, {}, { token: "x" }] }],
] as const)("reads %s without the library", (_, schema: DescMessage, init) => {
  const message = create(schema, init);
  expect(createFastPathBinaryReader(schema)(Buffer.from(toBinary(schema, message)))).toEqual(message);
});
