import { rm } from "node:fs/promises";
import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { runGrpcLoad } from "../../bench/support/load/grpc-load-generator.js";
import { runHttpLoad } from "../../bench/support/load/http-load-generator.js";
import {
  buildNextRequest,
  describeGetRequests,
  describePostRequests,
  type HttpRequests,
  VALUE,
} from "../../bench/support/load/http-requests.js";
import { describeQuotes, FULL_ROUTE, type Route } from "../../bench/support/routes.js";
import { createSyntheticIndex } from "../../bench/support/synthetic-index.js";
import {
  BatchGetQuotesRequestSchema,
  BatchGetQuotesResponseSchema,
  BridgeService,
  GetQuoteRequestSchema,
  GetQuoteResponseSchema,
} from "../../gen/hop/bridge/v1/bridge_pb.js";
import { startPostgres } from "../replicas/support/postgres-server.js";
import { openTestPostgresIndex } from "../replicas/support/postgres-test-index.js";
import { leftOut, postgresPrograms } from "../replicas/support/server-programs.js";
import { type AttackedChains, startAttackedChains } from "../support/attacks/attacked-chains.js";
import { openIndex } from "../support/index/open-index.js";
import { openRecordedIndex } from "../support/index/recorded-statements.js";
import { buildService } from "../support/service/build-service.js";
import { startReportingService } from "../support/service/loaded-scripts.js";
import { useTemporaryFolder } from "../support/temporary-folder.js";
import { type CountedService, startCountedService } from "./support/counted-service.js";
import { PinnedCounts } from "./support/pinned-counts.js";
import { countStatements, fillIndex, recordPostgresMessages } from "./support/recorded-index.js";
import { countUpstreamRequests } from "./support/upstream-requests.js";

// What a request costs, in numbers that do not depend on the speed of the machine.

/** V8 has optimized what quotes run by then. */
const WARM_UP_REQUESTS = 10_000;
const REQUESTS = 5_000;
/** Batches of 100 quotes. */
const BATCHES = 200;
/** Each with one request in flight: no two responses are written at once, and no request waits for the next turn of the client. */
const CONNECTIONS = 8;
/** 25 USDT: all amounts from there on have responses of one length. */
const FIRST_AMOUNT = 25_000_000;
const QUOTE = { token: "USDT", fromChain: "polygon", toChain: "arbitrum", slippage: 0.5 };
const SERVICE_PATH = "/hop.bridge.v1.BridgeService";
const JSON_TYPE = "application/json";

const folder = useTemporaryFolder();
const pins = new PinnedCounts();
let main: string;
let chains: AttackedChains;

beforeAll(async () => {
  main = await buildService();
  chains = await startAttackedChains();
  return () => chains.close();
});
afterAll(() => pins.finish());

const hasProcessCounters = process.platform === "linux";

describe.skipIf(!hasProcessCounters || pins.otherNode !== undefined)(
  `bytes and writes of a request${pins.otherNode ?? (hasProcessCounters ? "" : " (left out: needs Linux)")}`,
  () => {
    async function startService(environment: Readonly<Record<string, string>> = {}): Promise<CountedService> {
      const service = await startCountedService(main, { ...chains.environment, ...environment });
      onTestFinished(() => service.stop());
      return service;
    }

    /** Sends requests until the service is warm, counts what the same number costs again, and compares with the pins. */
    async function checkCost(
      name: string,
      service: CountedService,
      send: (count: number) => Promise<unknown>,
      requests = REQUESTS,
    ): Promise<void> {
      await send(requests === REQUESTS ? WARM_UP_REQUESTS : requests);
      const cost = await service.count(async () => void (await send(requests)));
      pins.check(`${name}: bytes allocated`, cost.allocatedBytes / requests);
      pins.check(`${name}: writes`, cost.writes / requests);
    }

    const sendHttp =
      ({ url }: CountedService, described: HttpRequests) =>
      (requests: number) =>
        runHttpLoad({ url, connections: CONNECTIONS, requests, request: () => buildNextRequest(described) });

    const sendGrpc =
      ({ url }: CountedService, method: string, responseBytes: number, message: () => Uint8Array) =>
      (calls: number) =>
        runGrpcLoad({
          ...{ url, path: `${SERVICE_PATH}/${method}`, connections: CONNECTIONS, concurrency: 1 },
          ...{ calls, message, responseBytes },
        });

    test("GET of a quote, without log", async () => {
      const service = await startService();
      await checkCost("GET /v1/quote", service, sendHttp(service, describeQuotes()));
    });

    test("GET of a quote, with the default log", async () => {
      const service = await startService({ LOG_LEVEL: "info" });
      await checkCost("GET /v1/quote, default log", service, sendHttp(service, describeQuotes()));
    });

    test("a quote over Connect JSON", async () => {
      const service = await startService();
      const body = toJsonString(GetQuoteRequestSchema, create(GetQuoteRequestSchema, { ...QUOTE, amount: VALUE }));
      const requests = describePostRequests(`${SERVICE_PATH}/GetQuote`, JSON_TYPE, body, FIRST_AMOUNT);
      await checkCost("GetQuote over Connect JSON", service, sendHttp(service, requests));
    });

    test("a quote over gRPC", async () => {
      const service = await startService();
      const client = createClient(BridgeService, createGrpcTransport({ baseUrl: service.url }));
      let amount = FIRST_AMOUNT;
      const nextRequest = () => create(GetQuoteRequestSchema, { ...QUOTE, amount: String(amount++) });
      const { length } = toBinary(GetQuoteResponseSchema, await client.getQuote(nextRequest()));
      const message = () => toBinary(GetQuoteRequestSchema, nextRequest());
      await checkCost("GetQuote over gRPC", service, sendGrpc(service, "GetQuote", length, message));
    });

    test("a batch of 100 quotes with details over gRPC", async () => {
      const service = await startService();
      const client = createClient(BridgeService, createGrpcTransport({ baseUrl: service.url }));
      const amounts = Array.from({ length: 100 }, (_, index) => String(FIRST_AMOUNT + index));
      const { toChain, ...route } = QUOTE;
      const request = create(BatchGetQuotesRequestSchema, {
        ...route,
        toChain: [toChain],
        amount: amounts,
        view: "FULL",
      });
      const response = await client.batchGetQuotes(request);
      expect(response.results.filter(({ result }) => result.case === "quote")).toHaveLength(amounts.length);
      const { length } = toBinary(BatchGetQuotesResponseSchema, response);
      const message = () => toBinary(BatchGetQuotesRequestSchema, request);
      await checkCost(
        "BatchGetQuotes of 100, FULL, over gRPC",
        service,
        sendGrpc(service, "BatchGetQuotes", length, message),
        BATCHES,
      );
    });

    test("GET of a status, from the cache and from SQLite", async () => {
      const file = `${folder()}/index`;
      const { transferIds } = await createSyntheticIndex(file, WARM_UP_REQUESTS + REQUESTS);
      onTestFinished(() => rm(file));
      const service = await startService({ ...listUnreachableChains(chains), INDEX: `sqlite:${file}` });
      const path = `/v1/transfer-status?transferId=${VALUE}`;
      const distinct = describeGetRequests(path, transferIds);
      await checkCost("GET /v1/transfer-status from SQLite", service, sendHttp(service, distinct));
      const one = describeGetRequests(path, transferIds.slice(-1));
      await checkCost("GET /v1/transfer-status from the cache", service, sendHttp(service, one));
    });
  },
);

/** Returns the environment of chains that do not respond, so that nothing but requests costs anything. */
function listUnreachableChains({ environment }: AttackedChains): Readonly<Record<string, string>> {
  const names = Object.keys(environment).filter((name) => name.startsWith("RPC_URL_"));
  return Object.fromEntries(names.map((name) => [name, "http://127.0.0.1:1"]));
}

describe("requests to the chains per 1,000 quotes, ten a second", () => {
  const TO_OPTIMISM: Route = { token: "ETH", sourceChainSlug: "polygon", destinationChainSlug: "optimism" };
  const TO_ETHEREUM: Route = { token: "ETH", sourceChainSlug: "arbitrum", destinationChainSlug: "ethereum" };
  test.each([
    ["one route", [FULL_ROUTE]],
    ["three routes", [FULL_ROUTE, TO_OPTIMISM, TO_ETHEREUM]],
  ])("%s", async (name, routes) => {
    pins.check(`1,000 quotes on ${name}: upstream requests`, await countUpstreamRequests(routes));
  });
});

describe("files that are loaded when the service listens", () => {
  test("of the service and of packages", async () => {
    const service = await startReportingService(main, chains.environment);
    onTestFinished(() => service.stop());
    const files = (await service.listScripts()).filter((script) => script.startsWith("file:"));
    const ofPackages = files.filter((script) => script.includes("/node_modules/"));
    pins.check("start: files of the service", files.length - ofPackages.length);
    pins.check("start: files of packages", ofPackages.length);
  });
});

describe("statements of a status", () => {
  function check(database: string, { byId, byHash, withCoverage }: Awaited<ReturnType<typeof countStatements>>): void {
    pins.check(`status by ID from ${database}: statements`, byId);
    pins.check(`status by hash from ${database}: statements`, byHash);
    pins.check(`status with coverage from ${database}: statements`, withCoverage);
  }

  test("from SQLite", async () => {
    const index = await openIndex(`${folder()}/statements`);
    await fillIndex(index);
    index.close();
    const executed: string[] = [];
    const recorded = await openRecordedIndex(index.file, executed);
    onTestFinished(() => recorded.close());
    check("SQLite", await countStatements(recorded.reader, executed));
  });

  test.skipIf(postgresPrograms === undefined)(`from PostgreSQL${leftOut(postgresPrograms)}`, async () => {
    const server = await startPostgres();
    onTestFinished(() => server.close());
    const { index } = await openTestPostgresIndex(await server.createDatabase());
    onTestFinished(() => index.close());
    await index.migrate();
    await fillIndex(index);
    check("PostgreSQL", await countStatements(index.reader, recordPostgresMessages()));
  });
});
