import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { connectChains, getLocalChain } from "../../devnet/chain/local-chains.js";
import { startGateway, type TestGateway } from "../support/service/in-process-gateway.js";
import { scrapeMetrics } from "../support/service/metrics-scrape.js";
import { type Lie, listLies } from "./lies/lies.js";
import { type LyingNetwork, startLyingNetwork } from "./lies/lying-network.js";

// The first of three endpoints of every chain lies. With a quorum of two no lie gets into an answer, and who tells it is
// named; without one, the sampled comparison names it.

const NAMED_TIMEOUT_MS = 20_000;
const BRIDGED_USDC = "USDC.e";
let network: LyingNetwork;
let expected: Readonly<Record<string, unknown>>;

const quote = (from: string, to: string, token: string, amount: string): string =>
  `/v1/quote?amount=${amount}&token=${token}&fromChain=${from}&toChain=${to}&slippage=0.5`;
const UNKNOWN = `0x${"ab".repeat(32)}`;
function listPaths(): Readonly<Record<string, string>> {
  return {
    quote: quote("polygon", "arbitrum", "ETH", "1000000000000000000"),
    "quote to optimism": quote("polygon", "optimism", "ETH", "1000000000000000000"),
    "quote with a swap": quote("polygon", "arbitrum", BRIDGED_USDC, "1000000000"),
    "status by hash": `/v1/transfer-status?transferHash=${findDelivered().transactionHash}&view=FULL`,
    "status by id": `/v1/transfer-status?transferId=${findDelivered().transferId}`,
    "status of an unknown hash": `/v1/transfer-status?transferHash=${UNKNOWN}`,
    "status of an unknown id": `/v1/transfer-status?transferId=${UNKNOWN}`,
  };
}

function findDelivered() {
  const delivered = network.transfers.find(({ name }) => name === "usdt-polygon-arbitrum");
  if (delivered === undefined) throw new Error("the network has no such transfer");
  return delivered;
}

const getReceipt = (): Promise<unknown> =>
  getLocalChain(connectChains(network.chains), "polygon").rpc("eth_getTransactionReceipt", [
    findDelivered().transactionHash,
  ]);

const lies = Object.entries(listLies(getReceipt));

beforeAll(async () => {
  network = await startLyingNetwork();
  await withGateway({}, async (gateway) => {
    expected = await askAll(gateway);
  });
  const statuses = Object.values(expected).map((answer) => (answer as { status: number }).status);
  expect(statuses).toEqual([200, 200, 200, 200, 200, 404, 404]);
});
afterAll(() => network.stop());

/** Fields of a status that are not waited for, with their values while unknown: a busy machine can delay them. */
const UNKNOWN_FIELDS: Readonly<Record<string, unknown>> = {
  ...{ bondTransactionHash: "", bonderAddress: "", receivedAmount: "", receivedToken: "" },
  ...{ isFinal: false, timestamp: 0 },
};

/** Returns an answer with what is true of fields that are not known yet. */
function completeUnknown(actual: unknown, truth: unknown): unknown {
  if (typeof actual !== "object" || actual === null || Array.isArray(actual)) return actual;
  const known = (truth ?? {}) as Record<string, unknown>;
  const complete = ([name, value]: [string, unknown]): [string, unknown] => {
    const isUnknown = name in UNKNOWN_FIELDS && value === UNKNOWN_FIELDS[name];
    return [name, isUnknown ? known[name] : completeUnknown(value, known[name])];
  };
  return Object.fromEntries(Object.entries(actual).map(complete));
}

/** Deliveries carry a deadline. In some seconds it has a zero byte more, which costs less gas: less than this of the amount. */
const MAX_DIFFERENCE = 1e-6;
const AMOUNT_FIELDS = [
  "amountOutMin",
  "destinationAmountOutMin",
  "bonderFee",
  "estimatedReceived",
  "estimatedRecieved",
];

/** Expects a quote with the same amounts but for what the second of the quote makes of them. */
function expectSameQuote(answer: unknown): unknown {
  const quoted = answer as Record<string, unknown>;
  const amounts = AMOUNT_FIELDS.map((name) => {
    const isNear = (actual: unknown): boolean =>
      Math.abs(Number(actual) - Number(quoted[name])) <= MAX_DIFFERENCE * Number(quoted.amountIn);
    return [name, expect.toSatisfy(isNear, `${quoted[name]} with a zero byte more or less`)];
  });
  return { ...quoted, ...Object.fromEntries(amounts) };
}

async function expectTruth(gateway: TestGateway): Promise<void> {
  const same = Object.entries(expected).map(([name, answer]) => [
    name,
    name.startsWith("quote") ? expectSameQuote(answer) : answer,
  ]);
  expect(completeUnknown(await askAll(gateway), expected)).toEqual(Object.fromEntries(same));
}

async function withGateway(
  settings: Readonly<Record<string, string>>,
  work: (gateway: TestGateway) => Promise<void>,
): Promise<void> {
  const gateway = await startGateway({ ...network.environment, ...settings });
  try {
    await work(gateway);
  } finally {
    await gateway.stop();
  }
}

async function askAll(gateway: TestGateway): Promise<Record<string, unknown>> {
  const answers = Object.entries(listPaths()).map(async ([name, path]) => {
    const { status, body } = await gateway.get(path);
    // They follow the clock.
    const { deadline: _, destinationDeadline: __, ...rest } = body as Record<string, unknown>;
    return [name, { status, ...rest }] as const;
  });
  return Object.fromEntries(await Promise.all(answers));
}

/** Asks until the first endpoint of a chain is named for its lie, and no other ever is. */
async function expectNamed(gateway: TestGateway, { namedFor }: Lie): Promise<void> {
  if (namedFor === undefined) return;
  await vi.waitFor(
    async () => {
      await askAll(gateway);
      const { body } = await gateway.get("/readyz");
      const { chains } = body as { chains: { endpoints: { state: string; endpoint: string }[] }[] };
      const state = namedFor === "lagging" ? "lagging" : "outvoted";
      const named = chains.flatMap(({ endpoints }) => endpoints.filter((endpoint) => endpoint.state === state));
      expect(named).not.toEqual([]);
      for (const { endpoint } of named) expect(endpoint).toMatch(/^[a-z]+\[1\]#[0-9a-f]{6}$/);
      const metrics = await scrapeMetrics(gateway.metricsUrl);
      expect(metrics.sum("hop_gateway_endpoint_state", { state })).toBeGreaterThan(0);
      if (namedFor !== "lagging")
        expect(metrics.sum("hop_gateway_outvoted_total", { read: namedFor })).toBeGreaterThan(0);
      const outvoted = metrics.series.filter((series) => series.startsWith("hop_gateway_outvoted_total"));
      for (const series of outvoted) expect(series).toMatch(/endpoint="[a-z]+\[1\]#/);
    },
    { timeout: NAMED_TIMEOUT_MS, interval: 200 },
  );
}

test("docs/faults.md has a row for each lie", () => {
  const document = readFileSync(new URL("../../docs/faults.md", import.meta.url), "utf8");
  const [, table = ""] = document.split("## Lies");
  const rows = [...table.matchAll(/^\| (?!lie |-)(.+?) \| (.+?) \|/gm)].map(([, lie, wrong]) => [lie, wrong]);
  expect(rows).toEqual(lies.map(([lie]) => [lie, "none"]));
});

describe.each(lies)("an endpoint that tells %s", (_, lie) => {
  beforeAll(() => {
    network.setLie(lie.tell);
  });
  afterAll(() => {
    network.setLie(undefined);
  });

  test("changes no answer with a quorum of two, and is named", { timeout: 60_000 }, async () => {
    await withGateway({ RPC_QUORUM: "2" }, async (gateway) => {
      await expectTruth(gateway);
      await expectNamed(gateway, lie);
      await expectTruth(gateway);
    });
  });

  test("is reported by the sampled comparison", { timeout: 300_000 }, async () => {
    // A read is not compared while four others are, and what is final is not read again, except by another service.
    const report = () => withGateway({ RPC_QUORUM_RATE: "1" }, (gateway) => expectNamed(gateway, lie));
    await vi.waitFor(report, { timeout: 240_000 });
  });
});
