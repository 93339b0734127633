import { isBytes32 } from "../../../chain/hex.js";
import { getCctpDomain } from "../../../hop/cctp/cctp.js";
import type { Chain, Network } from "../../../hop/networks.js";
import { AMBIGUOUS, type DeliveryOutcome, matchL1Delivery, toHistoryStart } from "./completion-matching.js";
import { encodeCctpKey } from "./correlation-key.js";
import { hexToBytes } from "./hex.js";
import { type IndexCoverage, toCoverage, toCoverageTimes } from "./index-coverage.js";
import { createPageReader } from "./pages/read-page.js";
import type { IndexedTransfer, PageRequest, TransferPage } from "./pages/transfer-page.js";
import {
  getJoinedDelivery,
  isBlockFinal,
  isSamePosition,
  toDelivery,
  toSends,
  toSentTransfer,
  toTransferId,
} from "./row-mapping.js";
import type { DeliverySummary, IndexSource, TransferRow } from "./transfer-statements.js";

/** Reads the index. Most lookups are one statement of microseconds. IDs and hashes may be in upper or lower case. */
export interface TransferIndexReader {
  /** Returns the transfers that a transaction sent, in log order; if it sent none, those that it delivered. */
  findByTransactionHash(hash: string): readonly IndexedTransfer[];
  /**
   * Finds transfers by transfer ID, by the hash of the transaction on L1 that sent them, or by decimal CCTP nonce. Returns
   * several for a nonce that several source chains use.
   */
  findByTransferId(id: string): readonly IndexedTransfer[];
  /** Reads the transfers that an address sent or receives, newest first; those to chains that the network does not have are left out. */
  readPage(request: PageRequest): TransferPage;
  /** Returns the indexed range of a chain; undefined when it is not indexed yet. */
  getCoverage(slug: string): IndexCoverage | undefined;
  close(): void;
}

/** Creates a reader of a database whose statements are synchronous. */
export function createTransferIndex(
  { statements, inSnapshot, close }: IndexSource,
  network: Network,
): TransferIndexReader {
  const chains = new Map([...network.chains.values()].map((chain) => [chain.chainId, chain]));
  const domains = [...network.chains.values()].flatMap((chain) => getCctpDomain(chain) ?? []);

  /** Reads the equal transfers from L1 and their deliveries, and matches them by their order. */
  function findEqualOutcome(send: TransferRow): DeliveryOutcome {
    const key = hexToBytes(send.arrival_key);
    const deliveries = statements.deliveriesByKey(key).filter((row) => isDeliveryOf(row, send));
    const source = statements.cursor(send.chain_id);
    const destination = statements.cursor(send.destination_chain_id);
    const equalSends = statements.equalL1Sends(key);
    // The very object of the list, since the matches are keyed by identity.
    const listed = equalSends.find((row) => isSamePosition(row, send));
    if (listed === undefined) return AMBIGUOUS;
    return matchL1Delivery(listed, { equalSends, deliveries, source, destination });
  }

  /** Matches the delivery of a send to it; reads nothing unless there are equal ones. */
  function findOutcome(send: TransferRow): DeliveryOutcome {
    if (send.is_alone === 0) return findEqualOutcome(send);
    const delivery = getJoinedDelivery(send);
    if (send.kind !== "l1") return { delivery, isUnambiguous: true };
    return matchL1Delivery(send, {
      equalSends: [send],
      deliveries: delivery === undefined ? [] : [delivery],
      source: toHistoryStart(send.source_from_block, send.source_from_timestamp),
      destination: toHistoryStart(send.destination_from_block, send.destination_from_timestamp),
    });
  }

  /** Creates a function that returns the IDs of the siblings of a send among the sends of a transaction. */
  function createSiblingLookup(sends: readonly TransferRow[]): (send: TransferRow) => readonly string[] {
    const knownSends = sends.filter((send) => chains.has(send.destination_chain_id));
    const ids = knownSends.map(toTransferId);
    return (send) =>
      ids.toSpliced(
        knownSends.findIndex((other) => isSamePosition(other, send)),
        1,
      );
  }

  function toIndexedTransfer(
    send: TransferRow,
    { delivery, isUnambiguous }: DeliveryOutcome,
    otherTransferIds: readonly string[],
  ): IndexedTransfer[] {
    const source = chains.get(send.chain_id);
    const destination = chains.get(send.destination_chain_id);
    if (source === undefined || destination === undefined) return [];
    const transfer: IndexedTransfer = {
      sent: toSentTransfer(send, source, destination),
      delivery: delivery && toDelivery(delivery),
      isFinal:
        isBlockFinal(send.block_number, send.source_final_to) &&
        (delivery === undefined || isBlockFinal(delivery.block_number, send.destination_final_to)),
      isUnambiguous,
      otherTransferIds,
      sourceCoverage: toCoverageTimes(send.source_from_timestamp, send.source_observed_at),
      destinationCoverage: toCoverageTimes(send.destination_from_timestamp, send.destination_observed_at),
    };
    return [transfer];
  }

  /** Returns a transfer that one statement has read completely; undefined if it takes further statements. */
  function toLoneTransfer(rows: readonly TransferRow[]): IndexedTransfer[] | undefined {
    const [send] = rows;
    if (send === undefined || rows.length > 1 || send.sends_in_transaction > 1 || send.is_alone === 0) return undefined;
    return toIndexedTransfer(send, findOutcome(send), NO_IDS);
  }

  /** Returns the sends that a transaction delivered; none unless the send of every delivery is certain. */
  function findDeliveredSends(deliveries: readonly DeliverySummary[]): readonly TransferRow[] {
    const sends = deliveries.flatMap((delivery) => {
      const rows = toSends(statements.transfersByKeys([hexToBytes(delivery.arrival_key)]));
      const isDeliveredHere = (send: TransferRow): boolean => {
        const outcome = findOutcome(send);
        return outcome.delivery !== undefined && isSamePosition(outcome.delivery, delivery);
      };
      return rows.find((send) => isDeliveryOf(delivery, send) && isDeliveredHere(send)) ?? [];
    });
    return sends.length === deliveries.length ? sends : [];
  }

  // One transaction for several statements reads a consistent state.
  const findByHashInSnapshot = inSnapshot((hash: Buffer): IndexedTransfer[] => {
    const sent = toSends(statements.transfersByHash(hash));
    const sends = sent.length > 0 ? sent : findDeliveredSends(statements.deliveriesByHash(hash));
    const getSiblingIds = createSiblingLookup(sends);
    return sends.flatMap((send) => toIndexedTransfer(send, findOutcome(send), getSiblingIds(send)));
  });

  const findByKeysInSnapshot = inSnapshot((keys: readonly Buffer[], kind: SendKind): IndexedTransfer[] =>
    toSends(statements.transfersByKeys(keys))
      .filter((send) => send.kind === kind)
      .flatMap((send) => {
        const siblings = statements.transfersByHash(hexToBytes(send.transaction_hash));
        return toIndexedTransfer(send, findOutcome(send), createSiblingLookup(toSends(siblings))(send));
      }),
  );

  const findL1SendsInSnapshot = inSnapshot((hash: Buffer): IndexedTransfer[] => {
    const sends = toSends(statements.transfersByHash(hash));
    const getSiblingIds = createSiblingLookup(sends);
    return sends
      .filter(({ kind }) => kind === "l1")
      .flatMap((send) => toIndexedTransfer(send, findOutcome(send), getSiblingIds(send)));
  });

  const readPage = createPageReader(
    { statements, inSnapshot },
    {
      readTransfer: (send, siblings) => toIndexedTransfer(send, findOutcome(send), createSiblingLookup(siblings)(send)),
      readSiblings: (send) => toSends(statements.transfersByHash(hexToBytes(send.transaction_hash))),
    },
  );

  function findByKeys(keys: readonly Buffer[], kind: SendKind): readonly IndexedTransfer[] {
    const rows = statements.transfersByKeys(keys).filter((row) => row.kind === kind);
    if (rows.length === 0) return [];
    return toLoneTransfer(rows) ?? findByKeysInSnapshot(keys, kind);
  }

  /** Finds the transfer that a transaction delivered, if it delivered one. */
  function findLoneDelivery(hash: string, deliveries: readonly DeliverySummary[]): IndexedTransfer[] | undefined {
    const [delivery] = deliveries;
    if (delivery === undefined || deliveries.length > 1) return undefined;
    const transfers = toLoneTransfer(statements.transfersByKeys([hexToBytes(delivery.arrival_key)]));
    return transfers?.[0]?.delivery?.transactionHash === hash ? transfers : undefined;
  }

  return {
    findByTransactionHash(hash) {
      if (!isBytes32(hash)) return [];
      const key = hexToBytes(hash);
      const rows = statements.transfersByHash(key);
      const alone = toLoneTransfer(rows);
      if (alone !== undefined) return alone;
      if (rows.length > 0) return findByHashInSnapshot(key);
      const deliveries = statements.deliveriesByHash(key);
      if (deliveries.length === 0) return [];
      return findLoneDelivery(hash.toLowerCase(), deliveries) ?? findByHashInSnapshot(key);
    },
    findByTransferId(id) {
      if (/^[0-9]{1,20}$/.test(id)) {
        const keys = domains.flatMap((domain) => encodeCctpKey(domain, BigInt(id)) ?? []);
        return keys.length === 0 ? [] : findByKeys(keys, "cctp");
      }
      if (!isBytes32(id)) return [];
      const key = hexToBytes(id);
      const transfers = findByKeys([key], "l2");
      if (transfers.length > 0) return transfers;
      const rows = statements.transfersByHash(key).filter(({ kind }) => kind === "l1");
      if (rows.length === 0) return [];
      return toLoneTransfer(rows) ?? findL1SendsInSnapshot(key);
    },
    readPage,
    getCoverage(slug) {
      const chain: Chain | undefined = network.chains.get(slug);
      return chain && toCoverage(statements.cursor(chain.chainId));
    },
    close,
  };
}

type SendKind = TransferRow["kind"];
const NO_IDS: readonly string[] = Object.freeze([]);

function isDeliveryOf(delivery: DeliverySummary, send: TransferRow): boolean {
  return delivery.chain_id === send.destination_chain_id && delivery.token === send.token;
}
