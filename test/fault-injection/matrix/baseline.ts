import { inject } from "vitest";
import { startGateway } from "../../support/service/in-process-gateway.js";
import type { Upstream } from "./expected-outcomes.js";

// The queries of every scenario, and their correct responses.

export const SOURCE_CHAIN = "polygon";
export const DESTINATION_CHAIN = "arbitrum";
const TRANSFER_NAME = "usdt-polygon-arbitrum";
/** Between the same chains, with a proof. */
const WITHDRAWABLE_NAME = "hop-polygon-arbitrum-withdrawable";
/** Between other chains, with an attestation. */
const REDEEMABLE_NAME = "usdc-optimism-ethereum";

/** Queries for one quote; a batch has all of them, in this order. */
export const QUOTE_QUERIES = ["quote", "CCTP quote", "other quote"] as const;
const QUERY_NAMES = [
  ...QUOTE_QUERIES,
  "batch of quotes",
  "status by hash",
  "status by id",
  "withdrawal",
  "CCTP withdrawal",
  "routes",
] as const;
export type QueryName = (typeof QUERY_NAMES)[number];

const ONE_ETH = "1000000000000000000";
const QUOTE_REQUESTS: Readonly<Record<(typeof QUOTE_QUERIES)[number], Readonly<Record<string, string>>>> = {
  quote: { amount: ONE_ETH, token: "ETH", fromChain: SOURCE_CHAIN, toChain: DESTINATION_CHAIN, slippage: "0.5" },
  "CCTP quote": {
    amount: "1000000000",
    token: "USDC",
    fromChain: SOURCE_CHAIN,
    toChain: DESTINATION_CHAIN,
    slippage: "0.5",
  },
  "other quote": { amount: ONE_ETH, token: "ETH", fromChain: "optimism", toChain: "base", slippage: "0.5" },
};

/** Paths of the queries, and the responses of a gateway whose upstreams all work. */
export interface Baseline {
  readonly paths: Readonly<Record<QueryName, string>>;
  readonly responses: Readonly<Record<QueryName, unknown>>;
}

export async function recordBaseline(): Promise<Baseline> {
  const findTransfer = (wanted: string) => inject("network").transfers.find(({ name }) => name === wanted);
  const transfer = findTransfer(TRANSFER_NAME);
  const quotePath = (query: (typeof QUOTE_QUERIES)[number]): string =>
    `/v1/quote?${new URLSearchParams(QUOTE_REQUESTS[query])}`;
  const batch = JSON.stringify({ requests: QUOTE_QUERIES.map((query) => QUOTE_REQUESTS[query]) });
  const paths: Baseline["paths"] = {
    quote: quotePath("quote"),
    "CCTP quote": quotePath("CCTP quote"),
    "other quote": quotePath("other quote"),
    // Over Connect: the parameters of /v1/quotes have one source chain for all.
    "batch of quotes": `/hop.bridge.v1.BridgeService/BatchGetQuotes?connect=v1&encoding=json&message=${encodeURIComponent(batch)}`,
    "status by hash": `/v1/transfer-status?transferHash=${transfer?.transactionHash}`,
    "status by id": `/v1/transfer-status?transferId=${transfer?.transferId}`,
    withdrawal: `/v1/withdrawal?transferHash=${findTransfer(WITHDRAWABLE_NAME)?.transactionHash}`,
    "CCTP withdrawal": `/v1/withdrawal?transferHash=${findTransfer(REDEEMABLE_NAME)?.transactionHash}`,
    routes: "/v1/available-routes",
  };
  const gateway = await startGateway();
  const entries = QUERY_NAMES.map(async (query) => {
    const { status, body } = await gateway.get(paths[query]);
    const text = JSON.stringify(body);
    if (status !== 200 || text.includes('"error"')) throw new Error(`no correct response to ${query}: ${text}`);
    return [query, body] as const;
  });
  const responses = Object.fromEntries(await Promise.all(entries)) as Baseline["responses"];
  await gateway.stop();
  return { paths, responses };
}

/** Fields of a status that are not waited for, with their values while unknown: a busy machine can delay the deliverer. */
const UNKNOWN_DELIVERY: Readonly<Record<string, unknown>> = { bondTransactionHash: "", bonderAddress: "" };
/** The same without prices. */
const UNKNOWN_PRICES: Readonly<Record<string, unknown>> = { ...UNKNOWN_DELIVERY, amountUsd: 0, bonderFeeUsd: 0 };
/** Upstreams without which there are no prices. */
const PRICE_UPSTREAMS: ReadonlySet<Upstream> = new Set(["prices", "settings"]);
/** Fields that follow the clock. */
const DEADLINE_FIELDS: ReadonlySet<string> = new Set(["deadline", "destinationDeadline"]);

export function isExpectedBody(body: unknown, expected: unknown, faulty: Upstream): boolean {
  if (Array.isArray(expected)) return JSON.stringify(body) === JSON.stringify(expected);
  const actual = body as Readonly<Record<string, unknown>>;
  const isQuote = "slippage" in actual;
  const unknownFields = PRICE_UPSTREAMS.has(faulty) ? UNKNOWN_PRICES : UNKNOWN_DELIVERY;
  return Object.entries(expected as object).every(([name, value]) => {
    if (isQuote && DEADLINE_FIELDS.has(name)) return true;
    const isSame = JSON.stringify(actual[name]) === JSON.stringify(value);
    return isSame || (!isQuote && name in unknownFields && actual[name] === unknownFields[name]);
  });
}
