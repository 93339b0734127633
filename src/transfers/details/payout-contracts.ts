import type { Chain, Network } from "../../hop/networks.js";

/** The contracts that take part in a payout, in lower case; undefined where there is none. */
export interface PayoutContracts {
  readonly bridge: string | undefined;
  /** The token that users hold, in its wrapped form where it is the chain's coin; undefined on L1 for the coin itself. */
  readonly token: string | undefined;
  /** The same as `token` for a token without a pool. */
  readonly hToken: string | undefined;
  readonly ammWrapper: string | undefined;
  readonly pool: string | undefined;
  readonly messageTransmitter: string | undefined;
}

const ZERO_ADDRESS = `0x${"0".repeat(40)}`;

/** Returns the contracts of a token on the chain that pays it out. */
export function getPayoutContracts(network: Network, token: string, { slug }: Chain): PayoutContracts {
  const contracts = network.contracts.get(token)?.get(slug) ?? {};
  return {
    bridge: toAddress(contracts.l1Bridge ?? contracts.l2Bridge),
    token: toAddress(contracts.l1CanonicalToken ?? contracts.l2CanonicalToken),
    hToken: toAddress(contracts.l2HopBridgeToken),
    ammWrapper: toAddress(contracts.l2AmmWrapper),
    pool: toAddress(contracts.l2SaddleSwap),
    messageTransmitter: toAddress(contracts.cctpMessageTransmitter),
  };
}

/** The address book has the zero address for a contract that does not exist. */
function toAddress(value: string | number | undefined): string | undefined {
  const address = String(value ?? ZERO_ADDRESS).toLowerCase();
  return address === ZERO_ADDRESS ? undefined : address;
}
