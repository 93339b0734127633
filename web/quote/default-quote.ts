/** The route of the first visit: between two L2s, with a pool on each, so that its curve shows fee and price impact. */
export const DEFAULT_ROUTE = { token: "ETH", from: "optimism", to: "arbitrum" } as const;

export const DEFAULT_SLIPPAGE_PERCENT = "0.5";

/** Typical amounts in whole tokens. */
const TYPICAL_AMOUNTS: Readonly<Record<string, string>> = {
  ETH: "1",
  rETH: "1",
  USDC: "2000",
  "USDC.e": "2000",
  USDT: "2000",
  DAI: "2000",
  sUSD: "2000",
  MATIC: "1000",
  MAGIC: "1000",
  SNX: "500",
  HOP: "50000",
  WBTC: "0.05",
};

/** Returns a typical amount of a token in whole tokens: enough to pay the bonder fee and to move a pool slightly. */
export function getTypicalAmount(token: string): string {
  return Object.hasOwn(TYPICAL_AMOUNTS, token) ? (TYPICAL_AMOUNTS[token] ?? "1") : "1";
}
