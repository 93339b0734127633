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

const SAID = { source: "chain", "observed-at": "2026-07-01T12:00:00.000Z" };

const serverSaying = (error?: ServiceError) =>
  startTestServer({
    getQuote: (request, context) => {
      const { setResponseMetadata } = context;
      setResponseMetadata({ source: "index" });
      setResponseMetadata(SAID);
      if (error !== undefined) throw error;
      return echoQuote(request, context);
    },
  });

const unknownInside = "%7B%22amount%22%3Anull%7D";

describe("response metadata", () => {
  test.each([
    ["GET over HTTP/1.1", sendHttp1, "GET", "/v1/quote?amount=1"],
    ["HEAD over HTTP/1.1", sendHttp1, "HEAD", "/v1/quote?amount=1"],
    ["GET over h2c", sendHttp2, "GET", "/v1/quote?amount=1"],
    ["Connect by POST", sendHttp1, "POST", QUOTE_PATH],
    ["Connect by GET", sendHttp1, "GET", `${QUOTE_PATH}?encoding=json&message=%7B%7D`],
    ["Connect by its adapter", sendHttp1, "GET", `${QUOTE_PATH}?encoding=json&message=${unknownInside}`],
    ["Connect by its adapter over h2c", sendHttp2, "GET", `${QUOTE_PATH}?encoding=json&message=${unknownInside}`],
  ] as const)("is in the headers of %s, but not of an error", async (_, send, method, path) => {
    const more = method === "POST" ? { headers: { "content-type": "application/json" }, body: "{}" } : {};
    const { port } = await serverSaying();
    const { status, headers } = await send(port, path, { method, ...more });
    expect({ status, headers }).toMatchObject({ status: 200, headers: SAID });
    const exposed = headers["access-control-expose-headers"]?.split(", ");
    expect(exposed).toEqual(expect.arrayContaining(["Source", "Observed-At", "ETag"]));

    const failing = await serverSaying(new ServiceError("TRANSFER_NOT_FOUND", "no"));
    const failed = await send(failing.port, path, { method, ...more });
    expect(failed.status).toBe(404);
    expect(Object.keys(failed.headers)).not.toEqual(expect.arrayContaining(["source"]));
    expect(Object.keys(failed.headers)).not.toEqual(expect.arrayContaining(["observed-at"]));
  });

  test.each([
    ["the short way", {}],
    ["the adapter", { rpcUrl: { optimism: "http://x" } }],
  ])("is in the leading metadata of gRPC by %s", async (_, more) => {
    const request = { $typeName: GetQuoteRequestSchema.typeName, rpcUrl: {}, ...more } as never;
    const { port } = await serverSaying();
    const client = createGrpcClient(port);
    const { headers } = await callUnaryGrpc(client, QUOTE_PATH, GetQuoteRequestSchema, GetQuoteResponseSchema, request);
    client.close();
    expect(headers.getMap()).toMatchObject(SAID);
  });

  test.each([
    ["Connect", (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "2" })],
    ["gRPC-Web", (baseUrl: string) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })],
  ])("reaches a client of %s", async (_, open) => {
    const { url } = await serverSaying();
    let seen = new Headers();
    await createClient(BridgeService, open(url)).getQuote(
      { amount: "1" },
      {
        onHeader: (headers) => {
          seen = headers;
        },
      },
    );
    expect(Object.fromEntries(seen)).toMatchObject(SAID);
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
