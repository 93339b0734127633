import { createServer as createHttp2Server } from "node:http2";
import { create, fromBinary, toBinary, toJsonString } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import {
  BridgeService,
  type GetQuoteRequest,
  GetQuoteRequestSchema,
  GetQuoteResponseSchema,
} from "../gen/hop/bridge/v1/bridge_pb.js";
import { compareServers } from "./support/compare-servers.js";
import { createGrpcLoads, createHttpLoads } from "./support/load/create-loads.js";
import { frameMessage } from "./support/load/grpc-load-generator.js";
import { describePostRequests, VALUE } from "./support/load/http-requests.js";
import { withLocalNetwork } from "./support/local-network.js";
import { listenOnFreePort, recordResponse, serveGateway, serveRecordedResponse } from "./support/recorded-server.js";
import { runBench, type ServerProcess, startServer } from "./support/server-process.js";

// Measures quotes per second of one process over gRPC, against bare servers of @grpc/grpc-js and node:http2, and over
// Connect JSON, against a bare server of node:http. The bare servers send a fixed response of the same size.

const GET_QUOTE_PATH = "/hop.bridge.v1.BridgeService/GetQuote";
const JSON_TYPE = "application/json";
/** 25 USDT, counted up from there: no amount repeats, and all responses have the same length. */
const FIRST_AMOUNT = 25_000_000;
const QUOTE = { token: "USDT", fromChain: "polygon", toChain: "arbitrum", slippage: 0.5 };

let amounts = 0;

function nextRequest(): GetQuoteRequest {
  return create(GetQuoteRequestSchema, { ...QUOTE, amount: String(FIRST_AMOUNT + amounts++) });
}

async function measure(environment: Readonly<Record<string, string>>): Promise<void> {
  const gateway = await startServer("gateway", environment);
  const quote = await fetchQuoteOverGrpc(gateway.url);
  const input = { response: Buffer.from(toBinary(GetQuoteResponseSchema, quote)).toString("base64") };
  await measureGrpc(gateway, input);
  await measureConnectJson(gateway);
  await gateway.stop();
}

async function measureGrpc(gateway: ServerProcess, input: FixedResponse): Promise<void> {
  const bareGrpc = await startServer("grpc-js", input);
  const bareHttp2 = await startServer("http2", input);
  for (const { url } of [bareGrpc, bareHttp2]) await fetchQuoteOverGrpc(url);
  const loads = createGrpcLoads({
    path: GET_QUOTE_PATH,
    message: () => toBinary(GetQuoteRequestSchema, nextRequest()),
    responseBytes: Buffer.from(input.response, "base64").length,
  });
  await compareServers("GetQuote over gRPC", [
    { name: "bare @grpc/grpc-js", server: bareGrpc, loads },
    { name: "bare node:http2", server: bareHttp2, loads },
    { name: "hop-gateway", server: gateway, loads },
  ]);
  for (const server of [bareGrpc, bareHttp2]) await server.stop();
}

async function measureConnectJson(gateway: ServerProcess): Promise<void> {
  const body = toJsonString(GetQuoteRequestSchema, nextRequest());
  const headers = { "content-type": JSON_TYPE };
  const raw = await startServer(
    "raw",
    await recordResponse(`${gateway.url}${GET_QUOTE_PATH}`, { method: "POST", headers, body }),
  );
  const template = toJsonString(GetQuoteRequestSchema, create(GetQuoteRequestSchema, { ...QUOTE, amount: VALUE }));
  const loads = createHttpLoads(describePostRequests(GET_QUOTE_PATH, JSON_TYPE, template, FIRST_AMOUNT));
  await compareServers("GetQuote over Connect JSON and HTTP/1.1, distinct amounts", [
    { name: "bare node:http", server: raw, loads },
    { name: "hop-gateway", server: gateway, loads },
  ]);
  await raw.stop();
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

/** Serves gRPC with nothing but node:http2: the least that a gRPC server on Node.js costs. */
function serveHttp2({ response }: FixedResponse): Promise<string> {
  const message = frameMessage(Buffer.from(response, "base64"));
  const server = createHttp2Server();
  server.on("stream", (stream) => {
    stream.resume().once("end", () => {
      stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.respond({ ":status": 200, "content-type": "application/grpc+proto" }, { waitForTrailers: true });
      stream.end(message);
    });
  });
  return listenOnFreePort(server);
}

await runBench(() => withLocalNetwork(measure), {
  gateway: serveGateway,
  raw: serveRecordedResponse,
  "grpc-js": serveGrpcJs,
  http2: serveHttp2,
});
