import type { Chain, Network } from "./networks.js";

/** The events by which a transfer leaves: over an L2 bridge, the L1 bridge, or CCTP. */
export type TransferKind = "l2" | "l1" | "cctp";

/** A contract from which transfers leave. */
export interface SendingContract {
  readonly kind: TransferKind;
  readonly token: string;
}

/** What of the address book matters for finding transfers. All addresses are lower case. */
export interface ContractRegistry {
  /** The contracts of a chain from which transfers leave, by address. */
  getSendingContracts(chain: Chain): ReadonlyMap<string, SendingContract>;
  /** The bridge on which a token's transfers arrive on a chain. */
  findBridge(token: string, chain: Chain): string | undefined;
  /** The CCTP message transmitter of a chain. */
  findMessageTransmitter(chain: Chain): string | undefined;
}

export function createContractRegistry(network: Network): ContractRegistry {
  const senders = new Map<string, Map<string, SendingContract>>();
  const bridges = new Map<string, string>();
  const transmitters = new Map<string, string>();
  for (const [token, byChain] of network.contracts) {
    for (const [slug, contracts] of byChain) {
      const bridge = toLowerCaseAddress(contracts.l1Bridge ?? contracts.l2Bridge);
      const cctp = toLowerCaseAddress(contracts.cctpL1Bridge ?? contracts.cctpL2Bridge);
      const transmitter = toLowerCaseAddress(contracts.cctpMessageTransmitter);
      const ofChain = senders.get(slug) ?? new Map<string, SendingContract>();
      senders.set(slug, ofChain);
      if (bridge !== undefined) {
        ofChain.set(bridge, { kind: contracts.l1Bridge === undefined ? "l2" : "l1", token });
        bridges.set(`${token} ${slug}`, bridge);
      }
      // USDC and USDC.e share the CCTP bridge, and what crosses it is USDC.
      if (cctp !== undefined) ofChain.set(cctp, { kind: "cctp", token: "USDC" });
      if (transmitter !== undefined) transmitters.set(slug, transmitter);
    }
  }
  return {
    getSendingContracts: (chain) => senders.get(chain.slug) ?? new Map(),
    findBridge: (token, chain) => bridges.get(`${token} ${chain.slug}`),
    findMessageTransmitter: (chain) => transmitters.get(chain.slug),
  };
}

function toLowerCaseAddress(address: string | number | undefined): string | undefined {
  return typeof address === "string" ? address.toLowerCase() : undefined;
}
