import type { FeeSettings } from "./fee-settings.js";
import type { Chain, Network, TokenContracts } from "./networks.js";
import { isCctpSymbol, type Token } from "./tokens.js";

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

const ZERO_ADDRESS = `0x${"0".repeat(40)}`;

/** Tokens by the symbol of the coin that they are, on a chain where that is the native token. */
const COIN_TOKENS: Readonly<Record<string, string>> = { ETH: "ETH", MATIC: "MATIC", XDAI: "DAI" };

/**
 * Returns the contracts that the SDK's address book has for a token on a chain: 0x-prefixed hex in lower case, empty where
 * there is none.
 */
export function getRouteContracts(network: Network, token: string, chain: Chain) {
  const contracts = network.contracts.get(token)?.get(chain.slug) ?? {};
  const hasOwnCoin = COIN_TOKENS[chain.nativeToken] === token;
  const bridge = isCctpSymbol(token) ? getCctpBridge(contracts) : (contracts.l1Bridge ?? contracts.l2Bridge);
  return {
    // The zero address stands for the chain's own coin: the address book lists the wrapped one, which Hop wraps itself.
    tokenAddress: hasOwnCoin
      ? ZERO_ADDRESS
      : toAddressOrEmpty(contracts.l1CanonicalToken ?? contracts.l2CanonicalToken),
    hTokenAddress: toAddressOrEmpty(contracts.l2HopBridgeToken),
    /** Hop's bridge, or its CCTP bridge for a token that travels by CCTP. */
    bridgeAddress: toAddressOrEmpty(bridge),
    /** The AMM wrapper, which swaps and sends in one transaction. */
    ammAddress: toAddressOrEmpty(contracts.l2AmmWrapper),
  };
}

/** The address book has the zero address for a contract that does not exist. */
function toAddressOrEmpty(value: string | number | undefined): string {
  const address = String(value ?? "").toLowerCase();
  return address === ZERO_ADDRESS ? "" : address;
}

/**
 * A value for each route. Routes are told apart by the objects that `findToken` and `findChain` return: a text key would have
 * to be built and hashed for every look-up.
 */
export class RouteMap<Value> {
  readonly #bySource = new Map<Token, Map<Chain, Map<Chain, Value>>>();

  get(token: Token, source: Chain, destination: Chain): Value | undefined {
    return this.#bySource.get(token)?.get(source)?.get(destination);
  }

  set(token: Token, source: Chain, destination: Chain, value: Value): void {
    const byChain = this.#bySource.get(token) ?? new Map<Chain, Map<Chain, Value>>();
    const byDestination = byChain.get(source) ?? new Map<Chain, Value>();
    byDestination.set(destination, value);
    byChain.set(source, byDestination);
    this.#bySource.set(token, byChain);
  }

  *values(): Iterable<Value> {
    for (const byChain of this.#bySource.values())
      for (const byDestination of byChain.values()) yield* byDestination.values();
  }
}
