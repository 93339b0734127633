import type { Log } from "../../chain/read/chain-reads.js";
import { getCctpDomain } from "../../hop/cctp.js";
import type { Chain, Network } from "../../hop/networks.js";
import { decodeReceivedEvent, hasSameTransferFields, type TransferReceivedEvent } from "../../hop/transfer-events.js";
import type { SentTransfer } from "../status.js";
import type { Payout } from "./transfer-details.js";

// What a delivery pays is not in its event. It is in the Transfer events that the payout has emitted: after the event of a
// bond, and before the event of every other delivery. A transaction can make several deliveries, so only the events between
// two deliveries of one contract count, and of these the nearest to the delivery.

/** Topic 0 of an ERC-20's Transfer(address,address,uint256). */
const TOKEN_TRANSFER_TOPIC = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const ZERO_ADDRESS = `0x${"0".repeat(40)}`;

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

/** A movement of tokens. */
interface TokenTransfer {
  readonly token: string;
  readonly from: string;
  readonly to: string;
  readonly amount: bigint;
}

/**
 * Finds whether a transaction delivered a transfer, and what the recipient got in it. The payout is undefined where the logs
 * are not those of Hop's contracts, or where the transaction delivered several transfers that nothing distinguishes and paid
 * them differently.
 * @param logs of the receipt, in their order
 * @param contracts of the transfer's token at the destination
 */
export function findPayout(
  sent: SentTransfer,
  logs: readonly Log[],
  contracts: PayoutContracts,
): { readonly isDelivered: boolean; readonly payout: Payout | undefined } {
  const emitter = sent.kind === "cctp" ? contracts.messageTransmitter : contracts.bridge;
  const deliveries = logs.map((log) => (log.address === emitter ? decodeReceivedEvent(log) : undefined));
  const payouts = deliveries.flatMap((delivery, index) => {
    if (delivery === undefined || !isDeliveryOf(delivery, sent)) return [];
    return [findPayoutOf(sent, delivery, listNearbyTransfers(logs, deliveries, index), contracts)];
  });
  const [first] = payouts;
  const isSame = payouts.every((payout) => payout?.amount === first?.amount && payout?.token === first?.token);
  return { isDelivered: payouts.length > 0, payout: isSame ? first : undefined };
}

function isDeliveryOf(delivery: TransferReceivedEvent, { kind, id, source, event }: SentTransfer): boolean {
  if (delivery.kind !== kind) return false;
  if (delivery.kind === "l2") return delivery.transferId === id;
  if (delivery.kind === "cctp")
    return delivery.nonce.toString() === id && delivery.sourceDomain === getCctpDomain(source);
  // The explorer does not know the relayer.
  return hasSameTransferFields({ ...event, relayer: event.relayer ?? delivery.relayer }, delivery);
}

/**
 * Lists the movements of tokens next to a delivery, up to the next or the last one before, the nearest first.
 * @param deliveries those that the logs report, by their index
 */
function listNearbyTransfers(
  logs: readonly Log[],
  deliveries: readonly (TransferReceivedEvent | undefined)[],
  index: number,
): readonly TokenTransfer[] {
  const delivery = deliveries[index];
  // The bridge reports a bond before it pays, and everything else after it has paid.
  const step = delivery?.kind === "l2" && delivery.isBond ? 1 : -1;
  const transfers: TokenTransfer[] = [];
  for (let next = index + step; ; next += step) {
    const log = logs[next];
    if (log === undefined || deliveries[next] !== undefined) return transfers;
    const transfer = parseTokenTransfer(log);
    if (transfer !== undefined) transfers.push(transfer);
  }
}

function findPayoutOf(
  { kind, token, event, destination }: SentTransfer,
  delivery: TransferReceivedEvent,
  transfers: readonly TokenTransfer[],
  contracts: PayoutContracts,
): Payout | undefined {
  const { recipient, amount, bonderFee, amountOutMin, deadline } = event;
  const isWithdrawal = delivery.kind === "l2" && !delivery.isBond;
  // Nobody is paid for a withdrawal.
  const amountAfterFee = isWithdrawal ? amount : amount - bonderFee;
  const paid = { amount: amountAfterFee, token, isUnrequestedHToken: false };
  const toPayout = (transfer: TokenTransfer | undefined): Payout | undefined =>
    transfer && { ...paid, amount: transfer.amount };

  if (kind === "cctp") {
    const isMint = ({ from, to }: TokenTransfer): boolean => from === ZERO_ADDRESS && to === recipient;
    return toPayout(transfers.find((transfer) => transfer.token === contracts.token && isMint(transfer)));
  }
  if (destination.isL1) {
    // The bridge pays the coin of the chain in a call, which leaves no log but is part of the delivery.
    if (contracts.token === undefined) return paid;
    return toPayout(transfers.find(matches(contracts.token, contracts.bridge, recipient, amountAfterFee)));
  }
  const requestsSwap = contracts.ammWrapper !== undefined && (amountOutMin > 0n || deadline > 0n);
  if (isWithdrawal || !requestsSwap) {
    const minted = transfers.find(matches(contracts.hToken, ZERO_ADDRESS, recipient, amountAfterFee));
    return minted && toHTokenPayout(paid, contracts, requestsSwap);
  }
  const { ammWrapper, pool, hToken } = contracts;
  for (const transfer of transfers) {
    if (matches(hToken, ammWrapper, recipient, amountAfterFee)(transfer)) return toHTokenPayout(paid, contracts, true);
    // What the pool pays, the wrapper passes on: the token itself, or the coin after it has unwrapped that.
    if (matches(contracts.token, pool, ammWrapper)(transfer)) return toPayout(transfer);
  }
  return undefined;
}

/** A token without a pool is its own hToken. */
function toHTokenPayout(paid: Payout, contracts: PayoutContracts, requestsSwap: boolean): Payout {
  if (contracts.hToken === contracts.token) return paid;
  return { ...paid, token: getHTokenSymbol(paid.token), isUnrequestedHToken: requestsSwap };
}

function getHTokenSymbol(token: string): string {
  return token === "USDC.e" ? "hUSDC" : `h${token}`;
}

/** Returns a predicate for movements of a token between two accounts. */
function matches(
  token: string | undefined,
  from: string | undefined,
  to: string | undefined,
  amount?: bigint,
): (transfer: TokenTransfer) => boolean {
  return (transfer) =>
    transfer.token === token &&
    transfer.from === from &&
    transfer.to === to &&
    (amount === undefined || transfer.amount === amount);
}

function parseTokenTransfer({ address, topics, data }: Log): TokenTransfer | undefined {
  const [topic0, from, to] = topics;
  if (topic0 !== TOKEN_TRANSFER_TOPIC || from === undefined || to === undefined) return undefined;
  // An ERC-721 indexes the third value as well, and has no data.
  if (data.length < 66) return undefined;
  return {
    token: address,
    from: `0x${from.slice(-40)}`,
    to: `0x${to.slice(-40)}`,
    amount: BigInt(data.slice(0, 66)),
  };
}

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
