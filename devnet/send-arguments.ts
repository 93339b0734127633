import { parseArgs } from "node:util";
import { utils } from "ethers";
import { getNetwork } from "../src/hop/networks.js";
import { findToken, type Token } from "../src/hop/tokens.js";

export const USAGE = `usage: npm run devnet:send -- --token USDT --from polygon --to arbitrum --amount 25 [options]

Sends a transfer on the local network that "npm run demo" runs: asks the gateway for a quote, then sends what it quotes.
  --token      token symbol
  --from --to  chain slugs
  --amount     in whole tokens, such as 25 or 0.5
  --slippage   in percent (default 0.5)
  --recipient  address at the destination (default: the sender's)
  --help       prints this`;

/** An invalid argument, described in one line. */
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

const STRING_OPTION = { type: "string" } as const;
const STRING_OPTIONS = {
  token: STRING_OPTION,
  from: STRING_OPTION,
  to: STRING_OPTION,
  amount: STRING_OPTION,
  slippage: STRING_OPTION,
  recipient: STRING_OPTION,
};
const OPTIONS = { ...STRING_OPTIONS, help: { type: "boolean" } } as const;

/**
 * Parses the command line. Returns undefined for --help.
 * @throws UsageError for an invalid argument
 */
export function parseSendArguments(argv: readonly string[]): SendArguments | undefined {
  const { help, ...values } = parseOptions(argv);
  if (help === true) return undefined;
  const required = (name: "token" | "from" | "to" | "amount"): string => {
    const value = values[name];
    if (value === undefined || value === "") throw new UsageError(`--${name} is missing`);
    return value;
  };
  const token = findToken(getNetwork("mainnet"), required("token"));
  if (token === undefined) throw new UsageError(`no token is called ${values.token}`);
  const { slippage = "0.5", recipient } = values;
  if (recipient !== undefined && !utils.isAddress(recipient)) throw new UsageError(`${recipient} is no address`);
  const [from, to] = [parseChainSlug(required("from")), parseChainSlug(required("to"))];
  return { token, from, to, amount: parseTokenAmount(required("amount"), token.decimals), slippage, recipient };
}

function parseOptions(
  argv: readonly string[],
): Partial<Record<keyof typeof STRING_OPTIONS, string>> & { help?: boolean } {
  try {
    return parseArgs({ args: [...argv], options: OPTIONS }).values;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function parseChainSlug(slug: string): string {
  const { chains } = getNetwork("mainnet");
  if (!chains.has(slug)) throw new UsageError(`no chain is called ${slug}: there are ${[...chains.keys()].join(", ")}`);
  return slug;
}

function parseTokenAmount(amount: string, decimals: number): bigint {
  const parts = /^\d+(?:\.(\d+))?$/.exec(amount);
  if (parts === null || (parts[1] ?? "").length > decimals) {
    throw new UsageError(`${amount} is no amount with at most ${decimals} decimals`);
  }
  const raw = utils.parseUnits(amount, decimals).toBigInt();
  if (raw === 0n) throw new UsageError("the amount is 0");
  return raw;
}
