import { describe, expect, test } from "vitest";
import { ConfigError, loadConfig } from "../../../src/config/config.js";

function problemsOf(environment: Readonly<Record<string, string>>): readonly string[] {
  try {
    loadConfig(environment);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

describe("the start stops at", () => {
  test.each([
    ["a letter too few", "INDX", "INDEX"],
    ["a letter too few", "CUSTOM_RPC_URL", "CUSTOM_RPC_URLS"],
    ["a letter too much", "WORKERSS", "WORKERS"],
    ["another letter", "TRUST_PR0XY", "TRUST_PROXY"],
    ["two letters swapped", "LOG_LEVLE", "LOG_LEVEL"],
    ["another case", "trust_proxy", "TRUST_PROXY"],
    ["an underscore too few", "RPCQUORUM", "RPC_QUORUM"],
    ["a word too much", "CUSTOM_RPC_URLS_POLICY", "CUSTOM_RPC_URLS"],
    ["a word too few", "REQUEST_TIMEOUT", "REQUEST_TIMEOUT_MS"],
    ["words too few", "IP_RATE_LIMIT", "IP_RATE_LIMIT_REQ_PER_SEC or IP_RATE_LIMIT_WINDOW_MS"],
    ["a chain with a letter too few", "RPC_URL_ARBITRM", "RPC_URL_ARBITRUM"],
    ["a chain of goerli with another letter", "GOERLI_RPC_URL_BASS", "GOERLI_RPC_URL_BASE"],
    ["a prefix with a letter too much", "RPC_URLS_BASE", "RPC_URL_BASE"],
  ])("%s: %s", (_, name, meant) => {
    expect(problemsOf({ [name]: "secret" })).toEqual([
      `${name} is not a variable of this service: did you mean ${meant}?`,
    ]);
  });
});

test("a near miss that is empty counts as not set", () => {
  expect(problemsOf({ INDX: "", CUSTOM_RPC_URL: " " })).toEqual([]);
});

test.each(["RPC_URL_MARS", "RPC_URL_OPTIMISM_SEPOLIA", "GOERLI_RPC_URL_GNOSIS"])("%s only warns", (name) => {
  const { warnings } = loadConfig({ [name]: "https://a.example/secret" });
  expect(warnings).toEqual([`${name} has no effect: it names no chain of its network`]);
});

/** What Kubernetes gives a container for a service. */
const linksOf = (service: string) => ({
  [`${service}_SERVICE_HOST`]: "10.96.0.7",
  [`${service}_SERVICE_PORT`]: "5432",
  [`${service}_SERVICE_PORT_HTTPS`]: "443",
  [`${service}_PORT`]: "tcp://10.96.0.7:5432",
  [`${service}_PORT_5432_TCP`]: "tcp://10.96.0.7:5432",
  [`${service}_PORT_5432_TCP_PROTO`]: "tcp",
  [`${service}_PORT_5432_TCP_PORT`]: "5432",
  [`${service}_PORT_5432_TCP_ADDR`]: "10.96.0.7",
});

test("the environment of a pod neither stops nor warns", () => {
  const ownNames = ["INDEX", "METRIC", "WORKERS", "RPC_URL_BASE", "RPC_URL", "SHARED_STATE"];
  const services = ["KUBERNETES", "HOP_GATEWAY", ...ownNames];
  const environment = {
    ...Object.assign({}, ...services.map(linksOf)),
    ...{ HOME: "/home/node", HOSTNAME: "hop-gateway-7d9f-x2x", PATH: "/usr/bin", PWD: "/", SHLVL: "1", TERM: "xterm" },
    ...{ NODE_VERSION: "24.1.0", YARN_VERSION: "1.22.22", NODE_OPTIONS: "--enable-source-maps", LANG: "C.UTF-8" },
    ...{ INDEX_HTML: "index.html", POD_NAME: "a", POD_IP: "10.0.0.1", TZ: "UTC", HTTPS_PROXY: "http://proxy:3128" },
    ...{ OTEL_SERVICE_NAME: "hop-gateway", OTEL_EXPORTER_OTLP_PROTOCOL: "grpc", npm_config_cache: "/tmp", HOSTS: "a" },
  };
  expect(loadConfig(environment).warnings).toEqual([]);
});

test("every known name is accepted, whatever the others are near to", () => {
  const environment = { RPC_QUORUM: "1", RPC_QUORUM_RATE: "0.1", INDEX: "off", INDEX_FROM: "2024-01-01", HOST: "::1" };
  expect(problemsOf(environment)).toEqual([]);
});
