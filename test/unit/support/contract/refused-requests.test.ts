import { expect, test } from "vitest";
import type { RecordedResponse } from "../../../support/contract/response-recorder.js";
import { createResponseValidator, readOpenApi } from "../../../support/contract/response-validator.js";
import { sendRawBytes } from "../../http/support/raw-client.js";
import { startTestServer } from "../../http/support/test-server.js";

// Rejections that the server writes to the socket itself: the recorder of the other tests, which patches Node's response
// classes, does not see them.

const validate = createResponseValidator(readOpenApi());
const get = "GET /v1/quote?amount=1 HTTP/1.1\r\nHost: x\r\n";

function parseResponse(text: string): RecordedResponse {
  const [head = "", body = ""] = text.split("\r\n\r\n");
  const [statusLine = "", ...lines] = head.split("\r\n");
  const headers = lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.replace(/^[^:]*: /, "")]);
  const status = Number(statusLine.split(" ")[1]);
  return { method: "GET", path: "/v1/quote", parameters: [], status, headers: Object.fromEntries(headers), body };
}

test.each([
  ["bytes that are not HTTP", `${get}: x\r\n\r\n`, 400],
  ["an incomplete request", get, 408],
  [
    "a URL longer than all headers may be",
    `GET /v1/quote?amount=${"1".repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
    414,
  ],
  ["headers that are too long", `${get}X: ${"x".repeat(17 * 1024)}\r\n\r\n`, 431],
])("rejects %s as the description states", async (_, bytes, status) => {
  const { port } = await startTestServer({ limits: { headersMs: 300 } });
  const response = parseResponse(await sendRawBytes(port, bytes));
  expect(response.status).toBe(status);
  expect(validate(response)).toEqual([]);
});
