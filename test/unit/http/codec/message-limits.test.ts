import { describe, expect, test } from "vitest";
import { BatchGetQuotesRequestSchema } from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import {
  assertBinaryLimits,
  assertJsonLimits,
  MAX_REQUEST_DEPTH,
  MAX_REQUEST_MEMBERS,
} from "../../../../src/http/codec/message-limits.js";
import { createFastPathBinaryReader } from "../../../../src/http/codec/read-binary.js";

const schema = BatchGetQuotesRequestSchema;
const readBinary = createFastPathBinaryReader(schema);

const EMPTY_REQUEST = Buffer.from("4200", "hex");
/** A field that the contract does not have. */
const UNKNOWN_FIELD = Buffer.from("f80101", "hex");
const GROUP_START = Buffer.from("fb01", "hex");
/** No message begins so, and no JSON goes on so. */
const GARBAGE = Buffer.from("ffff");
const repeat = (part: Buffer, count: number) => Buffer.concat(Array<Buffer>(count).fill(part));
const checkBinary = (bytes: Buffer) => () => assertBinaryLimits(schema, bytes);
const checkJson = (text: string) => () => assertJsonLimits(schema, Buffer.from(text));

const TOO_MANY_REQUESTS = {
  reason: "INVALID_PARAMETER",
  message: "requests has more than 100 items",
  field: "requests",
};
const TOO_MANY_MEMBERS = { reason: "INVALID_PARAMETER", message: "the request has more than 2000 members" };
const TOO_DEEP = { reason: "INVALID_PARAMETER", message: "the request is nested deeper than 16 levels" };

describe("a binary request", () => {
  test("is read no further than to the 101st message of a list", () => {
    const bytes = Buffer.concat([repeat(EMPTY_REQUEST, 101), GARBAGE]);
    expect(checkBinary(bytes)).toThrow(expect.objectContaining(TOO_MANY_REQUESTS));
    expect(checkBinary(Buffer.concat([repeat(EMPTY_REQUEST, 100), GARBAGE]))).not.toThrow();
    expect(readBinary(repeat(EMPTY_REQUEST, 100))).toMatchObject({ requests: { length: 100 } });
    expect(readBinary(repeat(EMPTY_REQUEST, 101))).toBeUndefined();
  });

  test("counts the fields of all its parts, unknown ones too", () => {
    const token = Buffer.from("1a00", "hex");
    const nested = (size: number) => Buffer.concat([Buffer.from([0x42, size * 2]), repeat(token, size)]);
    const atLimit = repeat(nested(39), MAX_REQUEST_MEMBERS / 40);
    expect(readBinary(atLimit)).toBeDefined();
    expect(checkBinary(atLimit)).not.toThrow();
    for (const field of [token, UNKNOWN_FIELD]) {
      const bytes = Buffer.concat([atLimit, field, GARBAGE]);
      expect(readBinary(bytes)).toBeUndefined();
      expect(checkBinary(bytes)).toThrow(expect.objectContaining(TOO_MANY_MEMBERS));
    }
  });

  test("may not hold groups inside each other without end", () => {
    expect(checkBinary(repeat(GROUP_START, MAX_REQUEST_DEPTH - 1))).not.toThrow();
    expect(checkBinary(repeat(GROUP_START, MAX_REQUEST_DEPTH))).toThrow(expect.objectContaining(TOO_DEEP));
  });

  test.each(["4205", "08ff", "0c", "42ffffffffff", ""])("leaves %s to its reader", (hex) => {
    expect(checkBinary(Buffer.from(hex, "hex"))).not.toThrow();
  });
});

describe("a JSON request", () => {
  test("is read no further than to the 101st message of a list", () => {
    expect(checkJson(`{"requests":[${"{},".repeat(101)}`)).toThrow(expect.objectContaining(TOO_MANY_REQUESTS));
    expect(checkJson(`{"requests":[${"{},".repeat(100)}`)).not.toThrow();
  });

  test("counts all objects, lists and values", () => {
    expect(checkJson(`{"amount":[${"1,".repeat(MAX_REQUEST_MEMBERS - 2)}1]}`)).not.toThrow();
    const text = `{"amount":[${"1,".repeat(MAX_REQUEST_MEMBERS - 1)}`;
    expect(checkJson(text)).toThrow(expect.objectContaining(TOO_MANY_MEMBERS));
  });

  test("may not hold lists inside each other without end", () => {
    expect(checkJson("[".repeat(MAX_REQUEST_DEPTH))).not.toThrow();
    expect(checkJson("[".repeat(MAX_REQUEST_DEPTH + 1))).toThrow(expect.objectContaining(TOO_DEEP));
  });
});
