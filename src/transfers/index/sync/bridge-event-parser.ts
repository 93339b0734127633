import type { Log, LogFilter } from "../../../chain/read/chain-reads.js";
import { getCctpDomain } from "../../../hop/cctp/cctp.js";
import { decodeBurnMessageSender } from "../../../hop/cctp/cctp-burn-message.js";
import { type ContractRegistry, createContractRegistry } from "../../../hop/contract-registry.js";
import type { Chain, Network } from "../../../hop/networks.js";
import {
  decodeReceivedEvent,
  decodeSentEvent,
  EVENT_TOPICS,
  type TransferReceivedEvent,
  type TransferSentEvent,
} from "../../../hop/transfer-events.js";
import { computeL1TransferKey, encodeCctpKey } from "../store/correlation-key.js";
import { hexToBytes } from "../store/hex.js";
import type { DeliveryRow, SendRow } from "../store/schema.js";

/** An event of Hop's contracts as far as its log alone describes it. */
export type BridgeEvent = { readonly transactionHash: string; readonly blockHash: string } & (
  | { readonly send: Omit<SendRow, "account" | "timestamp"> }
  | {
      readonly delivery: Omit<DeliveryRow, "bonder" | "timestamp">;
      readonly kind: TransferReceivedEvent["kind"];
      readonly isBond: boolean;
    }
);

/** Parses the logs of one chain. */
export interface BridgeEventParser {
  /** Matches every event that is indexed, and also the CCTP deliveries of other applications. */
  readonly filter: LogFilter;
  /** Returns undefined for an event that is not indexed. */
  parse(log: Log): BridgeEvent | undefined;
}

export function createBridgeEventParser(network: Network, chain: Chain): BridgeEventParser {
  const contracts = createContractRegistry(network);
  const senders = contracts.getSendingContracts(chain);
  const transmitter = contracts.findMessageTransmitter(chain);
  const burners = mapCctpBridgesByDomain(network, contracts);
  const domain = getCctpDomain(chain);

  function parseSend(log: Log): BridgeEvent | undefined {
    const sender = senders.get(log.address);
    const event = sender && decodeSentEvent(log);
    if (sender === undefined || event === undefined || !Number.isSafeInteger(event.destinationChainId))
      return undefined;
    const key = getSendCorrelationKey(sender.token, event, domain);
    if (key === undefined) return undefined;
    const send = {
      ...toPositionColumns(chain, log),
      kind: sender.kind,
      token: sender.token,
      arrival_key: key,
      destination_chain_id: event.destinationChainId,
      recipient: hexToBytes(event.recipient),
      amount: String(event.amount),
      amount_out_min: String(event.amountOutMin),
      deadline: String(event.deadline),
      bonder_fee: String(event.bonderFee),
      relayer: event.relayer === undefined ? null : hexToBytes(event.relayer),
    };
    return { send, transactionHash: log.transactionHash, blockHash: log.blockHash };
  }

  function parseDelivery(log: Log): BridgeEvent | undefined {
    const { address } = log;
    const event = decodeReceivedEvent(log);
    if (event === undefined) return undefined;
    let key: Buffer | undefined;
    let token = senders.get(address)?.token;
    if (event.kind === "cctp") {
      // The transmitter serves every CCTP application: the burner of the USDC identifies Hop's messages.
      const burner = decodeBurnMessageSender(log);
      if (address !== transmitter || burner === undefined || burners.get(event.sourceDomain) !== burner)
        return undefined;
      key = encodeCctpKey(event.sourceDomain, event.nonce);
      token = "USDC";
    } else {
      key =
        event.kind === "l2" ? hexToBytes(event.transferId) : computeL1TransferKey(token ?? "", chain.chainId, event);
    }
    if (token === undefined || key === undefined) return undefined;
    return {
      delivery: { ...toPositionColumns(chain, log), token, arrival_key: key },
      kind: event.kind,
      isBond: event.kind === "l2" && event.isBond,
      transactionHash: log.transactionHash,
      blockHash: log.blockHash,
    };
  }

  return {
    filter: {
      address: [...senders.keys(), ...(transmitter === undefined ? [] : [transmitter])],
      topics: [Object.values(EVENT_TOPICS)],
    },
    parse: (log) => parseSend(log) ?? parseDelivery(log),
  };
}

/** Maps each CCTP domain to the address of Hop's CCTP bridge there. */
function mapCctpBridgesByDomain(network: Network, contracts: ContractRegistry): ReadonlyMap<number, string> {
  const bridges = new Map<number, string>();
  for (const chain of network.chains.values()) {
    const domain = getCctpDomain(chain);
    const [bridge] = [...contracts.getSendingContracts(chain)].find(([, { kind }]) => kind === "cctp") ?? [];
    if (domain !== undefined && bridge !== undefined) bridges.set(domain, bridge);
  }
  return bridges;
}

function getSendCorrelationKey(
  token: string,
  event: TransferSentEvent,
  domain: number | undefined,
): Buffer | undefined {
  const { transferId } = event;
  if (transferId === undefined) return computeL1TransferKey(token, event.destinationChainId, event);
  if (transferId.startsWith("0x")) return hexToBytes(transferId);
  return domain === undefined ? undefined : encodeCctpKey(domain, BigInt(transferId));
}

function toPositionColumns(chain: Chain, log: Log) {
  return {
    chain_id: chain.chainId,
    block_number: log.blockNumber,
    log_index: log.logIndex,
    transaction_hash: hexToBytes(log.transactionHash),
  };
}
