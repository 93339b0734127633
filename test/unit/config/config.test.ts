import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { ConfigError, loadConfig } from "../../../src/config/config.js";
import { ENVIRONMENT_VARIABLES } from "../../../src/config/environment-table.js";
import { getNetwork } from "../../../src/hop/networks.js";

const page = readFileSync(new URL("../../../docs/configuration.md", import.meta.url), "utf8");
const code = readFileSync(new URL("../../../src/config/config.ts", import.meta.url), "utf8");

const problemsOf = (environment: Record<string, string>): readonly string[] => {
  try {
    loadConfig(environment);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
};

describe("configuration", () => {
  test("needs nothing", () => {
    const config = loadConfig({});
    expect(config).toMatchObject({
      host: "0.0.0.0",
      port: 8000,
      customRpcUrlPolicy: "public",
      requestTimeoutMs: 10_000,
      rateLimit: undefined,
      trustProxy: false,
      metricsPort: undefined,
      isTracingEnabled: false,
      logLevel: "info",
    });
    expect(config.rpcUrls.mainnet.get("gnosis")?.length).toBeGreaterThan(0);
    expect(config.rpcUrls.goerli.get("base")?.length).toBeGreaterThan(0);
  });

  test("takes endpoints in order, an empty variable as not set, off as none", () => {
    const config = loadConfig({
      RPC_URL_OPTIMISM: "https://a.example/key, https://b.example",
      GOERLI_RPC_URL_ETHEREUM: "http://c.example",
      PORT: "",
      ASSETS_URL: "off",
      EXPLORER_API_URL: "https://explorer.example/",
      TOKEN_PRICES: '{"ETH":3000.5}',
      IP_RATE_LIMIT_REQ_PER_SEC: "5",
      METRICS_PORT: "0",
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector.example:4318",
    });
    expect(config.rpcUrls.mainnet.get("optimism")).toEqual(["https://a.example/key", "https://b.example"]);
    expect(config.rpcUrls.goerli.get("ethereum")).toEqual(["http://c.example"]);
    expect(config.port).toBe(8000);
    expect(config.assetsUrl).toBeUndefined();
    expect(config.explorerApiUrl).toBe("https://explorer.example");
    expect(config.tokenPrices.get("ETH")).toBe(3000.5);
    expect(config.rateLimit).toEqual({ requests: 5, windowMs: 1000 });
    expect(config.metricsPort).toBe(0);
    expect(config.isTracingEnabled).toBe(true);
  });

  test("tells of every problem at once and repeats no value", () => {
    const problems = problemsOf({
      PORT: "http",
      RPC_URL_OPTIMISM: "https://ok.example,secret-key",
      RPC_URL_OPTIMSIM: "https://typo.example/secret-key",
      TOKEN_PRICES: '{"ETH":-1}',
      CUSTOM_RPC_URLS: "all",
      ASSETS_URL: "ftp://secret-key.example",
      REQUEST_TIMEOUT_MS: "0",
      TRUST_PROXY: "yes",
      LOG_LEVEL: "loud",
      METRICS_PORT: "65536",
      OTEL_EXPORTER_OTLP_ENDPOINT: "secret-key.example:4318",
    });
    expect(problems).toHaveLength(11);
    expect(problems.join("\n")).not.toContain("secret-key");
    const names = [
      "PORT",
      "RPC_URL_OPTIMISM",
      "RPC_URL_OPTIMSIM",
      "TOKEN_PRICES",
      "ASSETS_URL",
      "LOG_LEVEL",
      "METRICS_PORT",
    ];
    for (const name of names) {
      expect(problems.filter((line) => line.startsWith(`${name} `))).toHaveLength(1);
    }
  });

  test.each(["[]", "null", '{"ETH":"3000"}', '{"ETH":0}', "{", '{"ETH":1e999}'])("refuses TOKEN_PRICES %s", (text) => {
    expect(problemsOf({ TOKEN_PRICES: text })).toEqual(["TOKEN_PRICES is not a JSON object of positive numbers"]);
  });
});

describe("what is written of it", () => {
  test("docs/configuration.md has the table of the code", () => {
    const table = [
      "| variable | default | meaning |",
      "|---|---|---|",
      ...ENVIRONMENT_VARIABLES.map(
        ({ name, defaultText, description }) => `| \`${name}\` | ${defaultText} | ${description} |`,
      ),
    ].join("\n");
    expect(page).toContain(`by a test -->\n${table}\n<!-- /variables -->`);
  });

  test("the table has every variable that is read, and no other", () => {
    const isRead = [...code.matchAll(/"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+_?|HOST|PORT|INDEX|WORKERS)"/g)].map(
      ([, name]) => name,
    );
    const names = ENVIRONMENT_VARIABLES.map(({ name }) => name.replace("<SLUG>", ""));
    expect(new Set(isRead)).toEqual(new Set(names));
  });

  test("docs/configuration.md names every chain", () => {
    const slugs = [...page.slice(page.indexOf("<!-- /variables -->")).matchAll(/`([A-Z]+)`/g)].map(([, name]) => name);
    expect(new Set(slugs)).toEqual(new Set([...getNetwork("mainnet").chains.keys()].map((slug) => slug.toUpperCase())));
  });
});
