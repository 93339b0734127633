import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  ScalarType,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { type ChannelCredentials, Client, credentials, type ServiceError } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, inject, test, vi } from "vitest";
import { BridgeService } from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { isFullEffort } from "../../support/effort.js";
import { startGateway, type TestGateway } from "../../support/service/in-process-gateway.js";

// The same requests by every protocol must return the same responses.

const { transfers } = inject("network");
/** Transfers whose answers are compared: in the short form one of each state of its status and its withdrawal. */
const compared = transfers.filter(({ expectedState: state, expectedWithdrawalState: withdrawal }, index) => {
  const isSame = (each: (typeof transfers)[number]) =>
    each.expectedState === state && each.expectedWithdrawalState === withdrawal;
  return state !== "NOT_FOUND" && (isFullEffort || transfers.findIndex(isSame) === index);
});
const method = BridgeService.method;

type Ask = <I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  query: string,
) => Promise<unknown>;

let gateway: TestGateway;
let grpc: Client;
let http2: ClientHttp2Session;

/** Converts a message to the JSON of GET by the JSON of the library. */
function asJson<O extends DescMessage>(desc: O, message: MessageShape<O>): unknown {
  const json = withNumbers(desc, toJson(desc, message, { alwaysEmitImplicit: true }) as Record<string, unknown>);
  return "routes" in json ? json.routes : json;
}

/** The library prints 64-bit integers as strings. */
function withNumbers(desc: DescMessage, json: Record<string, unknown>): Record<string, unknown> {
  const entries = desc.fields.flatMap((field): [string, unknown][] => {
    const value = json[field.jsonName];
    if (value === undefined) return [];
    const { message } = field;
    if (message !== undefined) {
      const convert = (item: unknown) => withNumbers(message, item as Record<string, unknown>);
      return [[field.jsonName, Array.isArray(value) ? value.map(convert) : convert(value)]];
    }
    return [[field.jsonName, field.scalar === ScalarType.INT64 ? Number(value) : value]];
  });
  return Object.fromEntries(entries);
}

const byGrpc: Ask = (unary, request) =>
  new Promise((resolve, reject) => {
    grpc.makeUnaryRequest(
      `/${unary.parent.typeName}/${unary.name}`,
      (message: MessageShape<typeof unary.input>) => Buffer.from(toBinary(unary.input, message)),
      (bytes: Buffer) => fromBinary(unary.output, bytes),
      create(unary.input, request),
      (error: ServiceError | null, response) =>
        error === null && response !== undefined ? resolve(asJson(unary.output, response)) : reject(error),
    );
  });

const byTransport =
  (open: (baseUrl: string) => Transport): Ask =>
  async (unary, request) => {
    const client = createClient(BridgeService, open(gateway.url)) as unknown as Record<
      string,
      (request: unknown) => Promise<never>
    >;
    const call = client[unary.localName];
    if (call === undefined) throw new Error(`no method ${unary.localName}`);
    return asJson(unary.output, await call(request));
  };

const byGet: Ask = async (_, __, query) => (await gateway.get(query)).body;

const byHttp2Get: Ask = (_, __, query) =>
  new Promise((resolve, reject) => {
    const stream = http2.request({ ":path": query });
    let text = "";
    stream.setEncoding("utf8");
    stream.on("data", (chunk) => {
      text += chunk;
    });
    stream.on("end", () => resolve(JSON.parse(text)));
    stream.on("error", reject);
  });

const ways: readonly (readonly [string, Ask])[] = [
  ["HTTP/1.1 GET", byGet],
  ["h2c GET", byHttp2Get],
  ["gRPC (grpc-js)", byGrpc],
  ["gRPC-Web over HTTP/1.1", byTransport((baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }))],
  ["gRPC-Web over HTTP/2", byTransport((baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "2" }))],
  [
    "Connect JSON",
    byTransport((baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false })),
  ],
  [
    "Connect binary",
    byTransport((baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: true })),
  ],
  ["Connect over HTTP/2", byTransport((baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2" }))],
  ["Connect GET", byTransport((baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1", useHttpGet: true }))],
];

async function everyWay<I extends DescMessage, O extends DescMessage>(
  unary: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  query: string,
): Promise<void> {
  const expected = await byGet(unary, request, query);
  for (const [name, ask] of ways) {
    expect({ way: name, answer: await ask(unary, request, query) }).toEqual({ way: name, answer: expected });
  }
}

/** Returns the response headers of a gRPC call. */
function grpcHeaders<I extends DescMessage, O extends DescMessage>(
  unary: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
): Promise<Headers> {
  return new Promise((resolve, reject) => {
    const call = grpc.makeUnaryRequest(
      `/${unary.parent.typeName}/${unary.name}`,
      (message: MessageShape<I>) => Buffer.from(toBinary(unary.input, message)),
      (bytes: Buffer) => fromBinary(unary.output, bytes),
      create(unary.input, request),
      (error: ServiceError | null) => error && reject(error),
    );
    call.on("metadata", (metadata) => resolve(new Headers(metadata.toJSON() as unknown as Record<string, string>)));
  });
}

const openings = [
  ["gRPC-Web", (baseUrl: string) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })],
  ["Connect", (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "1.1" })],
  ["Connect GET", (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "1.1", useHttpGet: true })],
] as const;

describe.each([
  ["with fast paths", true],
  ["on the general path", false],
])("%s", (_, fastPaths) => {
  beforeAll(async () => {
    gateway = await startGateway({}, { fastPaths });
    const { host } = new URL(gateway.url);
    grpc = new Client(host, credentials.createInsecure() as ChannelCredentials);
    http2 = connectHttp2(gateway.url);
    // Responses contain deadlines.
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  });

  afterAll(async () => {
    vi.useRealTimers();
    grpc.close();
    http2.close();
    await gateway.stop();
  });

  describe("every protocol returns the same", () => {
    test("quote", async () => {
      const request = { amount: "1000000", token: "USDC", fromChain: "polygon", toChain: "arbitrum", slippage: 0.5 };
      const query = "/v1/quote?amount=1000000&token=USDC&fromChain=polygon&toChain=arbitrum&slippage=0.5";
      expect((await gateway.get(query)).status).toBe(200);
      await everyWay(method.getQuote, request, query);
    });

    test("quote with slippage 0", async () => {
      const request = { amount: "5", token: "HOP", fromChain: "optimism", toChain: "ethereum", slippage: 0 };
      await everyWay(
        method.getQuote,
        request,
        "/v1/quote?amount=5&token=HOP&fromChain=optimism&toChain=ethereum&slippage=0",
      );
    });

    test("quote with details, and quotes of the amount that brings another", async () => {
      const asked = { token: "ETH", fromChain: "optimism", toChain: "arbitrum", slippage: 0.5 };
      const query = "/v1/quote?token=ETH&fromChain=optimism&toChain=arbitrum&slippage=0.5";
      const amount = "1000000000000000000";
      const { body } = await gateway.get(`${query}&amount=${amount}&view=FULL`);
      expect(Object.keys(body as object).at(-1)).toBe("details");
      await everyWay(method.getQuote, { ...asked, amount, view: "FULL" }, `${query}&amount=${amount}&view=FULL`);
      await everyWay(method.getQuote, { ...asked, receiveAmount: amount }, `${query}&receiveAmount=${amount}`);
      const full = `${query}&receiveAmount=${amount}&view=FULL`;
      await everyWay(method.getQuote, { ...asked, receiveAmount: amount, view: "FULL" }, full);
    });

    test("batch of quotes and errors", async () => {
      const asked = { token: "USDT", fromChain: "polygon", slippage: 0.5, view: "FULL" };
      const request = { ...asked, toChain: ["arbitrum", "nowhere", "gnosis"], amount: ["1000000", "0"] };
      const query = `/v1/quotes?${new URLSearchParams({ ...asked, slippage: "0.5" })}`;
      const lists = "&toChain=arbitrum&toChain=nowhere&amount=1000000&toChain=gnosis&amount=0";
      expect((await gateway.get(query + lists)).status).toBe(200);
      await everyWay(method.batchGetQuotes, request, query + lists);
    });

    test("status of seeded transfers", async () => {
      for (const { transferId, transactionHash } of compared) {
        const query = `/v1/transfer-status?transferId=${transferId}&transferHash=${transactionHash}`;
        const request = { transferId, transferHash: transactionHash };
        await everyWay(method.getTransferStatus, request, query);
        await everyWay(method.getTransferStatus, { ...request, view: "FULL" }, `${query}&view=FULL`);
      }
    });

    test("withdrawal of seeded transfers", async () => {
      for (const { transferId, transactionHash } of compared) {
        const query = `/v1/withdrawal?transferId=${transferId}&transferHash=${transactionHash}`;
        await everyWay(method.getWithdrawal, { transferId, transferHash: transactionHash }, query);
      }
    });

    test("routes, all and filtered", async () => {
      await everyWay(method.listAvailableRoutes, {}, "/v1/available-routes");
      const request = { token: "eth", fromChain: "base", network: "goerli" };
      await everyWay(
        method.listAvailableRoutes,
        request,
        "/v1/available-routes?token=eth&fromChain=base&network=goerli",
      );
      await everyWay(method.listAvailableRoutes, { view: "FULL" }, "/v1/available-routes?view=FULL");
    });
  });

  describe("every protocol states the age and lifetime of a quote", () => {
    const asked = { amount: "1000000", token: "USDC", fromChain: "polygon", toChain: "arbitrum", slippage: 0.5 };
    const query = new URLSearchParams({ ...asked, slippage: "0.5" });
    const expected = {
      age: expect.stringMatching(/^[0-4]$/),
      "cache-control": "public, max-age=4, stale-while-revalidate=2",
    };
    const told = (headers: Headers): unknown => ({
      age: headers.get("age"),
      "cache-control": headers.get("cache-control"),
    });

    test("GET", async () => {
      expect(told((await gateway.get(`/v1/quote?${query}`)).headers)).toEqual(expected);
    });

    test("gRPC (grpc-js)", async () => {
      expect(told(await grpcHeaders(method.getQuote, asked))).toEqual(expected);
    });

    test.each(openings)("%s", async (_, open) => {
      let headers = new Headers();
      await createClient(BridgeService, open(gateway.url)).getQuote(asked, {
        onHeader: (given) => {
          headers = given;
        },
      });
      expect(told(headers)).toEqual(expected);
    });
  });

  describe("every protocol states the source and time of a transfer status", () => {
    const { transferId = "" } = transfers.find(({ expectedState }) => expectedState === "BONDED") ?? {};
    const expectTold = (headers: Headers): void => {
      expect(headers.get("source")).toBe("chain");
      expect(headers.get("observed-at")).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    };

    test("GET", async () => {
      expectTold((await gateway.get(`/v1/transfer-status?transferId=${transferId}`)).headers);
    });

    test("gRPC (grpc-js)", async () => {
      expectTold(await grpcHeaders(method.getTransferStatus, { transferId }));
    });

    test.each(openings)("%s", async (_, open) => {
      let headers = new Headers();
      await createClient(BridgeService, open(gateway.url)).getTransferStatus(
        { transferId },
        {
          onHeader: (given) => {
            headers = given;
          },
        },
      );
      expectTold(headers);
    });
  });

  test("returns 304 to a caller that has the routes", async () => {
    const { headers } = await gateway.get("/v1/available-routes");
    const etag = headers.get("etag") ?? "";
    const again = await fetch(`${gateway.url}/v1/available-routes`, { headers: { "if-none-match": etag } });
    expect([again.status, await again.text(), again.headers.get("etag")]).toEqual([304, "", etag]);
    expect(
      (await gateway.get("/v1/quote?amount=5&token=HOP&fromChain=optimism&toChain=base")).headers.get("etag"),
    ).toBe(null);
  });
});
