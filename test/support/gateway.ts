import { inject } from "vitest";
import { loadConfig } from "../../src/config.js";
import { createGateway } from "../../src/gateway.js";
import { createLogger } from "../../src/log.js";

export interface TestGateway {
  readonly url: string;
  /** GET and parse. */
  get(path: string): Promise<{ status: number; headers: Headers; body: unknown }>;
  stop(): Promise<void>;
}

/** The whole service over the shared local network, as the environment would configure it. */
export async function startGateway(environment: Readonly<Record<string, string>> = {}): Promise<TestGateway> {
  const config = loadConfig({ ...inject("network").environment, HOST: "127.0.0.1", PORT: "0", ...environment });
  const gateway = createGateway(config, createLogger("silent"));
  const { url } = await gateway.start();
  return {
    url,
    async get(path) {
      const response = await fetch(`${url}${path}`);
      return { status: response.status, headers: response.headers, body: await response.json() };
    },
    stop: () => gateway.stop(),
  };
}
