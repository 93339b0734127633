import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { isFullEffort } from "../support/effort.js";
import { startGatewayForTest, type TestGateway, withGateway } from "../support/service/in-process-gateway.js";
import { listLies } from "./lies/lies.js";
import { type LyingNetwork, startLyingNetwork } from "./lies/lying-network.js";

// The first of three endpoints of every chain lies, and the third is honest, but a block behind. With a quorum of two no quote
// is refused or wrong meanwhile, and only the one that lies is named.

const PATHS = [
  ["ETH", "arbitrum", "1000000000000000000"],
  ["ETH", "optimism", "1000000000000000000"],
  ["USDC.e", "arbitrum", "1000000000"],
].map(
  ([token, to, amount]) => `/v1/quote?amount=${amount}&token=${token}&fromChain=polygon&toChain=${to}&slippage=0.5`,
);
const SELECTED = [
  ...["a tenfold gas price", "a tenth of the gas price", "a threefold gas estimate", "another balance of the pool"],
  ...["another fee for data on L1", "chain state of an old block", "a head that is too high", "a head that is too low"],
];
/** Deliveries carry a deadline: a zero byte more costs less gas. */
const MAX_DIFFERENCE = 1e-5;
let network: LyingNetwork;
let truth: readonly number[];

beforeAll(async () => {
  network = await startLyingNetwork();
  truth = (await withGateway(network.environment, ask)).map(({ received }) => received);
  network.holdBackThird();
});
afterAll(() => network.stop());

/** Asks for the quotes, one after the other. */
async function ask(gateway: TestGateway) {
  const answers: { readonly status: number; readonly received: number; readonly body: unknown }[] = [];
  for (const path of PATHS) {
    const { status, body } = await gateway.get(path);
    answers.push({ status, received: Number((body as { estimatedReceived?: string }).estimatedReceived), body });
  }
  return answers;
}

const isTrue = (received: number, index: number): boolean =>
  Math.abs(received - (truth[index] ?? 0)) <= MAX_DIFFERENCE * (truth[index] ?? 0);

const lies = Object.entries(listLies(async () => undefined)).filter(([, { isOnlyForStatuses }]) => !isOnlyForStatuses);

test.each(lies.filter(([name]) => isFullEffort || SELECTED.includes(name)))(
  "an endpoint that tells %s is named, and no quote is refused",
  { timeout: 300_000 },
  async (_, { tell, namedFor }) => {
    network.setLie(tell);
    onTestFinished(() => network.setLie(undefined));
    const settings = { RPC_QUORUM: "2", REQUEST_TIMEOUT_MS: "60000" };
    const gateway = await startGatewayForTest({ ...network.environment, ...settings });
    const wrong: unknown[] = [];
    const askUntilNamed = async () => {
      const answers = await ask(gateway);
      wrong.push(...answers.filter(({ received }, index) => !isTrue(received, index)));
      const { body } = await gateway.get("/readyz");
      const { chains } = body as { chains: { endpoints: { state: string; endpoint: string }[] }[] };
      const state = namedFor === "lagging" ? "lagging" : "outvoted";
      const named = chains.flatMap(({ endpoints }) => endpoints.filter((endpoint) => endpoint.state === state));
      expect(named).not.toEqual([]);
      for (const { endpoint } of named) expect(endpoint).toMatch(/^[a-z]+\[1\]#/);
    };
    await vi.waitFor(askUntilNamed, { timeout: 120_000, interval: 100 });
    expect(wrong).toEqual([]);
  },
);
