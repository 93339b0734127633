import { expect, test } from "vitest";
import type { RecordedResponse } from "../../../support/contract/response-recorder.js";
import { createResponseValidator, readOpenApi } from "../../../support/contract/response-validator.js";
import { sendRawBytes } from "../../http/support/raw-client.js";
import { startTestServer } from "../../http/support/test-server.js";

// Refusals that are written past Node's answers, which is where the other tests' answers are held against the description.

const judge = createResponseValidator(readOpenApi());
const get = "GET /v1/quote?amount=1 HTTP/1.1\r\nHost: x\r\n";

function toAnswer(text: string): RecordedResponse {
  const [head = "", body = ""] = text.split("\r\n\r\n");
  const [statusLine = "", ...lines] = head.split("\r\n");
  const headers = lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.replace(/^[^:]*: /, "")]);
  const status = Number(statusLine.split(" ")[1]);
  return { method: "GET", path: "/v1/quote", parameters: [], status, headers: Object.fromEntries(headers), body };
}

test.each([
  ["no HTTP", `${get}: x\r\n\r\n`, 400],
  ["a request that does not end", get, 408],
  ["a URL beyond all headers", `GET /v1/quote?amount=${"1".repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 414],
  ["long headers", `${get}X: ${"x".repeat(17 * 1024)}\r\n\r\n`, 431],
])("%s is refused as the description says", async (_, bytes, status) => {
  const { port } = await startTestServer({ limits: { headersMs: 300 } });
  const answer = toAnswer(await sendRawBytes(port, bytes));
  expect(answer.status).toBe(status);
  expect(judge(answer)).toEqual([]);
});
