import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { readBuffered } from "../../../../src/http/connection/read-buffered.js";

const streamOf = (...chunks: string[]): Readable => {
  const stream = new Readable({ read() {} });
  for (const chunk of chunks) stream.push(Buffer.from(chunk));
  return stream;
};

test.each([
  ["nothing", [], null],
  ["one chunk", ["ab"], "ab"],
  ["several chunks", ["a", "bc", "d"], "abcd"],
])("returns %s that is buffered", (_, chunks, expected) => {
  expect(readBuffered(streamOf(...chunks))?.toString() ?? null).toBe(expected);
});

test("returns all chunks of a stream that gives them one by one, as from Node.js 26 on", () => {
  const chunks = ["a", "bc", "d"].map((text) => Buffer.from(text));
  const stream = new Readable({ read() {} });
  Object.defineProperty(stream, "readableLength", { get: () => Buffer.concat(chunks).length });
  stream.read = () => chunks.shift() ?? null;
  expect(readBuffered(stream)?.toString()).toBe("abcd");
});
