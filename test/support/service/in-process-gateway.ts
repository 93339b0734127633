import { inject } from "vitest";
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
