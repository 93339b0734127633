import type { SeededTransfer } from "../../../devnet/seed/seeded-transfer.js";
import { listLies } from "./lies.js";
import type { TellLie } from "./lying-proxy.js";

// Queries whose answers are all wrong where the endpoint that tells `COMMON_LIE` is believed.

/** Lies about gas prices, receipts and logs at once. */
export const COMMON_LIE: TellLie = combineLies(
  ["a tenfold gas price", "a receipt from another sender", "logs with other values"].map((name) => {
    const lie = listLies(async () => undefined)[name];
    if (lie === undefined) throw new Error(`no lie is ${name}`);
    return lie.tell;
  }),
);

export const LIE_QUERIES = ["quote", "status by hash", "status by id"] as const;
type LieQuery = (typeof LIE_QUERIES)[number];

/** What an answer says, as far as it is the same every time, and where a status comes from. */
export interface LieAnswer {
  readonly said: Readonly<Record<string, unknown>>;
  readonly source: string | null;
}
export type LieAnswers = Readonly<Record<LieQuery, LieAnswer>>;

/** One second in 256 the deadline in a delivery has a zero byte more, which costs less gas: some millionths. */
const MAX_DIFFERENCE = 1e-5;
const STATUS_FIELDS = ["transferId", "accountAddress", "recipientAddress", "amount", "deadline", "bonded"];

/** Sends the queries to a service, each over a connection of its own. */
export async function askLieQueries(url: string, transfers: readonly SeededTransfer[]): Promise<LieAnswers> {
  const { transactionHash, transferId } = transfers.find(({ name }) => name === "usdt-polygon-arbitrum") ?? {};
  const paths: Readonly<Record<LieQuery, string>> = {
    quote: `/v1/quote?amount=${10n ** 18n}&token=ETH&fromChain=polygon&toChain=arbitrum&slippage=0.5`,
    "status by hash": `/v1/transfer-status?transferHash=${transactionHash}`,
    "status by id": `/v1/transfer-status?transferId=${transferId}`,
  };
  const asked = LIE_QUERIES.map(async (name): Promise<[LieQuery, LieAnswer]> => {
    const response = await fetch(`${url}${paths[name]}`, { headers: { connection: "close" } });
    const body = (await response.json()) as Record<string, unknown>;
    const fields = name === "quote" ? ["estimatedReceived"] : STATUS_FIELDS;
    const said = { status: response.status, ...Object.fromEntries(fields.map((field) => [field, body[field]])) };
    return [name, { said, source: response.headers.get("source") }];
  });
  return Object.fromEntries(await Promise.all(asked)) as Record<LieQuery, LieAnswer>;
}

/** Returns the queries with another answer than the true one. */
export function listUntrue(answers: LieAnswers, truth: LieAnswers): readonly LieQuery[] {
  const isTrue = (field: string, value: unknown, expected: unknown): boolean =>
    field === "estimatedReceived"
      ? Math.abs(Number(value) - Number(expected)) <= Number(expected) * MAX_DIFFERENCE
      : value === expected;
  return LIE_QUERIES.filter((name) =>
    Object.entries(truth[name].said).some(([field, value]) => !isTrue(field, answers[name].said[field], value)),
  );
}

function combineLies(tells: readonly TellLie[]): TellLie {
  return async (...call) => {
    for (const tell of tells) {
      const said = await tell(...call);
      if (said !== undefined) return said;
    }
    return undefined;
  };
}
