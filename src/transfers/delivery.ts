import type { ChainClient } from "../chain/chain-client.js";
import type { ChainAccess } from "../chain/chains.js";
import { type Log, readLogs, readSender, readUint } from "../chain/reads.js";
import { ServiceError } from "../errors.js";
import type { BridgeBook } from "../hop/bridge-book.js";
import { cctpDomainOf } from "../hop/cctp.js";
import {
  decodeSent,
  isCompletionOf,
  isFromDomain,
  isTransferIdSpentCall,
  type SentEvent,
  topicOf,
  topics,
  usedNoncesCall,
} from "../hop/events.js";
import type { Delivery, SentTransfer } from "./transfer.js";

/**
 * How a transfer arrived at its destination; undefined when it has not.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the destination (from L1: also the source) cannot tell.
 */
export async function findDelivery(
  sent: SentTransfer,
  book: BridgeBook,
  chains: ChainAccess,
  signal: AbortSignal,
): Promise<Delivery | undefined> {
  const destination = chains.client(sent.destination.slug);
  switch (sent.kind) {
    case "l2": {
      const bridge = known(book.bridge(sent.token, sent.destination), sent);
      const filter = { address: bridge, topics: [[topics.withdrawalBonded, topics.withdrew], sent.id] };
      const spent = readUint(destination, bridge, isTransferIdSpentCall(sent.id), signal);
      return received(destination, spent, readLogs(destination, filter, signal), signal);
    }
    case "cctp": {
      const transmitter = known(book.messageTransmitter(sent.destination), sent);
      const domain = known(cctpDomainOf(sent.source), sent);
      const nonce = BigInt(sent.id);
      const filter = { address: transmitter, topics: [topics.messageReceived, null, topicOf(nonce)] };
      const used = readUint(destination, transmitter, usedNoncesCall(domain, nonce), signal);
      const logs = readLogs(destination, filter, signal);
      return received(
        destination,
        used,
        logs.then((all) => all.filter((log) => isFromDomain(log, domain))),
        signal,
      );
    }
    case "l1":
      return findCompletion(sent, book, chains, signal);
  }
}

/** Joins a contract's yes or no with the log that tells by which transaction. */
async function received(
  client: ChainClient,
  flag: Promise<bigint>,
  logs: Promise<readonly Log[]>,
  signal: AbortSignal,
): Promise<Delivery | undefined> {
  const [flagged, searched] = await Promise.allSettled([flag, logs]);
  const log = searched.status === "fulfilled" ? searched.value[0] : undefined;
  if (log !== undefined) return deliveryOf(client, log, signal);
  if (flagged.status === "rejected") throw flagged.reason;
  // Arrived for sure, while the node would not search its logs or has not indexed this one yet.
  return flagged.value === 0n ? undefined : { transactionHash: undefined, bonder: undefined };
}

/**
 * A completion names no transfer: it has the values of one. Of sends with equal values the first sent is the first
 * completed, and each completion delivers one.
 */
async function findCompletion(
  sent: SentTransfer,
  book: BridgeBook,
  chains: ChainAccess,
  signal: AbortSignal,
): Promise<Delivery | undefined> {
  const source = chains.client(sent.source.slug);
  const destination = chains.client(sent.destination.slug);
  const { event } = sent;
  const relayer = topicOf(event.relayer ?? "0x");
  const sentFilter = {
    address: known(book.bridge(sent.token, sent.source), sent),
    topics: [topics.transferSentToL2, topicOf(BigInt(event.destinationChainId)), topicOf(event.recipient), relayer],
  };
  const completedFilter = {
    address: known(book.bridge(sent.token, sent.destination), sent),
    topics: [topics.transferFromL1Completed, topicOf(event.recipient), relayer],
  };
  const [sends, completions] = await Promise.all([
    readLogs(source, sentFilter, signal),
    readLogs(destination, completedFilter, signal),
  ]);
  const equalSends = inOrder(sends.filter((log) => haveEqualValues(decodeSent(log), event)));
  const place = equalSends.findIndex(
    (log) => BigInt(log.logIndex) === sent.logIndex && log.transactionHash.toLowerCase() === sent.transactionHash,
  );
  // A source whose logs lag behind its receipts cannot tell how many equal ones were sent before.
  if (place < 0)
    throw new ServiceError("UPSTREAM_UNAVAILABLE", `${sent.source.slug} does not have all of its logs yet`);
  const completion = inOrder(completions.filter((log) => isCompletionOf(log, event)))[place];
  return completion && deliveryOf(destination, completion, signal);
}

async function deliveryOf(client: ChainClient, log: Log, signal: AbortSignal): Promise<Delivery> {
  const transactionHash = log.transactionHash.toLowerCase();
  const isBond = log.topics[0] === topics.withdrawalBonded;
  // That it arrived is known: who brought it is not worth the answer.
  const bonder = isBond ? await readSender(client, transactionHash, signal).catch(() => undefined) : undefined;
  return { transactionHash, bonder };
}

function haveEqualValues(a: SentEvent | undefined, b: SentEvent): boolean {
  return (
    a !== undefined &&
    a.amount === b.amount &&
    a.amountOutMin === b.amountOutMin &&
    a.deadline === b.deadline &&
    a.bonderFee === b.bonderFee
  );
}

function inOrder(logs: readonly Log[]): readonly Log[] {
  return [...logs].sort(
    (a, b) => Number(a.blockNumber) - Number(b.blockNumber) || Number(a.logIndex) - Number(b.logIndex),
  );
}

function known<T>(value: T | undefined, { token, source, destination }: SentTransfer): T {
  if (value === undefined) {
    const message = `${source.slug} tells of a transfer of ${token} to ${destination.slug}, which cannot be`;
    throw new ServiceError("UPSTREAM_UNAVAILABLE", message);
  }
  return value;
}
