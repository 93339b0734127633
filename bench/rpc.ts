import { createServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import { create, fromBinary, toBinary, toJsonString } from "@bufbuild/protobuf";
import { type ConnectRouter, createClient } from "@connectrpc/connect";
import { connectNodeAdapter, createGrpcTransport } from "@connectrpc/connect-node";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import {
  BridgeService,
  type GetQuoteRequest,
  GetQuoteRequestSchema,
  GetQuoteResponseSchema,
} from "../gen/hop/bridge/v1/bridge_pb.js";
import { compareServers } from "./support/compare-servers.js";
import { runGrpcLoad } from "./support/grpc-load-generator.js";
import { buildPostRequest, runHttpLoad } from "./support/http-load-generator.js";
import { withLocalNetwork } from "./support/local-network.js";
import { listenOnFreePort, recordResponse, serveGateway, serveRecordedResponse } from "./support/recorded-server.js";
import { runBench, type ServerProcess, startServer } from "./support/server-process.js";

// Measures quotes per second of one process over gRPC, against bare servers of @grpc/grpc-js and Connect, and over
// Connect JSON, against bare servers of node:http and Connect. The bare servers send a fixed response of the same size.

const GET_QUOTE_PATH = "/hop.bridge.v1.BridgeService/GetQuote";
const JSON_TYPE = "application/json";
/** 25 USDT, counted up from there: no amount repeats, and all responses have the same length. */
const FIRST_AMOUNT = 25_000_000;

let amounts = 0;

function nextRequest(): GetQuoteRequest {
  const amount = String(FIRST_AMOUNT + amounts++);
  return create(GetQuoteRequestSchema, {
    amount,
    token: "USDT",
    fromChain: "polygon",
    toChain: "arbitrum",
    slippage: 0.5,
  });
}

async function measure(environment: Readonly<Record<string, string>>): Promise<void> {
  const gateway = await startServer("gateway", environment);
  const quote = await fetchQuoteOverGrpc(gateway.url);
  const response = toBinary(GetQuoteResponseSchema, quote);
  const input = { response: Buffer.from(response).toString("base64") };

  const bareGrpc = await startServer("grpc-js", input);
  const bareConnect = await startServer("connect-h2", input);
  for (const { url } of [bareGrpc, bareConnect]) await fetchQuoteOverGrpc(url);
  const grpc = ({ url }: ServerProcess, seconds: number) =>
    runGrpcLoad({
      url,
      path: GET_QUOTE_PATH,
      connections: 4,
      concurrency: 16,
      seconds,
      message: () => toBinary(GetQuoteRequestSchema, nextRequest()),
      responseBytes: response.length,
    });
  await compareServers("GetQuote over gRPC, 4 connections of 16 calls", [
    { name: "bare @grpc/grpc-js", server: bareGrpc, load: grpc },
    { name: "bare connect-node", server: bareConnect, load: grpc },
    { name: "hop-gateway, distinct amounts", server: gateway, load: grpc },
  ]);
  await bareGrpc.stop();
  await bareConnect.stop();

  const body = toJsonString(GetQuoteRequestSchema, nextRequest());
  const headers = { "content-type": JSON_TYPE };
  const raw = await startServer(
    "raw",
    await recordResponse(`${gateway.url}${GET_QUOTE_PATH}`, { method: "POST", headers, body }),
  );
  const bareConnectJson = await startServer("connect-h1", input);
  const connectJson = ({ url }: ServerProcess, seconds: number) =>
    runHttpLoad({
      url,
      connections: 32,
      seconds,
      request: () => buildPostRequest(GET_QUOTE_PATH, JSON_TYPE, toJsonString(GetQuoteRequestSchema, nextRequest())),
    });
  await compareServers("GetQuote over Connect JSON and HTTP/1.1, 32 connections", [
    { name: "bare node:http", server: raw, load: connectJson },
    { name: "bare connect-node", server: bareConnectJson, load: connectJson },
    { name: "hop-gateway, distinct amounts", server: gateway, load: connectJson },
  ]);
  for (const server of [gateway, raw, bareConnectJson]) await server.stop();
}

/** Gets a quote with an ordinary client, which proves that the server answers what the load generator will send. */
async function fetchQuoteOverGrpc(baseUrl: string) {
  return createClient(BridgeService, createGrpcTransport({ baseUrl })).getQuote(nextRequest());
}

interface FixedResponse {
  /** The encoded message, base64. */
  readonly response: string;
}

const decode = ({ response }: FixedResponse) => fromBinary(GetQuoteResponseSchema, Buffer.from(response, "base64"));

function connectRoutes(input: FixedResponse) {
  const quote = decode(input);
  return (router: ConnectRouter) => router.service(BridgeService, { getQuote: () => quote });
}

async function serveGrpcJs(input: FixedResponse): Promise<string> {
  const quote = decode(input);
  const server = new Server();
  const getQuote = {
    path: GET_QUOTE_PATH,
    requestStream: false,
    responseStream: false,
    requestSerialize: (message: GetQuoteRequest) => Buffer.from(toBinary(GetQuoteRequestSchema, message)),
    requestDeserialize: (bytes: Buffer) => fromBinary(GetQuoteRequestSchema, bytes),
    responseSerialize: (message: typeof quote) => Buffer.from(toBinary(GetQuoteResponseSchema, message)),
    responseDeserialize: (bytes: Buffer) => fromBinary(GetQuoteResponseSchema, bytes),
  } as const;
  server.addService(
    { getQuote },
    { getQuote: (_call: unknown, callback: (error: null, message: typeof quote) => void) => callback(null, quote) },
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return `http://127.0.0.1:${port}`;
}

await runBench(() => withLocalNetwork(measure), {
  gateway: serveGateway,
  raw: serveRecordedResponse,
  "grpc-js": serveGrpcJs,
  "connect-h1": (input: FixedResponse) =>
    listenOnFreePort(createServer(connectNodeAdapter({ routes: connectRoutes(input) }))),
  "connect-h2": (input: FixedResponse) =>
    listenOnFreePort(createHttp2Server(connectNodeAdapter({ routes: connectRoutes(input) }))),
});
