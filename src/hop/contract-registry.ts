import type { Chain, Network } from "./networks.js";

/** How a transfer is sent: over an L2 bridge, over the L1 bridge, or by CCTP. */
export type TransferKind = "l2" | "l1" | "cctp";

/** A contract that sends transfers. */
export interface SendingContract {
  readonly kind: TransferKind;
  readonly token: string;
}

/** The contracts that send and receive transfers. All addresses are lower case. */
export interface ContractRegistry {
  /** Returns the contracts of a chain that send transfers, by address. */
  getSendingContracts(chain: Chain): ReadonlyMap<string, SendingContract>;
  /** Returns the bridge of a token on a chain. */
  findBridge(token: string, chain: Chain): string | undefined;
  /** Returns the CCTP MessageTransmitter of a chain. */
  findMessageTransmitter(chain: Chain): string | undefined;
}

export function createContractRegistry(network: Network): ContractRegistry {
  const sendersByChain = new Map<string, Map<string, SendingContract>>();
  const bridges = new Map<string, string>();
  const transmitters = new Map<string, string>();
  for (const [token, byChain] of network.contracts) {
    for (const [slug, contracts] of byChain) {
      const bridge = toLowerCaseAddress(contracts.l1Bridge ?? contracts.l2Bridge);
      const cctp = toLowerCaseAddress(contracts.cctpL1Bridge ?? contracts.cctpL2Bridge);
      const transmitter = toLowerCaseAddress(contracts.cctpMessageTransmitter);
      const senders = sendersByChain.get(slug) ?? new Map<string, SendingContract>();
      sendersByChain.set(slug, senders);
      if (bridge !== undefined) {
        senders.set(bridge, { kind: contracts.l1Bridge === undefined ? "l2" : "l1", token });
        bridges.set(`${token} ${slug}`, bridge);
      }
      // USDC and USDC.e share the CCTP bridge, which always transfers USDC.
      if (cctp !== undefined) senders.set(cctp, { kind: "cctp", token: "USDC" });
      if (transmitter !== undefined) transmitters.set(slug, transmitter);
    }
  }
  return {
    getSendingContracts: (chain) => sendersByChain.get(chain.slug) ?? new Map(),
    findBridge: (token, chain) => bridges.get(`${token} ${chain.slug}`),
    findMessageTransmitter: (chain) => transmitters.get(chain.slug),
  };
}

function toLowerCaseAddress(address: string | number | undefined): string | undefined {
  return typeof address === "string" ? address.toLowerCase() : undefined;
}
