import { once } from "node:events";
import { Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { expect, test, vi } from "vitest";
import { type GetQuoteResponse, GetQuoteResponseSchema } from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { closeAfterTest } from "../../../support/close-after-test.js";
import { openRawSocket, sendRawBytes } from "../support/raw-client.js";
import { createLatch, describeOnBothPaths, QUOTE_PATH, startTestServer } from "../support/test-server.js";

const LARGE = "9".repeat(20_000);
const MORE_THAN_SOCKETS_BUFFER = 32 * 1024 * 1024;
const frozen = new Map(["small", LARGE].map((bonderFee) => [bonderFee, createQuote(bonderFee, true)]));

function createQuote(bonderFee: string, isFrozen: boolean): GetQuoteResponse {
  const quote = create(GetQuoteResponseSchema, { amountIn: "1", bonderFee });
  return isFrozen ? Object.freeze(quote) : quote;
}

const startServer = (fastPaths?: boolean, responseBytes = 1) =>
  startTestServer({
    ...(fastPaths !== undefined && { fastPaths }),
    getQuote({ token, amount }, context) {
      if (amount !== "2") context.setCachePolicy({ ageSeconds: 1, maxAgeSeconds: 4 });
      if (token === "huge") return createQuote("9".repeat(responseBytes), true);
      return frozen.get(token === "large" ? LARGE : token) ?? createQuote(token, false);
    },
  });

const get = (token: string, more = "", version = "1.1") =>
  `GET /v1/quote?amount=1&token=${token} HTTP/${version}\r\nHost: a\r\n${more}\r\n`;
const LAST = "Connection: close\r\n";
function post(token: string, more = "", type = "application/json"): string {
  const body = JSON.stringify({ amount: "1", token });
  const length = Buffer.byteLength(body);
  const headers = `Host: a\r\nContent-Type: ${type}\r\nContent-Length: ${length}\r\n${more}`;
  return `POST ${QUOTE_PATH} HTTP/1.1\r\n${headers}\r\n${body}`;
}

test.each<[string, readonly string[]]>([
  ["a text", [get("USDC"), get("USDC", LAST)]],
  ["a frozen message", [get("small"), get("small"), get("small", LAST)]],
  ["a shared buffer", [get("large"), get("large", LAST)]],
  ["characters of several bytes", [get("%C3%A9"), get("%E2%82%AC", LAST)]],
  ["a validator of the caller", [get("small", "If-None-Match: *\r\n"), get("small", LAST)]],
  ["HTTP/1.0", [get("USDC", "Connection: keep-alive\r\n", "1.0"), get("USDC", "", "1.0")]],
  ["HEAD", [get("large").replace("GET", "HEAD"), get("USDC", LAST)]],
  ["a response that is not cacheable", [get("USDC").replace("amount=1", "amount=2"), get("USDC", LAST)]],
  ["pipelined requests", [get("USDC") + get("large") + get("small") + get("%C3%A9") + get("USDC", LAST)]],
  ["a request body", [get("USDC", "Content-Length: 3\r\n"), `abc${get("USDC", LAST)}`]],
])("the bytes of %s are those that Node.js sends", async (_, requests) => {
  const [actual = "", expected] = await sendToBothPaths(requests);
  expect(actual).toBe(expected);
  expect(actual.match(/^Date\r?$/gm)?.length).toBe(actual.match(/HTTP\/1\.1 /g)?.length);
});

/** Returns the bytes that both paths send, without what differs from response to response. */
const sendToBothPaths = (requests: readonly string[]) =>
  Promise.all(
    [true, false].map(async (fastPaths) => {
      const bytes = await sendRawBytes((await startServer(fastPaths)).port, ...requests);
      return bytes.replace(/^(?:(Date): .* GMT|(x-request-id): .*)$/gm, "$1$2");
    }),
  );

// The general path has the same headers in another order.
test.each<[string, readonly string[]]>([
  ["a Connect call", [post("USDC"), post("small"), post("large", LAST)]],
  ["a Connect call with characters of several bytes", [post("\u00e9"), post("\u20ac", LAST)]],
  ["a Connect call with a malformed body", [post("USDC", "", "application/proto"), post("USDC", LAST)]],
  ["a Connect call in parts", [post("USDC").slice(0, -5), post("USDC").slice(-5), post("USDC", LAST)]],
  ["pipelined Connect calls", [post("USDC") + post("large") + post("small") + post("USDC", LAST)]],
])("the lines of %s are those that Node.js sends", async (_, requests) => {
  const [actual, expected] = (await sendToBothPaths(requests)).map((bytes) =>
    bytes.split(/(?=HTTP\/1\.1 )/).map((response) => response.split("\r\n").sort()),
  );
  expect(actual).toEqual(expected);
});

test.each([
  ["a cacheable response", get],
  ["a response to a Connect call", post],
])("%s takes one write to its connection", async (_, request) => {
  const { port } = await startServer(true);
  const write = vi.spyOn(Socket.prototype, "write");
  closeAfterTest({ close: async () => write.mockRestore() });
  await sendRawBytes(port, request("USDC"), request("USDC", LAST));
  const texts = write.mock.calls.map(([chunk]) => String(chunk)).filter((text) => !/^(?:GET|POST) /.test(text));
  expect(texts[0]).toMatch(/^HTTP\/1\.1 200 OK\r\n.*\r\n\r\n\{.*\}$/s);
  // The second closes its connection, so that Node.js writes it: before Node.js 24 in two parts.
  expect(texts.slice(1).join("")).toMatch(/^HTTP\/1\.1 200 OK\r\n.*\r\n\r\n\{.*\}$/s);
});

describeOnBothPaths(() => {
  test("logs a response that its caller does not read as canceled", async () => {
    const { port, server, logged } = await startServer(undefined, MORE_THAN_SOCKETS_BUFFER);
    const socket = await openRawSocket(port);
    socket.pause();
    socket.write(get("huge"));
    await vi.waitFor(() => expect(server.getLoad().requests).toBe(1), { timeout: 60_000 });
    socket.destroy();
    expect((await logged(1)).map(({ code }) => code)).toEqual(["canceled"]);
    expect(server.getLoad().requests).toBe(0);
  });
});

test("leaves a connection alone that ends with the response to a malformed body", async () => {
  const { opened, open } = createLatch();
  const { port, server } = await startTestServer({
    async getQuote(_, context) {
      context.setCachePolicy({ ageSeconds: 1, maxAgeSeconds: 4 });
      await opened;
      return createQuote("small", false);
    },
  });
  const socket = await openRawSocket(port);
  socket.write(`${get("USDC", "Transfer-Encoding: chunked\r\n")}1\r\na\r\n`);
  await vi.waitFor(() => expect(server.getLoad().requests).toBe(1), { timeout: 60_000 });
  socket.write("not a size\r\n");
  const [response] = await once(socket, "data");
  expect(String(response)).toMatch(/^HTTP\/1\.1 400 /);
  const write = vi.spyOn(Socket.prototype, "write");
  closeAfterTest({ close: async () => write.mockRestore() });
  open();
  await nextTurn();
  expect(write).not.toHaveBeenCalled();
});
