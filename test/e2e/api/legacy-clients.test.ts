import { beforeAll, describe, expect, inject, test } from "vitest";
import { parseLegacyQuote, parseLegacyRoutes, parseLegacyTransfer } from "../../support/reference/legacy-client.js";
import { useGateway } from "../../support/service/in-process-gateway.js";

// Clients of the older server change the base URL and nothing else.

const { transfers } = inject("network");
const sent = transfers.filter(({ expectedState }) => expectedState !== "NOT_FOUND");
const ETHEREUM = "ethereum";
const gateway = useGateway();
let routes: Record<string, string>[];

beforeAll(async () => {
  routes = parseLegacyRoutes(await ask("/v1/available-routes?network=mainnet")) as Record<string, string>[];
});

async function ask(path: string): Promise<string> {
  const response = await fetch(`${gateway.url}${path}`);
  const text = await response.text();
  if (!response.ok || response.headers.get("content-type") !== "application/json; charset=utf-8") {
    throw new Error(`${path}: ${response.status} ${text}`);
  }
  return text;
}

describe("quotes", () => {
  test("of every token, from ethereum, to ethereum and between other chains", async () => {
    const kindOf = ({ token, sourceChainSlug, destinationChainSlug }: Record<string, string>): string =>
      [token, sourceChainSlug === ETHEREUM, destinationChainSlug === ETHEREUM].join();
    const kinds = new Map(routes.map((route) => [kindOf(route), route]));
    expect(kinds.size).toBeGreaterThan(25);
    for (const { token, sourceChainSlug, destinationChainSlug } of kinds.values()) {
      const amount = "50000000000000000000";
      const query = `amount=${amount}&token=${token}&fromChain=${sourceChainSlug}&toChain=${destinationChainSlug}&slippage=0.5`;
      const before = Math.floor(Date.now() / 1_000);
      const quote = parseLegacyQuote(await ask(`/v1/quote?${query}`));
      expect(quote, query).toMatchObject({ amountIn: amount, slippage: 0.5 });
      expect(quote.estimatedRecieved).toBe(quote.estimatedReceived);
      expect(Number(quote.deadline) - before - 7 * 24 * 3_600, query).toBeGreaterThanOrEqual(0);
      if (destinationChainSlug === ETHEREUM) {
        expect(quote, query).toMatchObject({ destinationAmountOutMin: "0", destinationDeadline: 0 });
      } else expect(quote.destinationDeadline, query).toBe(quote.deadline);
    }
  });

  test.each([
    ["of the smallest amount, which the fee consumes", "amount=1&slippage=0.5", { estimatedRecieved: "0" }],
    ["without slippage", "amount=1000000000000000000&slippage=0", { slippage: 0 }],
    ["with a large slippage", "amount=1000000000000000000&slippage=99.99", { slippage: 99.99 }],
    ["of more than a double holds exactly", `amount=${2n ** 100n}&slippage=1`, { amountIn: String(2n ** 100n) }],
    [
      "with the refresh parameter",
      "amount=1000000000000000000&slippage=0.5&network=mainnet&refresh=true",
      { slippage: 0.5 },
    ],
  ])("%s", async (_, query, expected) => {
    const route = "token=ETH&fromChain=optimism&toChain=arbitrum";
    expect(parseLegacyQuote(await ask(`/v1/quote?${route}&${query}`))).toMatchObject(expected);
  });
});

describe("transfers", () => {
  test("cover every state", () => {
    expect(new Set(sent.map(({ expectedState }) => expectedState))).toEqual(
      new Set(["PENDING", "BONDED", "UNBONDABLE"]),
    );
  });

  test.each(sent)("$name", async ({ transferId, transactionHash, token, expectedState }) => {
    for (const query of [
      `transferId=${transferId}&transferHash=${transactionHash}`,
      `transferHash=${transactionHash}`,
      `transactionHash=${transactionHash}`,
      `transferId=${transferId}&network=mainnet`,
    ]) {
      const transfer = parseLegacyTransfer(await ask(`/v1/transfer-status?${query}`));
      // A hash alone selects the first of its transfers.
      if (query.includes("transferId"))
        expect(transfer).toMatchObject({ transferId, bonded: expectedState === "BONDED" });
      expect(transfer, query).toMatchObject({ transactionHash, token });
    }
  });
});

test("routes", () => {
  expect(routes.length).toBeGreaterThan(200);
});

describe("the strict legacy client", () => {
  const quote = {
    amountIn: "1",
    slippage: 0.5,
    amountOutMin: "0",
    destinationAmountOutMin: "0",
    bonderFee: "1",
    estimatedReceived: "0",
    estimatedRecieved: "0",
    deadline: 1,
    destinationDeadline: 0,
  };
  const { estimatedRecieved, ...unread } = quote;

  test("accepts a correct quote", () => {
    expect(parseLegacyQuote(JSON.stringify(quote))).toEqual({ ...unread, estimatedRecieved });
  });

  test.each([
    ["a field that is missing", unread],
    ["a field that is new", { ...quote, priceImpact: 1 }],
    ["an amount that is a number", { ...quote, amountIn: 1 }],
    ["an amount with an exponent", { ...quote, bonderFee: "1e18" }],
    ["slippage as a string", { ...quote, slippage: "0.5" }],
    ["a time as a string", { ...quote, deadline: "1" }],
    ["null", { ...quote, destinationAmountOutMin: null }],
  ])("%s", (_, wrong) => {
    expect(() => parseLegacyQuote(JSON.stringify(wrong))).toThrow();
  });
});
