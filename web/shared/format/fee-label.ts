/** The tokens that Circle's CCTP V1 carries. */
const CCTP_TOKENS: ReadonlySet<string> = new Set(["USDC", "USDC.e"]);

export function isCctpToken(token: string): boolean {
  return CCTP_TOKENS.has(token);
}

/** Returns whether a transfer went over CCTP: its id is a number. That of USDC.e may have gone over Hop's bridge before. */
export function isCctpTransfer({ transferId }: { readonly transferId: string }): boolean {
  return /^[0-9]+$/.test(transferId);
}

/** Names the fee of a route, which only a bonder's transfers pay to a bonder. @param from slug of the source chain */
export function getFeeLabel(isCctp: boolean, from: string): string {
  if (isCctp) return "CCTP relayer fee";
  return from === "ethereum" ? "Relayer fee" : "Bonder fee";
}
