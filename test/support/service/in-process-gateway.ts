import { afterAll, beforeAll, inject, onTestFinished } from "vitest";
import { createGateway, type GatewayOptions } from "../../../src/app/gateway.js";
import { loadConfig } from "../../../src/config/config.js";
import { findPlantedKeys, plantKeys } from "./planted-keys.js";
import { createFileLogger } from "./recorded-output.js";
import { skipCheapSecond } from "./skip-cheap-seconds.js";

export interface TestGateway {
  readonly url: string;
  readonly metricsUrl: string;
  /** Sends a GET and parses its JSON. */
  get(path: string): Promise<{ status: number; headers: Headers; body: unknown }>;
  stop(): Promise<void>;
}

// Tests compare quotes that were made at different times.
const { now } = Date;
Date.now = () => skipCheapSecond(now());

/**
 * Starts the whole service over the shared local network, configured by the environment, with a key planted in every RPC
 * URL. Its log is searched for the key at the end of the run, its responses immediately.
 */
export async function startGateway(
  environment: Readonly<Record<string, string>> = {},
  options: GatewayOptions = {},
): Promise<TestGateway> {
  const defaults = { HOST: "127.0.0.1", PORT: "0", METRICS_PORT: "0" };
  const configured = { ...inject("network").environment, ...defaults, ...environment };
  const gateway = await createGateway(loadConfig(plantKeys(configured)), createFileLogger(), options);
  const { url, metricsUrl = `${url}/metrics` } = await gateway.start();
  return {
    url,
    metricsUrl,
    async get(path) {
      const response = await fetch(`${url}${path}`);
      const text = await response.text();
      const keys = findPlantedKeys(`${[...response.headers].join("\n")}\n${text}`);
      if (keys.length > 0) throw new Error(`the response to ${path} contains ${keys.join(", ")}`);
      return { status: response.status, headers: response.headers, body: JSON.parse(text) };
    },
    stop: () => gateway.stop(),
  };
}

type Environment = Parameters<typeof startGateway>[0];

/**
 * Starts a gateway for the tests of a file or a group, and stops it after them. Its members exist while they run.
 * @param environment as a function if it is known only once earlier `beforeAll` have run
 */
export function useGateway(environment?: Environment | (() => Environment), options?: GatewayOptions): TestGateway {
  const gateway: Partial<TestGateway> = {};
  beforeAll(async () => {
    const given = typeof environment === "function" ? environment() : environment;
    Object.assign(gateway, await startGateway(given, options));
  });
  afterAll(() => gateway.stop?.());
  return gateway as TestGateway;
}

/** Starts a gateway and stops it at the end of the running test. */
export async function startGatewayForTest(...args: Parameters<typeof startGateway>): Promise<TestGateway> {
  const gateway = await startGateway(...args);
  onTestFinished(() => gateway.stop());
  return gateway;
}

/** Runs work with a gateway of its own. */
export async function withGateway<T>(environment: Environment, work: (gateway: TestGateway) => Promise<T>): Promise<T> {
  const gateway = await startGateway(environment);
  try {
    return await work(gateway);
  } finally {
    await gateway.stop();
  }
}
