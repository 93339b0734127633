import { afterEach, beforeAll, expect, test } from "vitest";
import { buildService } from "../../support/service/build-service.js";
import { type ServiceProcess, startServiceProcess } from "../../support/service/service-process.js";

// Compares quotes with the SDK's in its real process, against the local network.

let command: string;
beforeAll(async () => {
  command = await buildService();
});

const started: ServiceProcess[] = [];
afterEach(async () => {
  for (const service of started.splice(0)) {
    service.signal("SIGKILL");
    await service.exitCode;
  }
});

async function start(environment: Readonly<Record<string, string>> = {}) {
  const service = await startServiceProcess(command, { QUOTE_VERIFY_INTERVAL_SECONDS: "1", ...environment });
  started.push(service);
  return service;
}

async function quote({ url }: ServiceProcess, [token, from, to]: readonly string[]) {
  const path = `/v1/quote?amount=123456789&token=${token}&fromChain=${from}&toChain=${to}&slippage=0.5`;
  const response = await fetch(`${url}${path}&view=FULL`);
  expect(response.status).toBe(200);
}

/** Returns the comparisons in the log, oldest first. */
function listComparisons(service: ServiceProcess): Record<string, unknown>[] {
  const lines = service
    .output()
    .stdout.split("\n")
    .filter((line) => line.includes("the SDK's"));
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** Waits longer than the default does. */
const BUSY = { timeout: 280_000, interval: 500 };

test.each([
  ["ETH", "arbitrum", "optimism"],
  ["USDC", "arbitrum", "base"],
  ["USDC.e", "polygon", "arbitrum"],
  ["DAI", "ethereum", "polygon"],
])(
  "a quote of %s from %s to %s equals the SDK's at the same blocks",
  async (...route) => {
    const service = await start();
    // On a machine that is busy with other tests, a process of the lowest priority may not finish in time.
    const findComparisons = async () => {
      await quote(service, route);
      return listComparisons(service).filter(({ msg }) => msg !== "quote could not be compared with the SDK's");
    };
    await expect.poll(findComparisons, BUSY).not.toEqual([]);
    const [{ msg, token, fromChain, toChain } = {}] = await findComparisons();
    expect([token, fromChain, toChain, msg]).toEqual([...route, "quote equals the SDK's"]);
  },
  300_000,
);
