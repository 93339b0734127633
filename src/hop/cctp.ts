import type { Chain } from "./networks.js";

/** Circle's number for a chain in CCTP messages, by slug. The SDK has the same table behind its root import. */
const domains: Readonly<Record<string, number>> = { ethereum: 0, optimism: 2, arbitrum: 3, base: 6, polygon: 7 };

/** undefined for a chain without CCTP. */
export function cctpDomainOf(chain: Chain): number | undefined {
  return domains[chain.slug];
}
