import type { Log, LogFilter } from "../../../chain/read/chain-reads.js";
import { cctpDomainOf } from "../../../hop/cctp/cctp.js";
import { burnerOf } from "../../../hop/cctp/cctp-burn-message.js";
import { type BridgeBook, createBridgeBook } from "../../../hop/contract-registry.js";
import type { Chain, Network } from "../../../hop/networks.js";
import {
  decodeReceived,
  decodeSent,
  type ReceivedEvent,
  type SentEvent,
  topics,
} from "../../../hop/transfer-events.js";
import { cctpKey, valuesKey } from "../store/correlation-key.js";
import { bytesOf } from "../store/hex.js";
import type { DeliveryRow, SendRow } from "../store/schema.js";

/** An event of Hop's, as far as its log alone tells. */
export type IndexEvent = { readonly transactionHash: string; readonly blockHash: string } & (
  | { readonly send: Omit<SendRow, "account" | "timestamp"> }
  | {
      readonly delivery: Omit<DeliveryRow, "bonder" | "timestamp">;
      readonly kind: ReceivedEvent["kind"];
      readonly isBond: boolean;
    }
);

/** Reads the logs of one chain. */
export interface EventReader {
  /** Matches every event that is kept, and of CCTP everybody's arrivals. */
  readonly filter: LogFilter;
  /** undefined: an event that is not kept. */
  read(log: Log): IndexEvent | undefined;
}

export function createEventReader(network: Network, chain: Chain): EventReader {
  const book = createBridgeBook(network);
  const senders = book.senders(chain);
  const transmitter = book.messageTransmitter(chain);
  const burners = cctpBridges(network, book);
  const domain = cctpDomainOf(chain);

  function readSend(log: Log): IndexEvent | undefined {
    const sender = senders.get(log.address.toLowerCase());
    const event = sender && decodeSent(log);
    if (sender === undefined || event === undefined || !Number.isSafeInteger(event.destinationChainId))
      return undefined;
    const key = keyOfSend(sender.token, event, domain);
    if (key === undefined) return undefined;
    const send = {
      ...placeOf(chain, log),
      kind: sender.kind,
      token: sender.token,
      arrival_key: key,
      destination_chain_id: event.destinationChainId,
      recipient: bytesOf(event.recipient),
      amount: String(event.amount),
      amount_out_min: String(event.amountOutMin),
      deadline: String(event.deadline),
      bonder_fee: String(event.bonderFee),
      relayer: event.relayer === undefined ? null : bytesOf(event.relayer),
    };
    return { send, transactionHash: log.transactionHash, blockHash: log.blockHash };
  }

  function readDelivery(log: Log): IndexEvent | undefined {
    const address = log.address.toLowerCase();
    const event = decodeReceived(log);
    if (event === undefined) return undefined;
    let key: Buffer | undefined;
    let token = senders.get(address)?.token;
    if (event.kind === "cctp") {
      // The transmitter serves all of Circle's CCTP: who burnt the USDC tells what is Hop's.
      const burner = burnerOf(log);
      if (address !== transmitter || burner === undefined || burners.get(event.sourceDomain) !== burner)
        return undefined;
      key = cctpKey(event.sourceDomain, event.nonce);
      token = "USDC";
    } else {
      key = event.kind === "l2" ? bytesOf(event.transferId) : valuesKey(token ?? "", chain.chainId, event);
    }
    if (token === undefined || key === undefined) return undefined;
    return {
      delivery: { ...placeOf(chain, log), token, arrival_key: key },
      kind: event.kind,
      isBond: event.kind === "l2" && event.isBond,
      transactionHash: log.transactionHash,
      blockHash: log.blockHash,
    };
  }

  return {
    filter: {
      address: [...senders.keys(), ...(transmitter === undefined ? [] : [transmitter])],
      topics: [Object.values(topics)],
    },
    read: (log) => readSend(log) ?? readDelivery(log),
  };
}

/** Hop's bridge to CCTP on each domain. */
function cctpBridges(network: Network, book: BridgeBook): ReadonlyMap<number, string> {
  const bridges = new Map<number, string>();
  for (const chain of network.chains.values()) {
    const domain = cctpDomainOf(chain);
    const [bridge] = [...book.senders(chain)].find(([, { kind }]) => kind === "cctp") ?? [];
    if (domain !== undefined && bridge !== undefined) bridges.set(domain, bridge);
  }
  return bridges;
}

function keyOfSend(token: string, event: SentEvent, domain: number | undefined): Buffer | undefined {
  const { transferId } = event;
  if (transferId === undefined) return valuesKey(token, event.destinationChainId, event);
  if (transferId.startsWith("0x")) return bytesOf(transferId);
  return domain === undefined ? undefined : cctpKey(domain, BigInt(transferId));
}

function placeOf(chain: Chain, log: Log) {
  return {
    chain_id: chain.chainId,
    block_number: Number(log.blockNumber),
    log_index: Number(log.logIndex),
    transaction_hash: bytesOf(log.transactionHash),
  };
}
