import type { Network } from "./networks.js";

/**
 * Decimals by token symbol. The SDK's own table stands behind its root import only, which is too heavy for a start;
 * a test holds this one against it.
 */
const TOKEN_DECIMALS: Readonly<Record<string, number>> = {
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
const TOKEN_ALIASES: Readonly<Record<string, string>> = { WETH: "ETH", WMATIC: "MATIC", XDAI: "DAI", WXDAI: "DAI" };

export interface Token {
  /** The symbol under which the address book has the token. */
  readonly symbol: string;
  /**
   * The symbol as asked for, in the SDK's letter case. The SDK prices some aliases unlike the token itself: DAI that
   * leaves gnosis as `XDAI` has its own fee, and `WETH` from ethereum pays no relayer.
   */
  readonly requestedSymbol: string;
  readonly decimals: number;
}

/** Tokens by lower-case symbol or alias, made once for each network. */
const tokensByNetwork = new WeakMap<Network, ReadonlyMap<string, Token>>();

/** The token that a symbol or alias names on this network, in any letter case, or undefined. */
export function findToken(network: Network, name: string): Token | undefined {
  let tokens = tokensByNetwork.get(network);
  if (tokens === undefined) {
    tokens = indexTokensByName(network);
    tokensByNetwork.set(network, tokens);
  }
  return tokens.get(name) ?? tokens.get(name.toLowerCase());
}

function indexTokensByName({ contracts }: Network): ReadonlyMap<string, Token> {
  const tokens = new Map<string, Token>();
  for (const [alias, symbol] of Object.entries(TOKEN_ALIASES)) {
    if (contracts.has(symbol)) tokens.set(alias.toLowerCase(), createToken(symbol, alias));
  }
  for (const symbol of contracts.keys()) tokens.set(symbol.toLowerCase(), createToken(symbol, symbol));
  // As most callers write them: these need no other case.
  for (const token of [...tokens.values()]) tokens.set(token.requestedSymbol, token);
  return tokens;
}

/** Returns whether a token travels by CCTP instead of Hop's own bridge. */
export function isCctpSymbol(symbol: string): boolean {
  return symbol === "USDC" || symbol === "USDC.e";
}

/** Decimals of a token of the address book. */
export function getTokenDecimals(symbol: string): number {
  const found = TOKEN_DECIMALS[symbol];
  if (found === undefined) throw new Error(`no decimals for token ${symbol}`);
  return found;
}

function createToken(symbol: string, requestedSymbol: string): Token {
  return { symbol, requestedSymbol, decimals: getTokenDecimals(symbol) };
}
