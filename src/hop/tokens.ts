import type { Network } from "./networks.js";

/**
 * Decimals by token symbol. The SDK's own table stands behind its root import only, which is too heavy for a start;
 * a test holds this one against it.
 */
const decimals: Readonly<Record<string, number>> = {
  ETH: 18,
  "USDC.e": 6,
  USDC: 6,
  USDT: 6,
  DAI: 18,
  MATIC: 18,
  HOP: 18,
  rETH: 18,
  MAGIC: 18,
  SNX: 18,
  sUSD: 18,
  UNI: 18,
  WBTC: 8,
};

/** Names that the SDK takes for a token beside its symbol. */
const aliases: Readonly<Record<string, string>> = { WETH: "ETH", WMATIC: "MATIC", XDAI: "DAI", WXDAI: "DAI" };

export interface Token {
  /** The symbol under which the address book has the token. */
  readonly symbol: string;
  /**
   * The symbol as asked for, in the SDK's letter case. The SDK prices some aliases unlike the token itself: DAI that
   * leaves gnosis as `XDAI` has its own fee, and `WETH` from ethereum pays no relayer.
   */
  readonly name: string;
  readonly decimals: number;
}

/** The token that a symbol or alias names on this network, in any letter case, or undefined. */
export function findToken(network: Network, name: string): Token | undefined {
  const wanted = name.toLowerCase();
  for (const symbol of network.contracts.keys()) {
    if (symbol.toLowerCase() === wanted) return tokenOf(symbol, symbol);
  }
  for (const [alias, symbol] of Object.entries(aliases)) {
    if (alias.toLowerCase() === wanted && network.contracts.has(symbol)) return tokenOf(symbol, alias);
  }
  return undefined;
}

/** Decimals of a token of the address book. */
export function decimalsOf(symbol: string): number {
  const found = decimals[symbol];
  if (found === undefined) throw new Error(`no decimals for token ${symbol}`);
  return found;
}

function tokenOf(symbol: string, name: string): Token {
  return { symbol, name, decimals: decimalsOf(symbol) };
}
