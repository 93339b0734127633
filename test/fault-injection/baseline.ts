import { inject } from "vitest";
import { connectChains } from "../../devnet/chain/local-chains.js";
import { startGateway } from "../support/service/in-process-gateway.js";
import type { Upstream } from "./expected-outcomes.js";

// What is asked, and what is right.

export const SOURCE_CHAIN = "polygon";
export const DESTINATION_CHAIN = "arbitrum";
const TRANSFER_NAME = "usdt-polygon-arbitrum";

const QUERY_NAMES = ["quote", "CCTP quote", "other quote", "status by hash", "status by id", "routes"] as const;
export type QueryName = (typeof QUERY_NAMES)[number];

/** Paths of the questions, and the right answers, as a gateway gives them that nothing is wrong around. */
export interface Baseline {
  readonly paths: Readonly<Record<QueryName, string>>;
  readonly answers: Readonly<Record<QueryName, unknown>>;
}

export async function recordBaseline(): Promise<Baseline> {
  const transfer = inject("network").transfers.find(({ name }) => name === TRANSFER_NAME);
  const quote = (from: string, to: string, token: string, amount: string): string =>
    `/v1/quote?amount=${amount}&token=${token}&fromChain=${from}&toChain=${to}&slippage=0.5`;
  const paths: Baseline["paths"] = {
    quote: quote(SOURCE_CHAIN, DESTINATION_CHAIN, "ETH", "1000000000000000000"),
    "CCTP quote": quote(SOURCE_CHAIN, DESTINATION_CHAIN, "USDC", "1000000000"),
    "other quote": quote("optimism", "base", "ETH", "1000000000000000000"),
    "status by hash": `/v1/transfer-status?transferHash=${transfer?.transactionHash}`,
    "status by id": `/v1/transfer-status?transferId=${transfer?.transferId}`,
    routes: "/v1/available-routes",
  };
  // A node has no states of blocks before its start: those are too few for one that lags.
  const { chains } = inject("network");
  for (const { rpc } of connectChains(chains).values()) for (let mined = 0; mined < 3; mined++) await rpc("evm_mine");
  const gateway = await startGateway();
  const entries = QUERY_NAMES.map(async (question) => {
    const { status, body } = await gateway.get(paths[question]);
    if (status !== 200) throw new Error(`no right answer to ${question}: ${JSON.stringify(body)}`);
    return [question, body] as const;
  });
  const answers = Object.fromEntries(await Promise.all(entries)) as Baseline["answers"];
  await gateway.stop();
  return { paths, answers };
}

/** What a status does not wait for, as it is where it is not known: who delivered, which any load may delay. */
const UNKNOWN_DELIVERY: Readonly<Record<string, unknown>> = { bondTransactionHash: "", bonderAddress: "" };
/** The same where there are no prices. */
const UNKNOWN_PRICES: Readonly<Record<string, unknown>> = { ...UNKNOWN_DELIVERY, amountUsd: 0, bonderFeeUsd: 0 };
/** Without which there are none. */
const PRICE_UPSTREAMS: ReadonlySet<Upstream> = new Set(["prices", "settings"]);
/** They go with the clock. */
const DEADLINE_FIELDS: ReadonlySet<string> = new Set(["deadline", "destinationDeadline"]);

export function isExpectedBody(body: unknown, right: unknown, unwell: Upstream): boolean {
  if (Array.isArray(right)) return JSON.stringify(body) === JSON.stringify(right);
  const answer = body as Readonly<Record<string, unknown>>;
  const isQuote = "slippage" in answer;
  const mayLack = PRICE_UPSTREAMS.has(unwell) ? UNKNOWN_PRICES : UNKNOWN_DELIVERY;
  return Object.entries(right as object).every(([name, value]) => {
    if (isQuote && DEADLINE_FIELDS.has(name)) return true;
    const isSame = JSON.stringify(answer[name]) === JSON.stringify(value);
    return isSame || (!isQuote && name in mayLack && answer[name] === mayLack[name]);
  });
}
