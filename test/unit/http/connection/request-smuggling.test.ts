import { expect, test } from "vitest";
import { sendHttp1, sendRawBytes } from "../support/raw-client.js";
import { QUOTE_PATH, startTestServer } from "../support/test-server.js";

// Requests that a proxy in front may read differently: they are rejected, and nothing more is read on the connection.

const get = "GET /v1/quote?amount=1 HTTP/1.1\r\nHost: a\r\n";
const post = `POST ${QUOTE_PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n`;
const chunked = `${post}Transfer-Encoding: chunked\r\n\r\n`;
/** A request that must not be served after a rejected one. */
const smuggled = "GET /v1/available-routes HTTP/1.1\r\nHost: a\r\n\r\n";

test.each([
  ["two lengths", `${post}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`, 400],
  ["the same length twice", `${post}Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}`, 400],
  ["a list of lengths", `${post}Content-Length: 2, 2\r\n\r\n{}`, 400],
  ["a length with a sign", `${post}Content-Length: +2\r\n\r\n{}`, 400],
  ["a negative length", `${post}Content-Length: -2\r\n\r\n{}`, 400],
  ["a length beyond all numbers", `${post}Content-Length: 99999999999999999999\r\n\r\n{}`, 400],
  ["a length, then chunks", `${post}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400],
  ["chunks, then a length", `${post}Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n`, 400],
  ["chunks that are not the last coding", `${post}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`, 400],
  ["chunks of what is compressed", `${post}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`, 400],
  ["a coding that is none", `${post}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`, 400],
  ["a space behind a name", `${post}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`, 400],
  ["a header on two lines", `${get}X-A: b\r\n c\r\n\r\n`, 400],
  ["lines that end in LF alone", "GET /v1/quote?amount=1 HTTP/1.1\nHost: a\n\n", 400],
  ["a CR inside a header", `${get}X-A: b\rX-B: c\r\n\r\n`, 400],
  ["a NUL inside a header", `${get}X-A: b\0c\r\n\r\n`, 400],
  ["a space in the path", "GET /v1/quote?amount=1 2 HTTP/1.1\r\nHost: a\r\n\r\n", 400],
  ["a chunk with a huge extension", `${chunked}2;${"x".repeat(30_000)}\r\n{}\r\n0\r\n\r\n`, 400],
  ["a chunk whose line ends in LF alone", `${chunked}2\n{}\r\n0\r\n\r\n`, 400],
  ["a negative chunk", `${chunked}-2\r\n{}\r\n0\r\n\r\n`, 400],
  ["a chunk size in another notation", `${chunked}0x2\r\n{}\r\n0\r\n\r\n`, 400],
  ["a chunk beyond all numbers", `${chunked}fffffffffffffffff\r\n{}\r\n0\r\n\r\n`, 400],
  ["huge trailers", `${chunked}2\r\n{}\r\n0\r\n${`X: ${"y".repeat(1000)}\r\n`.repeat(40)}\r\n`, 431],
  ["two hosts", `${get}Host: b\r\n\r\n`, 400],
  ["the same host twice, in other letters", `${get}hOST: a\r\n\r\n`, 400],
  ["a second host behind thousands of headers", `${get}${"a:\r\n".repeat(3000)}Host: b\r\n\r\n`, 431],
  ["no host", "GET /v1/quote?amount=1 HTTP/1.1\r\n\r\n", 400],
  ["a request line of HTTP/2.0", "GET /v1/quote?amount=1 HTTP/2.0\r\nHost: a\r\n\r\n", 400],
  ["no version at all", "GET /v1/quote\r\n\r\n", 400],
])("rejects %s and closes the connection", async (_, bytes, status) => {
  const { port, accessLines, waitForAccessLines, internalErrors } = await startTestServer();
  const text = await sendRawBytes(port, Buffer.from(bytes + smuggled, "latin1"));
  expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual([`HTTP/1.1 ${status}`]);
  expect(text).toMatch(/\r\nconnection: close\r\n/i);
  expect(text).toContain('"code":"invalid_argument"');
  await waitForAccessLines(1);
  expect(accessLines.map(({ code }) => code)).toEqual(["invalid_argument"]);
  expect(internalErrors).toEqual([]);
  expect((await sendHttp1(port, "/v1/quote?amount=1")).status).toBe(200);
});

test("logs the error code of input that is no request", async () => {
  const { port, accessLines, waitForAccessLines } = await startTestServer();
  await sendRawBytes(port, `${post}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`);
  await waitForAccessLines(1);
  expect(accessLines).toMatchObject([{ operation: "", errorCode: "HPE_UNEXPECTED_CONTENT_LENGTH" }]);
});

test.each([
  ["a body of GET", `${get}Content-Length: 5\r\n\r\nhello`],
  ["chunks with small extensions", `${chunked}2;a=b\r\n{}\r\n0\r\n\r\n`],
  ["chunks in capitals", `${post}Transfer-Encoding: Chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`],
  ["empty lines before a request", `\r\n\r\n${get}\r\n`],
])("ends %s where it says, and serves the next request", async (_, bytes) => {
  const { port } = await startTestServer();
  const last = smuggled.replace("Host", "Connection: close\r\nHost");
  expect((await sendRawBytes(port, bytes + last)).match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 200"]);
});
