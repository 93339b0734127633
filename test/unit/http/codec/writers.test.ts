import type * as protobuf from "@bufbuild/protobuf";
import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { BatchGetQuotesResponseSchema, WatchTransfersResponseSchema } from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { createProtobufJsonPrinter } from "../../../../src/http/codec/json-printer.js";
import { createBinaryWriter } from "../../../../src/http/codec/write-binary.js";

// That the fast path itself writes what the contract has; test/property/codec.test.ts compares it with the library.

vi.mock("@bufbuild/protobuf", async (load) => {
  const library = await load<typeof protobuf>();
  return { ...library, toBinary: vi.fn(library.toBinary), toJsonString: vi.fn(library.toJsonString) };
});
beforeEach(() => void vi.clearAllMocks());

const quote = { amountIn: "25", slippage: 0.5, deadline: 1_700_000_000n, amountOutMin: "x".repeat(20_000) };
const error = { code: "invalid_argument", message: "no", reason: "UNSUPPORTED_ROUTE" };

describe.each([
  ["a oneof with a message", WatchTransfersResponseSchema, { event: { case: "unknown", value: { isFinal: true } } }],
  ["a oneof with an empty message", WatchTransfersResponseSchema, { event: { case: "bookmark", value: {} } }],
  ["an empty oneof", WatchTransfersResponseSchema, { resumeToken: "t" }],
  [
    "repeated messages with a oneof",
    BatchGetQuotesResponseSchema,
    { results: [{ result: { case: "quote", value: quote } }, { result: { case: "error", value: error } }, {}] },
  ],
] as const)("%s", (_, schema, init) => {
  const message = create(schema as typeof BatchGetQuotesResponseSchema, init as never);

  test("is written without the library, in binary and in JSON", () => {
    const binary = createBinaryWriter(schema)(message, 0);
    const json = createProtobufJsonPrinter(schema)(message);
    expect([vi.mocked(toBinary).mock.calls.length, vi.mocked(toJsonString).mock.calls.length]).toEqual([0, 0]);
    expect(binary.toString("hex")).toBe(Buffer.from(toBinary(schema as never, message as never)).toString("hex"));
    expect(json).toBe(toJsonString(schema as never, message as never));
  });
});
