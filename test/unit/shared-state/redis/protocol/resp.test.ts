import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  createRespParser,
  encodeCommand,
  MAX_FRAME_BYTES,
  type RedisReply,
  RespError,
} from "../../../../../src/shared-state/redis/protocol/resp.js";

/** Parses chunks; returns replies and pushes in the order of their arrival. */
function parse(...chunks: readonly (string | Buffer)[]): { replies: RedisReply[]; pushes: (readonly RedisReply[])[] } {
  const replies: RedisReply[] = [];
  const pushes: (readonly RedisReply[])[] = [];
  const take = createRespParser({
    onReply: (reply) => void replies.push(reply),
    onPush: (values) => void pushes.push(values),
  });
  for (const chunk of chunks) take(Buffer.from(chunk));
  return { replies, pushes };
}

describe("the parser of RESP", () => {
  test.each<[string, RedisReply]>([
    ["+OK\r\n", "OK"],
    [":-12\r\n", -12],
    ["$5\r\nhello\r\n", "hello"],
    ["$0\r\n\r\n", ""],
    ["$3\r\n€\r\n", "€"],
    ["$-1\r\n", null],
    ["*-1\r\n", null],
    ["_\r\n", null],
    ["#t\r\n", true],
    [",1.5\r\n", "1.5"],
    ["*2\r\n:1\r\n*1\r\n+a\r\n", [1, ["a"]]],
    ["%1\r\n+key\r\n:1\r\n", ["key", 1]],
    ["~1\r\n+a\r\n", ["a"]],
    ["-NOAUTH the password is secret\r\n", { errorCode: "NOAUTH" }],
    ["!9\r\nSYNTAX no\r\n", { errorCode: "SYNTAX" }],
    ["-not a code\r\n", { errorCode: "ERR" }],
  ])("reads %j", (text, reply) => {
    expect(parse(text).replies).toEqual([reply]);
  });

  test("tells messages of channels from replies", () => {
    const { replies, pushes } = parse("+OK\r\n>3\r\n+message\r\n+channel\r\n$2\r\nhi\r\n:1\r\n");
    expect(replies).toEqual(["OK", 1]);
    expect(pushes).toEqual([["message", "channel", "hi"]]);
  });

  test("reads what it reads at once from any parts too", () => {
    const text = "+OK\r\n$5\r\nhe\r\no\r\n*2\r\n:1\r\n$1\r\na\r\n>1\r\n+push\r\n%1\r\n+k\r\n_\r\n";
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: text.length })), (cuts) => {
        const edges = [0, ...cuts.toSorted((a, b) => a - b), text.length];
        const chunks = edges.slice(1).map((edge, index) => text.slice(edges[index], edge));
        expect(parse(...chunks)).toEqual(parse(text));
      }),
    );
  });

  test.each([
    ["another protocol", "HTTP/1.1 400 Bad Request\r\n\r\n"],
    ["a length that is not one", "$1x\r\n"],
    ["a text without its end", "$1\r\nabc"],
    ["a line without its end", "+OK\n"],
    ["an integer that is not one", ":1.5\r\n"],
    ["a text that is too long", `$${MAX_FRAME_BYTES + 1}\r\n`],
    ["a list that is too long", "*1000000\r\n"],
    ["a line that is too long", `+${"x".repeat(2_000)}`],
    ["lists in lists", "*1\r\n".repeat(100)],
    ["many small values", `*1000\r\n${"*1\r\n:1\r\n".repeat(1_000)}`],
  ])("refuses %s", (_, text) => {
    expect(() => parse(text)).toThrow(RespError);
  });

  test("refuses a reply that is too long in all", () => {
    const text = `$${MAX_FRAME_BYTES / 2}\r\n${"x".repeat(MAX_FRAME_BYTES / 2)}\r\n`;
    expect(() => parse(`*3\r\n`, text, text, text)).toThrow("too long");
  });

  test("throws nothing but RespError, whatever arrives", () => {
    const bytes = fc.oneof(fc.uint8Array(), fc.string({ unit: fc.constantFrom(..."+-:$*>_%#,\r\n019 a") }));
    fc.assert(
      fc.property(bytes, (chunk) => {
        try {
          parse(Buffer.from(chunk as string));
        } catch (error) {
          expect(error).toBeInstanceOf(RespError);
        }
      }),
    );
  });
});

test("commands are lists of texts with their lengths in bytes", () => {
  expect(encodeCommand(["SET", "€", ""])).toBe("*3\r\n$3\r\nSET\r\n$3\r\n€\r\n$0\r\n\r\n");
});
