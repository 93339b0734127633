import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type AttackedChains, startAttackedChains } from "../support/attacks/attacked-chains.js";
import { buildService } from "../support/service/build-service.js";
import { type ReportingService, startReportingService } from "../support/service/loaded-scripts.js";
import { useTemporaryFolder } from "../support/temporary-folder.js";

// Which packages the built service has loaded when it listens, and which after the request that needs them. The time and
// the memory of the start follow from that; the table in CONTRIBUTING.md says where each is loaded.

const QUOTE = "/v1/quote?amount=1000000&token=USDC&fromChain=polygon&toChain=base&slippage=0.5&network=mainnet";

const folder = useTemporaryFolder();
let main: string;
let chains: AttackedChains;

beforeAll(async () => {
  main = await buildService();
  chains = await startAttackedChains();
  return () => chains.close();
});

async function startService(environment: Readonly<Record<string, string>> = {}): Promise<ReportingService> {
  const service = await startReportingService(main, {
    ...chains.environment,
    CUSTOM_RPC_URLS: "public",
    ...environment,
  });
  onTestFinished(() => service.stop());
  return service;
}

describe("the service that listens", () => {
  test("has loaded these packages and no other", async () => {
    const service = await startService();
    expect(await service.listPackages()).toEqual([
      "@bufbuild/protobuf",
      "@connectrpc/connect",
      "@noble/hashes",
      "atomic-sleep",
      "lru-cache",
      "sonic-boom",
      "undici",
    ]);
  });

  test("has loaded the parts of undici that requests to upstreams need", async () => {
    const files = (await (await startService()).listFiles()).filter((file) => file.startsWith("undici/"));
    expect(files).toContain("undici/lib/dispatcher/client-h1.js");
    expect(files.filter((file) => !/^undici\/lib\/(api|core|dispatcher|handler|llhttp|util)\//.test(file))).toEqual([]);
  });

  test.each([
    ["a limit per caller", "rate-limiter-flexible", { IP_RATE_LIMIT_REQ_PER_SEC: "5" }],
    ["traces", "@opentelemetry/api", { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1" }],
  ])("has loaded the package for %s where it is configured", async (_, name, environment) => {
    expect(await (await startService(environment)).listPackages()).toContain(name);
  });

  test("has loaded the packages for the index where there is one", async () => {
    const service = await startService({ INDEX: `sqlite:${folder()}/index.sqlite` });
    expect(await service.listPackages()).toEqual(expect.arrayContaining(["@photostructure/sqlite", "kysely"]));
  });
});

describe("the service loads on demand", () => {
  test("prom-client, and OpenTelemetry's API with it, for the first scrape", async () => {
    const service = await startService();
    await service.get(QUOTE);
    expect(await service.listPackages()).not.toContain("prom-client");
    expect(await service.get("/metrics")).toContain("hop_gateway_build_info");
    expect(await service.listPackages()).toEqual(expect.arrayContaining(["@opentelemetry/api", "prom-client"]));
  });

  test("pino for the first event that is not a request", async () => {
    const service = await startService();
    await service.get("/v1/available-routes");
    expect(await service.listPackages()).not.toContain("pino");
    chains.behaviour.errorStatus = 500;
    await service.get(QUOTE);
    chains.behaviour.errorStatus = undefined;
    expect(await service.listPackages()).toContain("pino");
  });

  test("the SDK and ethers for the first quote of the SDK engine", async () => {
    const service = await startService({ QUOTE_ENGINE: "sdk" });
    expect(await service.listPackages()).not.toContain("ethers");
    await service.get(QUOTE);
    expect(await service.listPackages()).toEqual(expect.arrayContaining(["@hop-protocol/sdk", "ethers"]));
  });
});
