import { expect, test } from "vitest";
import { sendHttp1, sendRawBytes } from "../support/raw-client.js";
import { QUOTE_PATH, startTestServer } from "../support/test-server.js";

// Requests that a proxy in front may parse differently. They are rejected, and the rest of the connection is not read.

const GET = "GET /v1/quote?amount=1 HTTP/1.1\r\nHost: a\r\n";
const POST = `POST ${QUOTE_PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n`;
const CHUNKED = `${POST}Transfer-Encoding: chunked\r\n\r\n`;
/** A request that must not be served after a rejected one. */
const SMUGGLED = "GET /v1/available-routes HTTP/1.1\r\nHost: a\r\n\r\n";

test.each([
  ["two Content-Lengths", `${POST}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`, 400],
  ["the same Content-Length twice", `${POST}Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}`, 400],
  ["a list of Content-Lengths", `${POST}Content-Length: 2, 2\r\n\r\n{}`, 400],
  ["a Content-Length with a sign", `${POST}Content-Length: +2\r\n\r\n{}`, 400],
  ["a negative Content-Length", `${POST}Content-Length: -2\r\n\r\n{}`, 400],
  ["a Content-Length beyond 64 bits", `${POST}Content-Length: 99999999999999999999\r\n\r\n{}`, 400],
  [
    "Content-Length, then Transfer-Encoding",
    `${POST}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    400,
  ],
  [
    "Transfer-Encoding, then Content-Length",
    `${POST}Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n`,
    400,
  ],
  ["chunked as a coding other than the last", `${POST}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`, 400],
  ["a compressed transfer coding", `${POST}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`, 400],
  ["an unknown transfer coding", `${POST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`, 400],
  ["a space after a header name", `${POST}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`, 400],
  ["a folded header", `${GET}X-A: b\r\n c\r\n\r\n`, 400],
  ["lines that end in a bare LF", "GET /v1/quote?amount=1 HTTP/1.1\nHost: a\n\n", 400],
  ["a bare CR in a header", `${GET}X-A: b\rX-B: c\r\n\r\n`, 400],
  ["a NUL in a header", `${GET}X-A: b\0c\r\n\r\n`, 400],
  ["a space in the path", "GET /v1/quote?amount=1 2 HTTP/1.1\r\nHost: a\r\n\r\n", 400],
  ["a chunk with a huge extension", `${CHUNKED}2;${"x".repeat(30_000)}\r\n{}\r\n0\r\n\r\n`, 400],
  ["a chunk size line that ends in a bare LF", `${CHUNKED}2\n{}\r\n0\r\n\r\n`, 400],
  ["a negative chunk size", `${CHUNKED}-2\r\n{}\r\n0\r\n\r\n`, 400],
  ["a chunk size with a 0x prefix", `${CHUNKED}0x2\r\n{}\r\n0\r\n\r\n`, 400],
  ["a chunk size beyond 64 bits", `${CHUNKED}fffffffffffffffff\r\n{}\r\n0\r\n\r\n`, 400],
  ["huge trailers", `${CHUNKED}2\r\n{}\r\n0\r\n${`X: ${"y".repeat(1000)}\r\n`.repeat(40)}\r\n`, 431],
  ["two Host headers", `${GET}Host: b\r\n\r\n`, 400],
  ["the same Host twice in different case", `${GET}hOST: a\r\n\r\n`, 400],
  ["a second Host after thousands of headers", `${GET}${"a:\r\n".repeat(3000)}Host: b\r\n\r\n`, 431],
  ["no Host header", "GET /v1/quote?amount=1 HTTP/1.1\r\n\r\n", 400],
  ["HTTP/2.0 in the request line", "GET /v1/quote?amount=1 HTTP/2.0\r\nHost: a\r\n\r\n", 400],
  ["no HTTP version", "GET /v1/quote\r\n\r\n", 400],
])("rejects %s and closes the connection", async (_, bytes, status) => {
  const { port, logged, internalErrors } = await startTestServer();
  const text = await sendRawBytes(port, Buffer.from(bytes + SMUGGLED, "latin1"));
  expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual([`HTTP/1.1 ${status}`]);
  expect(text).toMatch(/\r\nconnection: close\r\n/i);
  expect(text).toContain('"code":"invalid_argument"');
  expect((await logged(1)).map(({ code }) => code)).toEqual(["invalid_argument"]);
  expect(internalErrors).toEqual([]);
  expect((await sendHttp1(port, "/v1/quote?amount=1")).status).toBe(200);
});

test("logs the parser's error code for invalid input", async () => {
  const { port, logged } = await startTestServer();
  await sendRawBytes(port, `${POST}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`);
  expect(await logged(1)).toMatchObject([{ operation: "", errorCode: "HPE_UNEXPECTED_CONTENT_LENGTH" }]);
});

test.each([
  ["a GET with a body", `${GET}Content-Length: 5\r\n\r\nhello`],
  ["chunks with small extensions", `${CHUNKED}2;a=b\r\n{}\r\n0\r\n\r\n`],
  ["a capitalised transfer coding", `${POST}Transfer-Encoding: Chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`],
  ["empty lines before a request", `\r\n\r\n${GET}\r\n`],
])("accepts %s and serves the next request", async (_, bytes) => {
  const { port } = await startTestServer();
  const last = SMUGGLED.replace("Host", "Connection: close\r\nHost");
  expect((await sendRawBytes(port, bytes + last)).match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 200"]);
});
