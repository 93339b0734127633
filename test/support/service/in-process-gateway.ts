import { inject } from "vitest";
import { createGateway, type GatewayOptions } from "../../../src/app/gateway.js";
import { loadConfig } from "../../../src/config/config.js";
import { findPlantedKeys, plantKeys } from "./planted-keys.js";
import { createFileLogger } from "./recorded-output.js";

export interface TestGateway {
  readonly url: string;
  /** GET and parse. */
  get(path: string): Promise<{ status: number; headers: Headers; body: unknown }>;
  stop(): Promise<void>;
}

/**
 * The whole service over the shared local network, as the environment would configure it, with a key planted in every
 * RPC URL. What it logs is searched for that key at the end, what it answers at once.
 */
export async function startGateway(
  environment: Readonly<Record<string, string>> = {},
  options: GatewayOptions = {},
): Promise<TestGateway> {
  const configured = { ...inject("network").environment, HOST: "127.0.0.1", PORT: "0", ...environment };
  const gateway = await createGateway(loadConfig(plantKeys(configured)), createFileLogger(), options);
  const { url } = await gateway.start();
  return {
    url,
    async get(path) {
      const response = await fetch(`${url}${path}`);
      const text = await response.text();
      const keys = findPlantedKeys(`${[...response.headers].join("\n")}\n${text}`);
      if (keys.length > 0) throw new Error(`the answer to ${path} holds ${keys.join(", ")}`);
      return { status: response.status, headers: response.headers, body: JSON.parse(text) };
    },
    stop: () => gateway.stop(),
  };
}
