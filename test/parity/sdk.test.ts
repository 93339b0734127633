import { HopBridge } from "@hop-protocol/sdk";
import { type BigNumber, providers } from "ethers";
import { afterAll, beforeAll, describe, expect, inject, test, vi } from "vitest";
import { getTokenDecimals } from "../../src/hop/tokens.js";
import { isFullEffort } from "../support/effort.js";
import { startGateway, type TestGateway } from "../support/service/in-process-gateway.js";

// The reference is the SDK used as documented: with ethers' providers and its own HTTP requests and caches. Only the
// addresses of its built-in hosts are replaced by those of the local network.

const network = inject("network");
/** Slippage by index in the list of amounts. */
const SLIPPAGES = ["0.5", "0", "0.1", "3", "50", "99.99"];

interface Row {
  readonly token: string;
  readonly sourceChainSlug: string;
  readonly destinationChainSlug: string;
}

let gateway: TestGateway;
const realFetch = globalThis.fetch;

beforeAll(async () => {
  gateway = await startGateway();
  // One clock for both sides: deadlines are part of the quotes and of the calldata that determines the L1 fee.
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  vi.spyOn(console, "warn").mockImplementation(() => {});
  vi.stubGlobal("fetch", (input: string, init?: RequestInit) =>
    realFetch(
      input
        .replace("https://assets.hop.exchange", network.assetsUrl)
        .replace("https://iris-api.circle.com", network.attestationUrl),
      init,
    ),
  );
});

afterAll(async () => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  vi.useRealTimers();
  await gateway.stop();
});

const chainProviders = Object.fromEntries(
  Object.entries(network.chains).map(([slug, { url, chainId }]) => [
    slug,
    new providers.StaticJsonRpcProvider(url, { chainId, name: slug }),
  ]),
);

async function quoteWithSdk(
  token: string,
  from: string,
  to: string,
  amount: string,
  slippage: string,
): Promise<unknown> {
  const bridge = new HopBridge({ network: "mainnet", token, chainProviders, baseConfigUrl: network.assetsUrl });
  const data = await bridge.getSendData(amount, from, to);
  const minimums = bridge.getSendDataAmountOutMins(data, Number(slippage));
  const text = (value: BigNumber | null): string | undefined => value?.toString();
  return {
    amountIn: data.amountIn.toString(),
    slippage: Number(slippage),
    amountOutMin: text(minimums.amountOutMin),
    destinationAmountOutMin: text(minimums.destinationAmountOutMin) ?? text(minimums.amountOutMin),
    bonderFee: text(data.totalFee),
    estimatedReceived: text(data.estimatedReceived),
    estimatedRecieved: text(data.estimatedReceived),
    deadline: minimums.deadline,
    destinationDeadline: minimums.destinationDeadline ?? minimums.deadline,
    details: {
      amountOut: text(data.amountOut),
      requiredLiquidity: text(data.requiredLiquidity),
      bonderFeeRelative: text(data.bonderFeeRelative),
      adjustedBonderFee: text(data.adjustedBonderFee),
      destinationTxFee: text(data.destinationTxFee),
      adjustedDestinationTxFee: text(data.adjustedDestinationTxFee),
      totalFee: text(data.totalFee),
      feeBps: Number(data.feeBps),
      rate: data.rate,
      ...(Number.isFinite(data.priceImpact) && { priceImpact: data.priceImpact }),
      lpFeeBps: Number(data.lpFeeBps),
      lpFees: text(data.lpFees),
    },
  };
}

/** Returns amounts from one unit to more than any pool holds, and one that overflows the pool's arithmetic. */
function getAmounts(token: string): readonly string[] {
  const one = 10n ** BigInt(getTokenDecimals(token));
  return [1n, one / 1000n, 25n * one, 40_000n * one, 10n ** 9n * one, 2n ** 250n].map(String);
}

async function compare(row: Row, amount: string, slippage: string): Promise<"quoted" | "rejected"> {
  const { token, sourceChainSlug: from, destinationChainSlug: to } = row;
  const query = `amount=${amount}&token=${token}&fromChain=${from}&toChain=${to}&slippage=${slippage}&view=FULL`;
  const [actual, expected] = await Promise.allSettled([
    gateway.get(`/v1/quote?${query}`),
    quoteWithSdk(token, from, to, amount, slippage),
  ]);
  if (actual.status === "rejected") throw actual.reason;
  if (expected.status === "rejected") {
    // The SDK only fails because of the amount here.
    expect({ query, ...actual.value }).toMatchObject({
      query,
      status: 400,
      body: { reason: "INVALID_PARAMETER", field: "amount" },
    });
    return "rejected";
  }
  expect({ query, status: actual.value.status, body: actual.value.body }).toMatchObject({
    query,
    status: 200,
    body: expected.value,
  });
  return "quoted";
}

describe("quotes equal those of a plain SDK on the same chains", () => {
  test("for every available route and amounts from one unit to more than the pool", async () => {
    const rows = (await gateway.get("/v1/available-routes")).body as Row[];
    expect(rows).toHaveLength(240);
    const jobs = rows.flatMap((row, rowIndex) =>
      getAmounts(row.token)
        .map((amount, index) => ({ row, amount, slippage: SLIPPAGES[index] ?? "1" }))
        // The short form quotes every route with two amounts, which alternate over the routes.
        .filter((_, index) => isFullEffort || (index + rowIndex) % 3 === 0),
    );
    const jobCount = jobs.length;
    const counts = { quoted: 0, rejected: 0 };
    const processJobs = async (): Promise<void> => {
      for (let job = jobs.pop(); job !== undefined; job = jobs.pop()) {
        counts[await compare(job.row, job.amount, job.slippage)] += 1;
      }
    };
    await Promise.all(Array.from({ length: 12 }, processJobs));
    expect(jobCount).toBe(240 * (isFullEffort ? 6 : 2));
    expect(counts.quoted + counts.rejected).toBe(jobCount);
    expect(counts.quoted).toBeGreaterThan((jobCount * 2) / 3);
    expect(counts.rejected).toBeGreaterThan(0);
  });

  test.each([
    ["WETH", "ethereum", "arbitrum"],
    ["WETH", "optimism", "arbitrum"],
    ["XDAI", "gnosis", "optimism"],
    ["WXDAI", "optimism", "gnosis"],
    ["XDAI", "optimism", "gnosis"],
    ["WMATIC", "polygon", "gnosis"],
  ])("for the alias %s from %s to %s", async (token, sourceChainSlug, destinationChainSlug) => {
    const row = { token, sourceChainSlug, destinationChainSlug };
    expect(await compare(row, (10n ** 18n).toString(), "0.5")).toBe("quoted");
  });
});
