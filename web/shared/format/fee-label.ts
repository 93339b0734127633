/** The tokens that Circle's CCTP V1 carries. */
const CCTP_TOKENS: ReadonlySet<string> = new Set(["USDC", "USDC.e"]);

export function isCctpToken(token: string): boolean {
  return CCTP_TOKENS.has(token);
}

/** Names the fee of a route, which only a bonder's transfers pay to a bonder. @param from slug of the source chain */
export function getFeeLabel(token: string, from: string): string {
  if (isCctpToken(token)) return "CCTP relayer fee";
  return from === "ethereum" ? "Relayer fee" : "Bonder fee";
}
