import type { utils } from "ethers";
import { getNetwork } from "../../src/hop/networks.js";
import { cctpBridgeAbi, l1BridgeAbi, l2BridgeAbi, messageTransmitterAbi } from "../chain/abi.js";
import { findContract, getSlugByChainId } from "../chain/local-chains.js";
import type { EventLog } from "../chain/transactions.js";

interface TransferLeg {
  readonly token: string;
  /** Chain slugs. */
  readonly source: string;
  readonly destination: string;
  readonly recipient: string;
  readonly amount: bigint;
}

/** A transfer as decoded from events of its source chain. Amounts in the token's smallest unit, times in Unix seconds. */
export type SentTransfer =
  | (TransferLeg & {
      readonly kind: "from-l2";
      readonly transferId: string;
      readonly transferNonce: string;
      readonly bonderFee: bigint;
      readonly amountOutMin: bigint;
      readonly deadline: bigint;
    })
  | (TransferLeg & {
      readonly kind: "from-l1";
      readonly amountOutMin: bigint;
      readonly deadline: bigint;
      readonly relayer: string;
      readonly relayerFee: bigint;
    })
  | (TransferLeg & { readonly kind: "cctp"; readonly nonce: bigint; readonly message: string });

/** A transfer through Hop's bridge on an L2. */
export type L2Transfer = SentTransfer & { readonly kind: "from-l2" };

const eventTopic = (contract: utils.Interface, event: string): string => contract.getEventTopic(event);

/** First topics of the events of sent transfers. */
export const transferSentTopics: readonly string[] = [
  eventTopic(l2BridgeAbi, "TransferSent"),
  eventTopic(l1BridgeAbi, "TransferSentToL2"),
  eventTopic(cctpBridgeAbi, "CCTPTransferSent"),
];

/** Lists Hop's bridges on a chain: lower-case address to token. */
export function listBridges(slug: string): ReadonlyMap<string, string> {
  const bridges = new Map<string, string>();
  for (const [token, byChain] of getNetwork("mainnet").contracts) {
    const contracts = byChain.get(slug) ?? {};
    for (const name of ["l1Bridge", "l2Bridge", ...(token === "USDC" ? ["cctpL1Bridge", "cctpL2Bridge"] : [])]) {
      const address = contracts[name];
      if (typeof address === "string") bridges.set(address.toLowerCase(), token);
    }
  }
  return bridges;
}

/** Parses the transfers that a transaction on `source` sent, in log order. Ignores events of other contracts. */
export function parseSentTransfers(source: string, logs: readonly EventLog[]): readonly SentTransfer[] {
  const bridges = listBridges(source);
  const transmitter = findContract("USDC", source, "cctpMessageTransmitter")?.toLowerCase();
  const messages = logs
    .filter((log) => log.address.toLowerCase() === transmitter)
    .filter((log) => log.topics[0] === eventTopic(messageTransmitterAbi, "MessageSent"))
    .map((log) => messageTransmitterAbi.parseLog({ ...log, topics: [...log.topics] }).args.message as string);
  const transfers: SentTransfer[] = [];
  for (const log of logs) {
    const token = bridges.get(log.address.toLowerCase());
    if (token === undefined) continue;
    const contract = [l2BridgeAbi, l1BridgeAbi, cctpBridgeAbi][transferSentTopics.indexOf(log.topics[0] ?? "")];
    if (contract === undefined) continue;
    const { args } = contract.parseLog({ ...log, topics: [...log.topics] });
    const number = (name: string): bigint => BigInt(args[name].toString());
    const leg = {
      token,
      source,
      destination: getSlugByChainId(Number(number("chainId"))),
      recipient: args.recipient as string,
      amount: number("amount"),
    };
    if (contract === l2BridgeAbi) {
      transfers.push({
        kind: "from-l2",
        ...leg,
        transferId: args.transferId as string,
        transferNonce: args.transferNonce as string,
        bonderFee: number("bonderFee"),
        amountOutMin: number("amountOutMin"),
        deadline: number("deadline"),
      });
    } else if (contract === l1BridgeAbi) {
      transfers.push({
        kind: "from-l1",
        ...leg,
        amountOutMin: number("amountOutMin"),
        deadline: number("deadline"),
        relayer: args.relayer as string,
        relayerFee: number("relayerFee"),
      });
    } else {
      // Each CCTP send emits two events, the transmitter's first; both kinds are in the same order.
      const message = messages.shift();
      if (message === undefined) throw new Error("a CCTP transfer without its message");
      transfers.push({ kind: "cctp", ...leg, nonce: number("cctpNonce"), message });
    }
  }
  return transfers;
}
