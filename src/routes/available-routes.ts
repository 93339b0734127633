import type { FeeSettings } from "../hop/fee-settings.js";
import type { Chain, Network, TokenContracts } from "../hop/networks.js";
import { isCctpSymbol } from "../hop/tokens.js";

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
export function findAvailableRoutes(network: Network, settings: FeeSettings): readonly Route[] {
  const routes: Route[] = [];
  for (const [token, byChain] of network.contracts) {
    for (const sourceSlug of byChain.keys()) {
      for (const destinationSlug of byChain.keys()) {
        const source = network.chains.get(sourceSlug);
        const destination = network.chains.get(destinationSlug);
        if (source === undefined || destination === undefined) continue;
        const route = { token, source, destination };
        if (hasRouteContracts(network, route) && isRouteEnabled(route, settings)) routes.push(route);
      }
    }
  }
  return routes;
}

/** Whether the contracts for a route are there, whatever the settings say. */
export function hasRouteContracts(network: Network, { token, source, destination }: Route): boolean {
  const from = network.contracts.get(token)?.get(source.slug);
  const to = network.contracts.get(token)?.get(destination.slug);
  if (from === undefined || to === undefined || source === destination) return false;
  if (!isCctpSymbol(token)) return true;
  // A USDC.e that leaves L1 would be USDC: the swap that makes one of the other is on the L2s only.
  const isSwappedOnL1 = token === "USDC.e" && source.isL1;
  return !isSwappedOnL1 && getCctpBridge(from) !== undefined && getCctpBridge(to) !== undefined;
}

/** Whether the settings let a route be used: a deprecated bridge takes nothing from L1 and still sends back. */
export function isRouteEnabled({ token, source }: Route, settings: FeeSettings): boolean {
  return !(source.isL1 && settings.bridgeDeprecated[token]);
}

function getCctpBridge(contracts: TokenContracts): string | number | undefined {
  return contracts.cctpL1Bridge ?? contracts.cctpL2Bridge;
}
