import { describe, expect, test } from "vitest";
import { ConfigError, loadConfig } from "../../../src/config/config.js";
import { ENVIRONMENT_VARIABLES } from "../../../src/config/environment-table.js";
import { getNetwork } from "../../../src/hop/networks.js";

const collectProblems = (environment: Record<string, string>): readonly string[] => {
  try {
    loadConfig(environment);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
};

describe("RPC_QUORUM", () => {
  const chains = [...getNetwork("mainnet").chains.keys()];
  const withEndpoints = (count: number, url = (index: number) => `http://node${index}`): Record<string, string> => {
    const urls = Array.from({ length: count }, (_, index) => url(index)).join(",");
    return Object.fromEntries(chains.map((slug) => [`RPC_URL_${slug.toUpperCase()}`, urls]));
  };

  test("is 1 by default, and compares nothing", () => {
    expect(loadConfig({})).toMatchObject({ rpcQuorum: 1, rpcQuorumRate: 0 });
    expect(loadConfig({ ...withEndpoints(1), RPC_QUORUM: "1" }).rpcQuorum).toBe(1);
  });

  test("needs as many endpoints of each chain of mainnet, with different URLs", () => {
    expect(loadConfig({ ...withEndpoints(2), RPC_QUORUM: "2" }).rpcQuorum).toBe(2);
    expect(collectProblems({ ...withEndpoints(2), RPC_QUORUM: "3" })).toHaveLength(chains.length);
    expect(collectProblems({ ...withEndpoints(2), RPC_URL_BASE: "http://a", RPC_QUORUM: "2" })).toEqual([
      "RPC_QUORUM=2 needs 2 endpoints of base; RPC_URL_BASE has 1",
    ]);
    expect(collectProblems({ ...withEndpoints(2, () => "http://same"), RPC_QUORUM: "2" })).toHaveLength(chains.length);
  });

  test.each(["0", "11", "two"])("%s is refused", (value) => {
    expect(collectProblems({ ...withEndpoints(3), RPC_QUORUM: value })).toHaveLength(1);
  });

  test.each(["-0.1", "1.1", "x"])("a rate of %s is refused", (value) => {
    expect(collectProblems({ RPC_QUORUM_RATE: value })).toHaveLength(1);
  });
});

describe("loadConfig", () => {
  test("uses defaults for an empty environment", () => {
    const config = loadConfig({});
    expect(config).toMatchObject({
      host: "0.0.0.0",
      port: 8000,
      assetsUrl: "https://assets.hop.exchange",
      explorerApiUrl: "https://explorer-api.hop.exchange",
      attestationApiUrl: "https://iris-api.circle.com",
      index: undefined,
      customRpcUrlPolicy: "public",
      customRpcPorts: [443, 8545],
      requestTimeoutMs: 10_000,
      rateLimit: undefined,
      trustProxy: false,
      quoteEngine: "snapshot",
      quoteMaxAgeMs: undefined,
      quoteMaxStaleMs: 30_000,
      workerCount: 1,
      metricsPort: undefined,
      metricsHost: "127.0.0.1",
      isTracingEnabled: false,
      logLevel: "info",
    });
    expect(config.tokenPrices.size).toBe(0);
    expect(config.rpcUrls.mainnet.get("gnosis")?.length).toBeGreaterThan(0);
    expect(config.rpcUrls.goerli.get("base")?.length).toBeGreaterThan(0);
  });

  test("keeps the order of endpoints, treats an empty variable as not set, and disables sources that are off", () => {
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
    expect(loadConfig({ METRICS_PORT: "same" }).metricsPort).toBe("same");
    expect(loadConfig({ METRICS_PORT: "9464", METRICS_HOST: "::1" })).toMatchObject({
      metricsPort: 9464,
      metricsHost: "::1",
    });
    expect(config.isTracingEnabled).toBe(true);
  });

  test("combines the file and the start of the index", () => {
    const { index } = loadConfig({ INDEX: "sqlite:/data/hop.db", INDEX_FROM: "2024-01-01, ethereum:19000000" });
    expect(index).toEqual({
      location: { kind: "sqlite", file: "/data/hop.db" },
      from: { timestamp: Date.UTC(2024, 0, 1) / 1_000, blocks: new Map([["ethereum", 19_000_000]]) },
    });
    const defaultStart = loadConfig({ INDEX: "sqlite:/data/hop.db" }).index?.from.timestamp ?? 0;
    expect(Math.abs(Date.now() / 1_000 - 7 * 86_400 - defaultStart)).toBeLessThan(60);
    expect(loadConfig({ INDEX_FROM: "2024-01-01" }).index).toBeUndefined();
  });

  test("combines the servers of an index in PostgreSQL, and refuses them without one", () => {
    const url = (host: string) => `postgres://hop:secret@${host}/hop?sslmode=require`;
    const location = (host: string) => expect.objectContaining({ host, sslMode: "require", password: "secret" });
    const servers = { INDEX_READ_URL: url("standby"), INDEX_LISTEN_URL: url("direct") };
    expect(loadConfig({ INDEX: url("pooler"), ...servers, INDEX_POOL_SIZE: "20" }).index?.location).toEqual({
      kind: "postgres",
      primary: location("pooler"),
      read: location("standby"),
      listen: location("direct"),
      poolSize: 20,
      statementTimeoutMs: 5_000,
    });
    expect(() => loadConfig(servers)).toThrow("INDEX_READ_URL and INDEX_LISTEN_URL need INDEX=postgres://...");
    expect(collectProblems({ INDEX: "postgres://hop:secret@pooler/hop" })).toEqual([
      "INDEX is not off, sqlite:<file> or postgres://user:password@host/database?sslmode=<mode>",
    ]);
  });

  test.each([
    ["QUOTE_VERIFY_INTERVAL_SECONDS", "run `hop-gateway compare` periodically, as in deploy/"],
    ["QUOTE_VERIFY_RATE", "run `hop-gateway compare` periodically, as in deploy/"],
    ["SHARED_STATE_KEY", "what SHARED_STATE shares is no longer signed"],
  ])("warns of the removed variable %s and says what replaces it, without its value", (name, replacement) => {
    const { warnings } = loadConfig({ [name]: "secret" });
    expect(warnings).toEqual([`${name} was removed and has no effect: ${replacement}`]);
    expect(loadConfig({}).warnings).toEqual([]);
  });

  test.each([
    ["redis://127.0.0.1", true],
    ["rediss://user:p%40ss@redis.example:6380/15", true],
    ["redis://[::1]:6379", true],
    ["http://redis.example", false],
    ["redis://", false],
    ["redis://redis.example/name", false],
    ["redis://redis.example?timeout=5", false],
    ["redis.example:6379", false],
  ])("SHARED_STATE=%s is accepted: %s", (url, isAccepted) => {
    if (isAccepted) expect(loadConfig({ SHARED_STATE: url }).sharedStateUrl).toBe(url);
    else expect(() => loadConfig({ SHARED_STATE: url })).toThrow("SHARED_STATE is not off or redis[s]://");
    expect(loadConfig({ SHARED_STATE: "off" }).sharedStateUrl).toBeUndefined();
  });

  test("reports every problem at once and repeats no value", () => {
    const environment = {
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
    };
    const problems = collectProblems(environment);
    expect(problems.join("\n")).not.toContain("secret-key");
    expect(problems.map((line) => line.split(" ")[0]).sort()).toEqual(Object.keys(environment).sort());
  });

  test("accepts as base of the documentation only what can be linked in a header", () => {
    expect(loadConfig({ DOCS_URL: "https://docs.example/日本/" }).docsUrl).toBe(
      "https://docs.example/%E6%97%A5%E6%9C%AC",
    );
    expect(loadConfig({ DOCS_URL: "off" }).docsUrl).toBeUndefined();
    expect(collectProblems({ DOCS_URL: "https://user:secret@docs.example" })).toEqual([
      "DOCS_URL is not off or an http(s) URL without a user, a query or a fragment",
    ]);
  });

  test.each(["[]", "null", '{"ETH":"3000"}', '{"ETH":0}', "{", '{"ETH":1e999}'])("rejects TOKEN_PRICES %s", (text) => {
    expect(collectProblems({ TOKEN_PRICES: text })).toEqual(["TOKEN_PRICES is not a JSON object of positive numbers"]);
  });

  // Any text is a host; a list of variables by chain is checked for each chain.
  test.each(
    ENVIRONMENT_VARIABLES.map(({ name }) => name.replace("<SLUG>", "ETHEREUM")).filter(
      (name) => !name.endsWith("HOST"),
    ),
  )("reads %s and rejects an invalid value without repeating it", (name) => {
    const [problem = "", ...others] = collectProblems({ [name]: "~invalid~" });
    expect(others).toEqual([]);
    expect(problem).toMatch(new RegExp(`^${name} is not \\S`));
    expect(problem).not.toContain("~invalid~");
  });

  test.each(["RPC_URL_", "GOERLI_RPC_URL_"])("reads %s of every chain and warns of an unknown chain", (prefix) => {
    const network = prefix === "RPC_URL_" ? "mainnet" : "goerli";
    const names = [...getNetwork(network).chains.keys()].map((slug) => `${prefix}${slug.toUpperCase()}`);
    const { rpcUrls, warnings } = loadConfig(
      Object.fromEntries(names.map((name) => [name, `https://${name}.example`])),
    );
    expect([...rpcUrls[network].values()]).toEqual(names.map((name) => [`https://${name}.example`]));
    expect(warnings).toEqual([]);
    expect(loadConfig({ [`${prefix}MARS`]: "https://mars.example" }).warnings).toEqual([
      `${prefix}MARS has no effect: it names no chain of its network`,
    ]);
  });
});
