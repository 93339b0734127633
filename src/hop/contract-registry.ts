import type { Chain, Network } from "./networks.js";

/** The events by which a transfer leaves: over an L2 bridge, the L1 bridge, or CCTP. */
export type SenderKind = "l2" | "l1" | "cctp";

/** A contract from which transfers leave. */
export interface Sender {
  readonly kind: SenderKind;
  readonly token: string;
}

/** What of the address book matters for finding transfers. All addresses are lower case. */
export interface BridgeBook {
  /** The contracts of a chain from which transfers leave, by address. */
  senders(chain: Chain): ReadonlyMap<string, Sender>;
  /** The bridge on which a token's transfers arrive on a chain. */
  bridge(token: string, chain: Chain): string | undefined;
  /** The CCTP message transmitter of a chain. */
  messageTransmitter(chain: Chain): string | undefined;
}

export function createBridgeBook(network: Network): BridgeBook {
  const senders = new Map<string, Map<string, Sender>>();
  const bridges = new Map<string, string>();
  const transmitters = new Map<string, string>();
  for (const [token, byChain] of network.contracts) {
    for (const [slug, contracts] of byChain) {
      const bridge = lower(contracts.l1Bridge ?? contracts.l2Bridge);
      const cctp = lower(contracts.cctpL1Bridge ?? contracts.cctpL2Bridge);
      const transmitter = lower(contracts.cctpMessageTransmitter);
      const ofChain = senders.get(slug) ?? new Map<string, Sender>();
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
    senders: (chain) => senders.get(chain.slug) ?? new Map(),
    bridge: (token, chain) => bridges.get(`${token} ${chain.slug}`),
    messageTransmitter: (chain) => transmitters.get(chain.slug),
  };
}

function lower(address: string | number | undefined): string | undefined {
  return typeof address === "string" ? address.toLowerCase() : undefined;
}
