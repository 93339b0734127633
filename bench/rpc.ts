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
import { compare } from "./support/compare-servers.js";
import { loadGrpc } from "./support/grpc-load-generator.js";
import { loadHttp, postRequest } from "./support/http-load-generator.js";
import { overNetwork } from "./support/local-network.js";
import { listen, recordAnswer, serveGateway, serveRaw } from "./support/recorded-server.js";
import { runBench, type ServerProcess, startServer } from "./support/server-process.js";

// How many quotes a second one process answers over gRPC, against bare servers of @grpc/grpc-js and Connect, and over
// Connect's JSON, against bare servers of node:http and Connect. The bare servers give a fixed answer of the same size.

const path = "/hop.bridge.v1.BridgeService/GetQuote";
const json = "application/json";
/** 25 USDT, and up from there: no amount comes twice, and all answers are of one length. */
const firstAmount = 25_000_000;

let amounts = 0;

function nextRequest(): GetQuoteRequest {
  const amount = String(firstAmount + amounts++);
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
  const quote = await askOverGrpc(gateway.url);
  const answer = toBinary(GetQuoteResponseSchema, quote);
  const input = { answer: Buffer.from(answer).toString("base64") };

  const bareGrpc = await startServer("grpc-js", input);
  const bareConnect = await startServer("connect-h2", input);
  for (const { url } of [bareGrpc, bareConnect]) await askOverGrpc(url);
  const grpc = ({ url }: ServerProcess, seconds: number) =>
    loadGrpc({
      url,
      path,
      connections: 4,
      concurrency: 16,
      seconds,
      message: () => toBinary(GetQuoteRequestSchema, nextRequest()),
      answerBytes: answer.length,
    });
  await compare("GetQuote over gRPC, 4 connections of 16 calls", [
    { name: "bare @grpc/grpc-js", server: bareGrpc, load: grpc },
    { name: "bare connect-node", server: bareConnect, load: grpc },
    { name: "hop-gateway, an amount of its own each", server: gateway, load: grpc },
  ]);
  await bareGrpc.stop();
  await bareConnect.stop();

  const body = toJsonString(GetQuoteRequestSchema, nextRequest());
  const headers = { "content-type": json };
  const raw = await startServer("raw", await recordAnswer(`${gateway.url}${path}`, { method: "POST", headers, body }));
  const bareConnectJson = await startServer("connect-h1", input);
  const connectJson = ({ url }: ServerProcess, seconds: number) =>
    loadHttp({
      url,
      connections: 32,
      seconds,
      request: () => postRequest(path, json, toJsonString(GetQuoteRequestSchema, nextRequest())),
    });
  await compare("GetQuote over Connect's JSON and HTTP/1.1, 32 connections", [
    { name: "bare node:http", server: raw, load: connectJson },
    { name: "bare connect-node", server: bareConnectJson, load: connectJson },
    { name: "hop-gateway, an amount of its own each", server: gateway, load: connectJson },
  ]);
  for (const server of [gateway, raw, bareConnectJson]) await server.stop();
}

/** A quote by an ordinary client: what the load then asks for is known to be answered. */
async function askOverGrpc(baseUrl: string) {
  return createClient(BridgeService, createGrpcTransport({ baseUrl })).getQuote(nextRequest());
}

interface FixedAnswer {
  /** The encoded message, base64. */
  readonly answer: string;
}

const decode = ({ answer }: FixedAnswer) => fromBinary(GetQuoteResponseSchema, Buffer.from(answer, "base64"));

function connectRoutes(input: FixedAnswer) {
  const quote = decode(input);
  return (router: ConnectRouter) => router.service(BridgeService, { getQuote: () => quote });
}

async function serveGrpcJs(input: FixedAnswer): Promise<string> {
  const quote = decode(input);
  const server = new Server();
  const getQuote = {
    path,
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

await runBench(() => overNetwork(measure), {
  gateway: serveGateway,
  raw: serveRaw,
  "grpc-js": serveGrpcJs,
  "connect-h1": (input: FixedAnswer) => listen(createServer(connectNodeAdapter({ routes: connectRoutes(input) }))),
  "connect-h2": (input: FixedAnswer) => listen(createHttp2Server(connectNodeAdapter({ routes: connectRoutes(input) }))),
});
