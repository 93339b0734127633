import type { FeeSettings } from "../hop/fee-settings.js";
import type { Chain, Network, TokenContracts } from "../hop/networks.js";
import { isCctpSymbol } from "../hop/tokens.js";

/** A token with a source chain and a destination chain. */
export interface Route {
  readonly token: string;
  readonly source: Chain;
  readonly destination: Chain;
}

/**
 * Returns the routes on which a transfer can be sent, in the order of the SDK's address book. The SDK's
 * getAvailableRoutes() returns more: CCTP pairs that its getIsSupportedCctpRoute() rejects, and transfers from L1 over
 * deprecated bridges.
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

/** Returns whether the contracts of a route exist, whatever the settings are. */
export function hasRouteContracts(network: Network, { token, source, destination }: Route): boolean {
  const from = network.contracts.get(token)?.get(source.slug);
  const to = network.contracts.get(token)?.get(destination.slug);
  if (from === undefined || to === undefined || source === destination) return false;
  if (!isCctpSymbol(token)) return true;
  // USDC.e cannot leave L1: the pools that swap it for USDC are on L2s only.
  const isSwappedOnL1 = token === "USDC.e" && source.isL1;
  return !isSwappedOnL1 && getCctpBridge(from) !== undefined && getCctpBridge(to) !== undefined;
}

/** Returns whether the settings allow a route: a deprecated bridge accepts no transfers from L1, but still sends back. */
export function isRouteEnabled({ token, source }: Route, settings: FeeSettings): boolean {
  return !(source.isL1 && settings.bridgeDeprecated[token]);
}

function getCctpBridge(contracts: TokenContracts): string | number | undefined {
  return contracts.cctpL1Bridge ?? contracts.cctpL2Bridge;
}
