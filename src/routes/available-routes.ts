import type { FeeSettings } from "../hop/fee-settings.js";
import type { Chain, Contracts, Network } from "../hop/networks.js";

/** A token with the chain that it leaves and the one where it arrives. */
export interface Route {
  readonly token: string;
  readonly source: Chain;
  readonly destination: Chain;
}

/**
 * The routes on which a transfer can really be sent, in the order of the SDK's address book. The SDK's own list has
 * more: CCTP pairs that its `getIsSupportedCctpRoute` refuses, and sends from L1 over bridges that are deprecated.
 */
export function availableRoutes(network: Network, settings: FeeSettings): readonly Route[] {
  const routes: Route[] = [];
  for (const [token, byChain] of network.contracts) {
    for (const [sourceSlug, from] of byChain) {
      for (const [destinationSlug, to] of byChain) {
        const source = network.chains.get(sourceSlug);
        const destination = network.chains.get(destinationSlug);
        if (source === undefined || destination === undefined || source === destination) continue;
        if (isCctp(token) && !(cctpBridge(from) && cctpBridge(to))) continue;
        // A USDC.e that leaves L1 would be USDC: the swap that makes one of the other is on the L2s only.
        if (token === "USDC.e" && source.isL1) continue;
        if (source.isL1 && settings.bridgeDeprecated[token]) continue;
        routes.push({ token, source, destination });
      }
    }
  }
  return routes;
}

function isCctp(token: string): boolean {
  return token === "USDC" || token === "USDC.e";
}

function cctpBridge(contracts: Contracts): string | number | undefined {
  return contracts.cctpL1Bridge ?? contracts.cctpL2Bridge;
}
