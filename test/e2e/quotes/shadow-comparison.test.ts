import { setTimeout as sleep } from "node:timers/promises";
import { expect, inject, test } from "vitest";
import { createGateway } from "../../../src/app/gateway.js";
import { loadConfig } from "../../../src/config/config.js";
import { createLogger } from "../../../src/observability/log.js";

test("logs that quotes equal those of the SDK at the same blocks", async () => {
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger("debug", { write: (line) => void lines.push(JSON.parse(line)) });
  const defaults = { HOST: "127.0.0.1", PORT: "0", METRICS_PORT: "0" };
  const environment = { ...inject("network").environment, ...defaults, QUOTE_VERIFY_RATE: "1" };
  const gateway = await createGateway(loadConfig(environment), logger);
  const { url } = await gateway.start();
  const routes = [
    ["ETH", "arbitrum", "optimism"],
    ["ETH", "gnosis", "ethereum"],
    ["USDT", "polygon", "arbitrum"],
    ["HOP", "arbitrum", "nova"],
    ["USDC", "arbitrum", "base"],
    ["USDC.e", "polygon", "arbitrum"],
    ["ETH", "ethereum", "arbitrum"],
    ["DAI", "ethereum", "polygon"],
  ];
  try {
    for (const [token, from, to] of routes) {
      const response = await fetch(
        `${url}/v1/quote?amount=123456789&token=${token}&fromChain=${from}&toChain=${to}&slippage=0.5`,
      );
      expect(response.status).toBe(200);
    }
    const results = (): unknown[] =>
      lines.flatMap(({ msg, token }) => (/\bSDK\b/.test(String(msg)) ? [[msg, token]] : []));
    while (results().length < routes.length) await sleep(50);
    expect(results()).toEqual(routes.map(([token]) => ["quote equals the SDK's", token]));
  } finally {
    await gateway.stop();
  }
});
