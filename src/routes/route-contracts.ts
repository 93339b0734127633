import type { Chain, Network } from "../hop/networks.js";
import { isCctpSymbol } from "../hop/tokens.js";

/** The contracts of a token on one chain: 0x-prefixed hex in lower case, empty where there is none. */
export interface RouteContracts {
  /** The zero address stands for the chain's own coin. */
  readonly tokenAddress: string;
  readonly hTokenAddress: string;
  /** Hop's bridge, or its CCTP bridge for a token that travels by CCTP. */
  readonly bridgeAddress: string;
  /** The AMM wrapper, which swaps and sends in one transaction. */
  readonly ammAddress: string;
}

const ZERO_ADDRESS = `0x${"0".repeat(40)}`;

/** Tokens by the symbol of the coin that they are, on a chain where that is the native token. */
const COIN_TOKENS: Readonly<Record<string, string>> = { ETH: "ETH", MATIC: "MATIC", XDAI: "DAI" };

/** Returns the contracts that the SDK's address book has for a token on a chain. */
export function getRouteContracts(network: Network, token: string, chain: Chain): RouteContracts {
  const contracts = network.contracts.get(token)?.get(chain.slug) ?? {};
  const hasOwnCoin = COIN_TOKENS[chain.nativeToken] === token;
  const bridge = isCctpSymbol(token)
    ? (contracts.cctpL1Bridge ?? contracts.cctpL2Bridge)
    : (contracts.l1Bridge ?? contracts.l2Bridge);
  return {
    // The address book lists the wrapped coin, which Hop wraps and unwraps itself.
    tokenAddress: hasOwnCoin
      ? ZERO_ADDRESS
      : toAddressOrEmpty(contracts.l1CanonicalToken ?? contracts.l2CanonicalToken),
    hTokenAddress: toAddressOrEmpty(contracts.l2HopBridgeToken),
    bridgeAddress: toAddressOrEmpty(bridge),
    ammAddress: toAddressOrEmpty(contracts.l2AmmWrapper),
  };
}

/** The address book has the zero address for a contract that does not exist. */
function toAddressOrEmpty(value: string | number | undefined): string {
  const address = String(value ?? "").toLowerCase();
  return address === ZERO_ADDRESS ? "" : address;
}
