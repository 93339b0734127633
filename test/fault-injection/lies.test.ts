import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { connectChains, getLocalChain } from "../../devnet/chain/local-chains.js";
import { isFullEffort } from "../support/effort.js";
import { type TestGateway, withGateway } from "../support/service/in-process-gateway.js";
import { scrapeMetrics } from "../support/service/metrics-scrape.js";
import { type Lie, listLies } from "./lies/lies.js";
import { type LyingNetwork, startLyingNetwork } from "./lies/lying-network.js";

// The first of three endpoints of every chain lies. With a quorum of two no lie gets into an answer, and who tells it is
// named; without one, the sampled comparison names it. The short form tells one lie of each kind.

const NAMED_TIMEOUT_MS = 20_000;
/** Long enough for a busy machine. */
const LONG_TIMEOUT = { REQUEST_TIMEOUT_MS: "60000" };
/** Only a hang takes longer. */
const BUSY_MS = 60_000;
const BRIDGED_USDC = "USDC.e";
/** Batches read the chains for themselves, so a gateway that is asked for them is asked for nothing else. */
const ANSWERS = ["answer", "item of a batch"] as const;
type Answer = (typeof ANSWERS)[number];
type Json = Readonly<Record<string, unknown>>;
/** By the names of the queries. */
type Answers = Readonly<Record<string, Json>>;
let network: LyingNetwork;
let expected: Readonly<Record<Answer, Answers>>;

const quote = (from: string, to: string, token: string, amount: string): string =>
  `/v1/quote?amount=${amount}&token=${token}&fromChain=${from}&toChain=${to}&slippage=0.5`;
const ONE_ETH = "1000000000000000000";
const mixedBatch = [
  { token: BRIDGED_USDC, fromChain: "polygon", toChain: "arbitrum", amount: "1000000000", slippage: 0.5 },
  { token: "USDC", fromChain: "arbitrum", toChain: "optimism", amount: "1000000000", slippage: 0.5 },
  { token: "ETH", fromChain: "polygon", toChain: "optimism", receiveAmount: ONE_ETH, slippage: 0.5 },
];
const batches: Readonly<Record<string, string>> = {
  "batch of pairs": `/v1/quotes?token=ETH&fromChain=polygon&toChain=arbitrum&toChain=optimism&amount=${ONE_ETH}&amount=9${ONE_ETH}&slippage=0.5&view=FULL`,
  "batch of requests": `/hop.bridge.v1.BridgeService/BatchGetQuotes?connect=v1&encoding=json&message=${encodeURIComponent(JSON.stringify({ requests: mixedBatch }))}`,
};
const UNKNOWN = `0x${"ab".repeat(32)}`;
function listPaths(answer: Answer): Readonly<Record<string, string>> {
  if (answer === "item of a batch") return batches;
  return {
    quote: quote("polygon", "arbitrum", "ETH", ONE_ETH),
    "quote to optimism": quote("polygon", "optimism", "ETH", ONE_ETH),
    "quote with a swap": quote("polygon", "arbitrum", BRIDGED_USDC, "1000000000"),
    "status by hash": `/v1/transfer-status?transferHash=${findDelivered().transactionHash}&view=FULL`,
    "status by id": `/v1/transfer-status?transferId=${findDelivered().transferId}`,
    withdrawal: `/v1/withdrawal?transferHash=${findTransfer("usdt-optimism-polygon-withdrawable").transactionHash}`,
    "status of an unknown hash": `/v1/transfer-status?transferHash=${UNKNOWN}`,
    "status of an unknown id": `/v1/transfer-status?transferId=${UNKNOWN}`,
  };
}

const findDelivered = () => findTransfer("usdt-polygon-arbitrum");

function findTransfer(wanted: string) {
  const transfer = network.transfers.find(({ name }) => name === wanted);
  if (transfer === undefined) throw new Error("the network has no such transfer");
  return transfer;
}

const getReceipt = (): Promise<unknown> =>
  getLocalChain(connectChains(network.chains), "polygon").rpc("eth_getTransactionReceipt", [
    findDelivered().transactionHash,
  ]);

const lies = Object.entries(listLies(getReceipt));
/** Returns whether a lie is about something that is read for such answers. */
const isReadFor = (kind: Answer, { isOnlyForStatuses }: Lie): boolean => kind === "answer" || !isOnlyForStatuses;

beforeAll(async () => {
  network = await startLyingNetwork();
  const truths = ANSWERS.map(async (answer) => {
    const truth = await withSettings({}, (gateway) => askAll(gateway, answer));
    return [answer, truth] as const;
  });
  expected = Object.fromEntries(await Promise.all(truths)) as typeof expected;
  const statuses = Object.values(expected.answer).map(({ status }) => status);
  expect(statuses).toEqual([200, 200, 200, 200, 200, 200, 404, 404]);
  const items = Object.values(expected["item of a batch"]).flatMap((batch) => listItems(batch));
  expect(items.filter(({ quote: quoted }) => quoted !== undefined)).toHaveLength(4 + mixedBatch.length);
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
  // Computed where the amount to receive is given.
  "amountIn",
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

/** Returns the results of a batch. */
function listItems(batch: Json): readonly Json[] {
  return batch.results as readonly Json[];
}

function expectSame(name: string, answer: Json): unknown {
  if (name.startsWith("quote")) return expectSameQuote(answer);
  if (!name.startsWith("batch")) return answer;
  return { ...answer, results: listItems(answer).map((item) => ({ ...item, quote: expectSameQuote(item.quote) })) };
}

async function expectTruth(gateway: TestGateway, kind: Answer): Promise<void> {
  const truth = expected[kind];
  const same = Object.entries(truth).map(([name, answer]) => [name, expectSame(name, answer)]);
  expect(completeUnknown(await askAll(gateway, kind), truth)).toEqual(Object.fromEntries(same));
}

const withSettings = <T>(settings: Readonly<Record<string, string>>, work: (gateway: TestGateway) => Promise<T>) =>
  withGateway({ ...network.environment, ...LONG_TIMEOUT, ...settings }, work);

async function askAll(gateway: TestGateway, kind: Answer): Promise<Answers> {
  const answers = Object.entries(listPaths(kind)).map(
    async ([name, path]) => [name, await ask(gateway, path)] as const,
  );
  return Object.fromEntries(await Promise.all(answers));
}

/** Asks again where an honest endpoint gave no answer: no lie does that, but a machine that is too busy. */
async function ask(gateway: TestGateway, path: string): Promise<Json> {
  for (const startedAt = performance.now(); ; await sleep(200)) {
    const { status, body } = await gateway.get(path);
    const isBusy = /only \d of the 2 RPC endpoints of \w+ that have to agree responded/.test(JSON.stringify(body));
    if (!isBusy || performance.now() - startedAt > BUSY_MS) return { status, ...omitTimes(body as Json) };
  }
}

/** Returns an answer without what follows the clock. Of a quote's details, the blocks are kept. */
function omitTimes(answer: Json): Json {
  if (answer.results !== undefined) {
    const items = listItems(answer).map((item) =>
      item.quote === undefined ? item : { ...item, quote: omitTimes(item.quote as Json) },
    );
    return { ...answer, results: items };
  }
  const { deadline: _, destinationDeadline: __, details, ...rest } = answer;
  if (details === undefined) return rest;
  const { sourceBlock, destinationBlock } = details as Json;
  return { ...rest, sourceBlock, destinationBlock };
}

/** Asks until the first endpoint of a chain is named for its lie, and no other ever is. */
async function expectNamed(gateway: TestGateway, { namedFor }: Lie, kind: Answer): Promise<void> {
  if (namedFor === undefined) return;
  await vi.waitFor(
    async () => {
      await askAll(gateway, kind);
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

test("docs/internals/faults.md has a row for each lie", () => {
  const document = readFileSync(new URL("../../docs/internals/faults.md", import.meta.url), "utf8");
  const [, table = ""] = document.split("## Lies");
  const rows = [...table.matchAll(/^\| (?!lie |-)(.+?) \| (.+?) \|/gm)].map(([, lie, wrong]) => [lie, wrong]);
  expect(rows).toEqual(lies.map(([lie]) => [lie, "none"]));
});

/** The lies of a run: in the short form the first of those for which an endpoint is named alike. */
const told = lies.filter(
  ([, { namedFor }], index) => isFullEffort || lies.findIndex(([, other]) => other.namedFor === namedFor) === index,
);

describe.each(told)("an endpoint that tells %s", (_, lie) => {
  beforeAll(() => {
    network.setLie(lie.tell);
  });
  afterAll(() => {
    network.setLie(undefined);
  });

  describe("with a quorum of two", () => {
    test.concurrent.each(ANSWERS)(
      "changes no %s, and is named where it is read",
      { timeout: 300_000 },
      async (kind) => {
        const untrue: unknown[] = [];
        const checkTruth = (gateway: TestGateway) => expectTruth(gateway, kind).catch((error) => untrue.push(error));
        const confirm = async (gateway: TestGateway) => {
          await checkTruth(gateway);
          if (!isReadFor(kind, lie)) return;
          await expectNamed(gateway, lie, kind);
          await checkTruth(gateway);
        };
        // What is final is read once, and who was too busy to be asked about it again is named by another service.
        await vi.waitFor(() => withSettings({ RPC_QUORUM: "2" }, confirm), { timeout: 240_000 });
        expect(untrue).toEqual([]);
      },
    );
  });

  describe("with the sampled comparison", () => {
    const kinds = ANSWERS.filter((kind) => isReadFor(kind, lie));
    test.concurrent.each(kinds)("is reported where it is read for an %s", { timeout: 300_000 }, async (kind) => {
      // A read is not compared while four others are, and what is final is not read again, except by another service.
      const report = () => withSettings({ RPC_QUORUM_RATE: "1" }, (gateway) => expectNamed(gateway, lie, kind));
      await vi.waitFor(report, { timeout: 240_000 });
    });
  });
});
