import { parseArgs } from "node:util";
import { utils } from "ethers";
import { networkOf } from "../src/hop/networks.js";
import { findToken, type Token } from "../src/hop/tokens.js";

export const usage = `usage: npm run devnet:send -- --token USDT --from polygon --to arbitrum --amount 25 [options]

Sends a transfer on the local network that "npm run demo" runs: asks the gateway for a quote, then sends what it quotes.
  --token      token symbol
  --from --to  chain slugs
  --amount     in whole tokens, such as 25 or 0.5
  --slippage   in percent (default 0.5)
  --recipient  address at the destination (default: the sender's)
  --help       prints this`;

/** What the caller got wrong, in one line. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

export interface SendArguments {
  readonly token: Token;
  /** Chain slugs. */
  readonly from: string;
  readonly to: string;
  /** In the token's smallest unit. */
  readonly amount: bigint;
  /** In percent, as written. */
  readonly slippage: string;
  readonly recipient: string | undefined;
}

const text = { type: "string" } as const;
const texts = { token: text, from: text, to: text, amount: text, slippage: text, recipient: text };
const options = { ...texts, help: { type: "boolean" } } as const;

/**
 * Gives undefined where help was asked for.
 * @throws UsageError
 */
export function readSendArguments(argv: readonly string[]): SendArguments | undefined {
  const { help, ...values } = parse(argv);
  if (help === true) return undefined;
  const required = (name: "token" | "from" | "to" | "amount"): string => {
    const value = values[name];
    if (value === undefined || value === "") throw new UsageError(`--${name} is missing`);
    return value;
  };
  const token = findToken(networkOf("mainnet"), required("token"));
  if (token === undefined) throw new UsageError(`no token is called ${values.token}`);
  const { slippage = "0.5", recipient } = values;
  if (recipient !== undefined && !utils.isAddress(recipient)) throw new UsageError(`${recipient} is no address`);
  const [from, to] = [chain(required("from")), chain(required("to"))];
  return { token, from, to, amount: rawAmount(required("amount"), token.decimals), slippage, recipient };
}

function parse(argv: readonly string[]): Partial<Record<keyof typeof texts, string>> & { help?: boolean } {
  try {
    return parseArgs({ args: [...argv], options }).values;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function chain(slug: string): string {
  const { chains } = networkOf("mainnet");
  if (!chains.has(slug)) throw new UsageError(`no chain is called ${slug}: there are ${[...chains.keys()].join(", ")}`);
  return slug;
}

function rawAmount(amount: string, decimals: number): bigint {
  const parts = /^\d+(?:\.(\d+))?$/.exec(amount);
  if (parts === null || (parts[1] ?? "").length > decimals) {
    throw new UsageError(`${amount} is no amount with at most ${decimals} decimals`);
  }
  const raw = utils.parseUnits(amount, decimals).toBigInt();
  if (raw === 0n) throw new UsageError("the amount is 0");
  return raw;
}
