// Parses responses like a strict client of the older server: every field of its specification (2.1 to 2.3) with the
// specified type. Uses none of this service's code.

type Fields = Readonly<Record<string, (value: unknown) => boolean>>;

const matches = (pattern: RegExp) => (value: unknown) => typeof value === "string" && pattern.test(value);
const amount = matches(/^(0|[1-9]\d{0,77})$/);
const number = (value: unknown): boolean => typeof value === "number" && Number.isFinite(value);
const integer = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
const boolean = (value: unknown): boolean => typeof value === "boolean";
const hash = matches(/^0x[0-9a-f]{64}$/i);
const hashOrNone = matches(/^(0x[0-9a-f]{64})?$/i);
const address = matches(/^0x[0-9a-f]{40}$/i);
const addressOrNone = matches(/^(0x[0-9a-f]{40})?$/i);
const slug = matches(/^[a-z]+$/);
const symbol = matches(/^[A-Za-z][A-Za-z.]*$/);

const quoteFields: Fields = {
  amountIn: amount,
  slippage: number,
  amountOutMin: amount,
  destinationAmountOutMin: amount,
  bonderFee: amount,
  // The documented name, and the name in the samples.
  estimatedReceived: amount,
  estimatedRecieved: amount,
  deadline: integer,
  destinationDeadline: integer,
};

const transferFields: Fields = {
  // A CCTP transfer has a decimal nonce, also at the older server.
  transferId: matches(/^(0x[0-9a-f]{64}|\d+)$/i),
  transactionHash: hash,
  sourceChainId: integer,
  sourceChainSlug: slug,
  destinationChainId: integer,
  destinationChainSlug: slug,
  accountAddress: address,
  amount,
  amountFormatted: number,
  amountUsd: number,
  amountOutMin: amount,
  deadline: integer,
  recipientAddress: address,
  bonderFee: amount,
  bonderFeeFormatted: number,
  bonderFeeUsd: number,
  bonded: boolean,
  bondTransactionHash: hashOrNone,
  bonderAddress: addressOrNone,
  token: symbol,
  timestamp: integer,
};

const routeFields: Fields = {
  token: symbol,
  sourceChainSlug: slug,
  sourceChainId: integer,
  destinationChainSlug: slug,
  destinationChainId: integer,
};

/** Fields that the older server does not have, in order, after its own; clients ignore unknown fields. */
const ADDED: Readonly<Record<string, readonly string[]>> = { transfer: ["state", "otherTransferIds"] };

/** Throws if the text is not a quote. */
export const parseLegacyQuote = (text: string): Record<string, unknown> => read("quote", JSON.parse(text), quoteFields);

/** Throws if the text is not a transfer status. */
export const parseLegacyTransfer = (text: string): Record<string, unknown> =>
  read("transfer", JSON.parse(text), transferFields);

/** Throws if the text is not a list of routes. */
export function parseLegacyRoutes(text: string): Record<string, unknown>[] {
  const routes: unknown = JSON.parse(text);
  if (!Array.isArray(routes)) throw new Error("the routes are no array");
  return routes.map((route) => read("route", route, routeFields));
}

function read(kind: string, value: unknown, fields: Fields): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error(`the ${kind} is no object`);
  const names = [...Object.keys(fields), ...(ADDED[kind] ?? [])];
  if (Object.keys(value).join() !== names.join()) throw new Error(`the ${kind} has ${Object.keys(value)}`);
  const record = value as Record<string, unknown>;
  for (const [name, isValid] of Object.entries(fields)) {
    if (!isValid(record[name])) throw new Error(`${name} of the ${kind} is ${JSON.stringify(record[name])}`);
  }
  return record;
}
