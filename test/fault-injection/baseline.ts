import { inject } from "vitest";
import { connectChains } from "../../devnet/chain/local-chains.js";
import { startGateway } from "../support/service/in-process-gateway.js";
import type { Upstream } from "./expected-outcomes.js";

// What is asked, and what is right.

export const source = "polygon";
export const destination = "arbitrum";
const transferName = "usdt-polygon-arbitrum";

const questions = ["quote", "CCTP quote", "other quote", "status by hash", "status by id", "routes"] as const;
export type Question = (typeof questions)[number];

/** Paths of the questions, and the right answers, as a gateway gives them that nothing is wrong around. */
export interface Truth {
  readonly paths: Readonly<Record<Question, string>>;
  readonly answers: Readonly<Record<Question, unknown>>;
}

export async function learnTruth(): Promise<Truth> {
  const transfer = inject("network").transfers.find(({ name }) => name === transferName);
  const quote = (from: string, to: string, token: string, amount: string): string =>
    `/v1/quote?amount=${amount}&token=${token}&fromChain=${from}&toChain=${to}&slippage=0.5`;
  const paths: Truth["paths"] = {
    quote: quote(source, destination, "ETH", "1000000000000000000"),
    "CCTP quote": quote(source, destination, "USDC", "1000000000"),
    "other quote": quote("optimism", "base", "ETH", "1000000000000000000"),
    "status by hash": `/v1/transfer-status?transferHash=${transfer?.transactionHash}`,
    "status by id": `/v1/transfer-status?transferId=${transfer?.transferId}`,
    routes: "/v1/available-routes",
  };
  // A node has no states of blocks before its start: those are too few for one that lags.
  const { chains } = inject("network");
  for (const { rpc } of connectChains(chains).values()) for (let mined = 0; mined < 3; mined++) await rpc("evm_mine");
  const gateway = await startGateway();
  const entries = questions.map(async (question) => {
    const { status, body } = await gateway.get(paths[question]);
    if (status !== 200) throw new Error(`no right answer to ${question}: ${JSON.stringify(body)}`);
    return [question, body] as const;
  });
  const answers = Object.fromEntries(await Promise.all(entries)) as Truth["answers"];
  await gateway.stop();
  return { paths, answers };
}

/** What a status does not wait for, as it is where it is not known: who delivered, which any load may delay. */
const unknown: Readonly<Record<string, unknown>> = { bondTransactionHash: "", bonderAddress: "" };
/** The same where there are no prices. */
const unpriced: Readonly<Record<string, unknown>> = { ...unknown, amountUsd: 0, bonderFeeUsd: 0 };
/** Without which there are none. */
const priceSources: ReadonlySet<Upstream> = new Set(["prices", "settings"]);
/** They go with the clock. */
const deadlines: ReadonlySet<string> = new Set(["deadline", "destinationDeadline"]);

export function isRight(body: unknown, right: unknown, unwell: Upstream): boolean {
  if (Array.isArray(right)) return JSON.stringify(body) === JSON.stringify(right);
  const answer = body as Readonly<Record<string, unknown>>;
  const isQuote = "slippage" in answer;
  const mayLack = priceSources.has(unwell) ? unpriced : unknown;
  return Object.entries(right as object).every(([name, value]) => {
    if (isQuote && deadlines.has(name)) return true;
    const isSame = JSON.stringify(answer[name]) === JSON.stringify(value);
    return isSame || (!isQuote && name in mayLack && answer[name] === mayLack[name]);
  });
}
