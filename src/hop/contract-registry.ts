import type { Log } from "../chain/read/chain-reads.js";
import { decodeBurnMessageSender, getCctpDomain } from "./cctp.js";
import type { Chain, Network, TokenContracts } from "./networks.js";
import {
  decodeReceivedEvent,
  decodeSentEvent,
  type TransferReceivedEvent,
  type TransferSentEvent,
} from "./transfer-events.js";

/** How a transfer is sent: over an L2 bridge, over the L1 bridge, or by CCTP. */
export type TransferKind = "l2" | "l1" | "cctp";

/** A contract that sends transfers. */
export interface SendingContract {
  readonly kind: TransferKind;
  readonly token: string;
}

/** The contracts that send and receive transfers. All addresses are lower case. */
export class ContractRegistry {
  readonly #sendersByChain = new Map<string, Map<string, SendingContract>>();
  readonly #bridges = new Map<string, string>();
  readonly #transmitters = new Map<string, string>();
  /** Hop's CCTP bridges by domain. */
  readonly #burners = new Map<number, string>();

  constructor(network: Network) {
    for (const [token, byChain] of network.contracts)
      for (const [slug, contracts] of byChain) this.#add(token, slug, contracts);
    for (const chain of network.chains.values()) {
      const domain = getCctpDomain(chain);
      const [bridge] = [...this.getSendingContracts(chain)].find(([, { kind }]) => kind === "cctp") ?? [];
      if (domain !== undefined && bridge !== undefined) this.#burners.set(domain, bridge);
    }
  }

  /** Returns the contracts of a chain that send transfers, by address. */
  getSendingContracts(chain: Chain): ReadonlyMap<string, SendingContract> {
    return this.#sendersByChain.get(chain.slug) ?? new Map();
  }

  /** Returns the bridge of a token on a chain. */
  findBridge(token: string, chain: Chain): string | undefined {
    return this.#bridges.get(`${token} ${chain.slug}`);
  }

  /** Returns the CCTP MessageTransmitter of a chain. */
  findMessageTransmitter(chain: Chain): string | undefined {
    return this.#transmitters.get(chain.slug);
  }

  /** Decodes a log by which a contract of Hop sent a transfer; returns undefined for any other log. */
  decodeSend(chain: Chain, log: Log): (SendingContract & { readonly event: TransferSentEvent }) | undefined {
    const sender = this.getSendingContracts(chain).get(log.address);
    const event = sender && decodeSentEvent(log);
    return sender && event && { ...sender, event };
  }

  /** Decodes a log by which a transfer of Hop was delivered; returns undefined for any other log. */
  decodeDelivery(
    chain: Chain,
    log: Log,
  ): { readonly event: TransferReceivedEvent; readonly token: string } | undefined {
    const event = decodeReceivedEvent(log);
    if (event?.kind === "cctp") {
      // The transmitter serves every CCTP application: the burner of the USDC identifies Hop's messages.
      const burner = this.#burners.get(event.sourceDomain);
      const isFromHop = burner !== undefined && burner === decodeBurnMessageSender(log);
      return isFromHop && log.address === this.findMessageTransmitter(chain) ? { event, token: "USDC" } : undefined;
    }
    const bridge = this.getSendingContracts(chain).get(log.address);
    return event && bridge && bridge.kind !== "cctp" ? { event, token: bridge.token } : undefined;
  }

  #add(token: string, slug: string, contracts: TokenContracts): void {
    const bridge = toLowerCaseAddress(contracts.l1Bridge ?? contracts.l2Bridge);
    const cctp = toLowerCaseAddress(contracts.cctpL1Bridge ?? contracts.cctpL2Bridge);
    const transmitter = toLowerCaseAddress(contracts.cctpMessageTransmitter);
    const senders = this.#sendersByChain.get(slug) ?? new Map<string, SendingContract>();
    this.#sendersByChain.set(slug, senders);
    if (bridge !== undefined) {
      senders.set(bridge, { kind: contracts.l1Bridge === undefined ? "l2" : "l1", token });
      this.#bridges.set(`${token} ${slug}`, bridge);
    }
    // USDC and USDC.e share the CCTP bridge, which always transfers USDC.
    if (cctp !== undefined) senders.set(cctp, { kind: "cctp", token: "USDC" });
    if (transmitter !== undefined) this.#transmitters.set(slug, transmitter);
  }
}

function toLowerCaseAddress(address: string | number | undefined): string | undefined {
  return typeof address === "string" ? address.toLowerCase() : undefined;
}
