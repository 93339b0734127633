/** Routes over all kinds of reads: pools, fees to L1, L1 data fees, CCTP with attestations, Uniswap's tick windows. */
const ROUTES = [
  ["ETH", "arbitrum", "polygon", "1000000000000000000"],
  ["ETH", "polygon", "optimism", "1000000000000000000"],
  ["ETH", "ethereum", "base", "1000000000000000000"],
  ["ETH", "optimism", "ethereum", "1000000000000000000"],
  ["USDC", "arbitrum", "polygon", "1000000000"],
  ["USDC", "optimism", "base", "1000000000"],
  ["USDC.e", "polygon", "arbitrum", "1000000000"],
  ["USDC.e", "optimism", "polygon", "1000000000"],
  ["USDT", "polygon", "gnosis", "1000000000"],
  ["DAI", "gnosis", "arbitrum", "1000000000000000000"],
  ["HOP", "arbitrum", "nova", "1000000000000000000"],
] as const;

/** Paths of quotes that together cause every kind of read. */
export const QUOTE_PATHS = ROUTES.map(
  ([token, from, to, amount]) =>
    `/v1/quote?amount=${amount}&token=${token}&fromChain=${from}&toChain=${to}&slippage=0.5`,
);
