import type { Network } from "./networks.js";

/**
 * Decimals by token symbol. The SDK's own table is only available through its root import, which is too slow for startup;
 * a test compares the two.
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

/** Names that the SDK accepts for a token in addition to its symbol. */
const TOKEN_ALIASES: Readonly<Record<string, string>> = { WETH: "ETH", WMATIC: "MATIC", XDAI: "DAI", WXDAI: "DAI" };

export interface Token {
  /** Symbol of the token in the SDK's address book. */
  readonly symbol: string;
  /**
   * The requested symbol or alias in the SDK's letter case. The SDK prices some aliases differently: DAI that leaves gnosis
   * as `XDAI` has another fee, and `WETH` from ethereum pays no relayer fee.
   */
  readonly requestedSymbol: string;
  readonly decimals: number;
}

/** Memoized tokens of each network by lower-case symbol or alias, and by requestedSymbol. */
const tokensByNetwork = new WeakMap<Network, ReadonlyMap<string, Token>>();

/** Returns the token with a symbol or alias, in any letter case; undefined if the network has none. */
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
  // The usual letter case, which spares most lookups a toLowerCase().
  for (const token of [...tokens.values()]) tokens.set(token.requestedSymbol, token);
  return tokens;
}

/** Returns whether a token travels by CCTP instead of Hop's own bridge. */
export function isCctpSymbol(symbol: string): boolean {
  return symbol === "USDC" || symbol === "USDC.e";
}

/** Returns the decimals of a token of the address book. @throws Error for any other symbol. */
export function getTokenDecimals(symbol: string): number {
  const decimals = TOKEN_DECIMALS[symbol];
  if (decimals === undefined) throw new Error(`no decimals for token ${symbol}`);
  return decimals;
}

function createToken(symbol: string, requestedSymbol: string): Token {
  return { symbol, requestedSymbol, decimals: getTokenDecimals(symbol) };
}
