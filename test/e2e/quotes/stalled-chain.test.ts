import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { getLocalChain } from "../../../devnet/chain/local-chains.js";
import { closeAfterTest } from "../../support/close-after-test.js";
import { startGatewayForTest, useGateway } from "../../support/service/in-process-gateway.js";
import { scrapeMetrics } from "../../support/service/metrics-scrape.js";
import { useOwnNetwork } from "../../support/service/own-network.js";
import { startRpcProxy } from "../../support/stubs/rpc-proxy.js";

// A chain makes no blocks, and then makes some again. The network is the test's own: new blocks would make transfers of
// other tests final.

const STOPPED = "linea";
// Longer than heads take to be read on a busy machine, which are read every ten seconds.
const LIMIT_MS = 15_000;
const PATIENCE = { timeout: 120_000, interval: 200 };

const { network, chains } = useOwnNetwork();
let miner: NodeJS.Timeout;

const getUrl = (slug: string): string => network.chains[slug]?.url ?? "";
const mine = (slug: string) => getLocalChain(chains, slug).rpc("evm_mine");

beforeAll(() => {
  const moving = [...chains.keys()].filter((slug) => slug !== STOPPED);
  miner = setInterval(() => {
    for (const slug of moving) mine(slug).catch(() => {});
  }, 1_000);
});
afterAll(() => clearInterval(miner));
const getEnvironment = (more = {}) => ({ ...network.environment, MAX_BLOCK_AGE_MS: String(LIMIT_MS), ...more });
const gateway = useGateway(getEnvironment);

const toPath = (from: string, to: string): string =>
  `/v1/quote?amount=1000000000000000000&token=ETH&fromChain=${from}&toChain=${to}&slippage=0.5`;
const quote = (from: string, to: string) => gateway.get(toPath(from, to));
const refused = {
  status: 503,
  body: {
    code: "unavailable",
    reason: "CHAIN_STALLED",
    message: expect.stringMatching(/^linea is stalled: its newest block is \d+ s old$/),
  },
};

test("routes of a stalled chain are refused, and served again once it has a new block", async () => {
  // Until it is stalled, all are quoted: the first answers come within the limit, and were not refused.
  for (const [from, to] of [
    [STOPPED, "arbitrum"],
    ["arbitrum", STOPPED],
    ["ethereum", STOPPED],
    ["optimism", "arbitrum"],
  ] as const)
    await vi.waitFor(async () => {
      await mine(STOPPED);
      expect(await quote(from, to)).toMatchObject({ status: 200 });
    }, PATIENCE);

  await vi.waitFor(async () => expect(await quote(STOPPED, "arbitrum")).toMatchObject(refused), PATIENCE);
  expect(await quote("arbitrum", STOPPED)).toMatchObject(refused);
  expect(await quote("ethereum", STOPPED)).toMatchObject(refused);
  await vi.waitFor(async () => expect(await quote("optimism", "arbitrum")).toMatchObject({ status: 200 }), PATIENCE);

  const batch = `/v1/quotes?token=ETH&fromChain=arbitrum&slippage=0.5&amount=1000000000000000000&toChain=${STOPPED}&toChain=optimism`;
  await vi.waitFor(async () => {
    const { reason, message } = refused.body;
    expect(await gateway.get(batch)).toMatchObject({
      status: 200,
      body: { results: [{ error: { reason, message } }, { quote: { amountIn: "1000000000000000000" } }] },
    });
  }, PATIENCE);
  const ofCaller = `${toPath(STOPPED, "arbitrum")}&rpcUrl[${STOPPED}]=${encodeURIComponent(getUrl(STOPPED))}`;
  expect(await gateway.get(ofCaller)).toMatchObject(refused);

  const readiness = { reason: expect.stringContaining(`no new blocks on ${STOPPED}`) };
  const isDegraded = { status: 200, body: { status: "degraded", ...readiness } };
  await vi.waitFor(async () => expect(await gateway.get("/readyz")).toMatchObject(isDegraded), PATIENCE);
  const labels = { network: "mainnet", chain: STOPPED };
  expect((await scrapeMetrics(gateway.metricsUrl)).value("hop_gateway_chain_stalled", labels)).toBe(1);

  await mine(STOPPED);
  await vi.waitFor(async () => expect(await quote(STOPPED, "arbitrum")).toMatchObject({ status: 200 }), PATIENCE);
  expect((await scrapeMetrics(gateway.metricsUrl)).value("hop_gateway_chain_stalled", labels)).toBe(0);
});

test("an endpoint that stands at a block has no quote refused while another one goes on", async () => {
  const standing = closeAfterTest(await startRpcProxy(getUrl("optimism")));
  const endpoints = { RPC_URL_OPTIMISM: `${standing.url},${getUrl("optimism")}` };
  const other = await startGatewayForTest(getEnvironment(endpoints));
  const ask = () => other.get(toPath("optimism", "arbitrum"));
  await vi.waitFor(async () => expect(await ask()).toMatchObject({ status: 200 }), PATIENCE);
  // Its head is known to be old only some seconds after it is: heads are read every ten seconds.
  for (const end = performance.now() + LIMIT_MS / 2; performance.now() < end; await sleep(100)) await ask();
  const head = (await getLocalChain(chains, "optimism").rpc("eth_blockNumber")) as string;
  standing.behaviour.standsAt = Number(head);
  const answers: unknown[] = [];
  const isKnown = async () => {
    answers.push(await ask());
    const { body } = await other.get("/readyz");
    expect(JSON.stringify(body)).toMatch(/"endpoint":"optimism\[1\]#[0-9a-f]{6}","state":"lagging"/);
  };
  await vi.waitFor(isKnown, { timeout: PATIENCE.timeout, interval: 50 });
  for (const end = performance.now() + LIMIT_MS / 2; performance.now() < end; await sleep(50))
    answers.push(await ask());
  expect(answers.filter((answer) => (answer as { status: number }).status !== 200)).toEqual([]);
});
