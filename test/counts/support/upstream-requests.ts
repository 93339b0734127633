import { setImmediate as turn } from "node:timers/promises";
import { vi } from "vitest";
import { buildQuotePath, type Route } from "../../../bench/support/routes.js";
import { createGateway } from "../../../src/app/gateway.js";
import { loadConfig } from "../../../src/config/config.js";
import { startAttackedChains } from "../../support/attacks/attacked-chains.js";

const QUOTES = 1_000;
/** Ten quotes a second, of the time that the service sees. */
const INTERVAL_MS = 100;
/** Both servers are in this process: what one sends to the other arrives within a few turns of its event loop. */
const SETTLING_TURNS = 20;
const FAKED = ["Date", "performance", "setTimeout", "clearTimeout", "setInterval", "clearInterval"] as const;

/**
 * Returns how many HTTP requests a service sends to the chains for 1,000 quotes on these routes in turn, ten a second, from its
 * first quote on. Its clocks and timers are faked: they move on when all that they have started has ended.
 */
export async function countUpstreamRequests(routes: readonly Route[]): Promise<number> {
  const chains = await startAttackedChains();
  vi.useFakeTimers({ toFake: [...FAKED] });
  const environment = { HOST: "127.0.0.1", PORT: "0", METRICS_PORT: "same", LOG_LEVEL: "silent" };
  const gateway = await createGateway(loadConfig({ ...chains.environment, ...environment }));
  try {
    const { url } = await gateway.start();
    const settle = async (): Promise<void> => {
      for (let [turns, before] = [0, -1]; turns < SETTLING_TURNS; turns += 1, await turn()) {
        const requests = chains.requestCount();
        if (requests !== before) [turns, before] = [0, requests];
      }
    };
    for (let index = 0; index < QUOTES; index++) {
      const response = await fetch(url + buildQuotePath(routes[index % routes.length] as Route, index));
      const text = await response.text();
      if (!response.ok) throw new Error(text);
      await settle();
      await vi.advanceTimersByTimeAsync(INTERVAL_MS);
      await settle();
    }
    return chains.requestCount();
  } finally {
    vi.useRealTimers();
    await gateway.stop();
    await chains.close();
  }
}
