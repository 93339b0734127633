import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import {
  BridgeService,
  GetQuoteRequestSchema,
  GetQuoteResponseSchema,
} from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { ServiceError } from "../../../../src/errors.js";
import { callUnaryGrpc, createGrpcClient } from "../support/grpc-client.js";
import { sendHttp1, sendHttp2 } from "../support/raw-client.js";
import { echoQuote, QUOTE_PATH, startTestServer } from "../support/test-server.js";

const EXPECTED_HEADERS = { source: "chain", "observed-at": "2026-07-01T12:00:00.000Z" };

const startServerWithMetadata = (error?: ServiceError) =>
  startTestServer({
    getQuote: (request, context) => {
      context.setResponseMetadata({ source: "index" });
      context.setResponseMetadata(EXPECTED_HEADERS);
      if (error !== undefined) throw error;
      return echoQuote(request, context);
    },
  });

const NULL_FIELD = "%7B%22amount%22%3Anull%7D";

describe("response metadata", () => {
  test.each([
    ["GET over HTTP/1.1", sendHttp1, "GET", "/v1/quote?amount=1"],
    ["HEAD over HTTP/1.1", sendHttp1, "HEAD", "/v1/quote?amount=1"],
    ["GET over h2c", sendHttp2, "GET", "/v1/quote?amount=1"],
    ["Connect by POST", sendHttp1, "POST", QUOTE_PATH],
    ["Connect by GET", sendHttp1, "GET", `${QUOTE_PATH}?encoding=json&message=%7B%7D`],
    ["Connect by GET on the general path", sendHttp1, "GET", `${QUOTE_PATH}?encoding=json&message=${NULL_FIELD}`],
    [
      "Connect by GET on the general path over h2c",
      sendHttp2,
      "GET",
      `${QUOTE_PATH}?encoding=json&message=${NULL_FIELD}`,
    ],
  ] as const)("is in the headers of %s, but not of an error", async (_, send, method, path) => {
    const options = method === "POST" ? { headers: { "content-type": "application/json" }, body: "{}" } : {};
    const { port } = await startServerWithMetadata();
    const { status, headers } = await send(port, path, { method, ...options });
    expect({ status, headers }).toMatchObject({ status: 200, headers: EXPECTED_HEADERS });
    const exposed = headers["access-control-expose-headers"]?.split(", ");
    expect(exposed).toEqual(expect.arrayContaining(["Source", "Observed-At", "ETag"]));

    const failing = await startServerWithMetadata(new ServiceError("TRANSFER_NOT_FOUND", "no"));
    const failed = await send(failing.port, path, { method, ...options });
    expect(failed.status).toBe(404);
    expect(Object.keys(failed.headers)).not.toEqual(expect.arrayContaining(["source"]));
    expect(Object.keys(failed.headers)).not.toEqual(expect.arrayContaining(["observed-at"]));
  });

  test.each([
    ["the fast path", {}],
    ["the general path", { rpcUrl: { optimism: "http://x" } }],
  ])("is in the leading metadata of gRPC on %s", async (_, extraFields) => {
    const request = { $typeName: GetQuoteRequestSchema.typeName, rpcUrl: {}, ...extraFields } as never;
    const { port } = await startServerWithMetadata();
    const client = createGrpcClient(port);
    const { headers } = await callUnaryGrpc(client, QUOTE_PATH, GetQuoteRequestSchema, GetQuoteResponseSchema, request);
    client.close();
    expect(headers.getMap()).toMatchObject(EXPECTED_HEADERS);
  });

  test.each([
    ["Connect", (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "2" })],
    ["gRPC-Web", (baseUrl: string) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })],
  ])("reaches a client of %s", async (_, createTransport) => {
    const { url } = await startServerWithMetadata();
    let received = new Headers();
    await createClient(BridgeService, createTransport(url)).getQuote(
      { amount: "1" },
      {
        onHeader: (headers) => {
          received = headers;
        },
      },
    );
    expect(Object.fromEntries(received)).toMatchObject(EXPECTED_HEADERS);
  });

  test.each([
    ["Source", "chain"],
    ["source ", "chain"],
    ["1st", "chain"],
    ["", "chain"],
    ["source", ""],
    ["source", "a b"],
    ["source", "a\r\nset-cookie: b"],
    ["source", "ü"],
  ])("that is not valid in a header is an internal error: %j with %j", async (name, value) => {
    const { port, internalErrors } = await startTestServer({
      getQuote: (request, context) => {
        context.setResponseMetadata({ [name]: value });
        return echoQuote(request, context);
      },
    });
    expect((await sendHttp1(port, "/v1/quote?amount=1")).status).toBe(500);
    expect(internalErrors).toEqual([expect.any(TypeError)]);
  });
});
