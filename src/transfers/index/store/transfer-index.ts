import { isBytes32 } from "../../../chain/hex.js";
import { getCctpDomain } from "../../../hop/cctp/cctp.js";
import type { Chain, Network } from "../../../hop/networks.js";
import type { SentTransfer, TransferDelivery } from "../../transfer.js";
import { hasCompleteHistory, isUnambiguous, matchCompletions } from "./completion-matching.js";
import { encodeCctpKey } from "./correlation-key.js";
import { hexToBytes } from "./hex.js";
import { toDelivery, toSentTransfer, toTransferId } from "./row-mapping.js";
import type { CursorRow, DeliveryRow, EventPosition, IndexTables, SendRow } from "./schema.js";
import { createQueryBuilder, type SqliteConnection } from "./sqlite.js";

/** A transfer that is in the index, with its arrival. */
export interface IndexedTransfer {
  readonly sent: SentTransfer;
  readonly delivery: TransferDelivery | undefined;
  /** Whether nothing can undo the sending and, if any, the delivering block. */
  readonly isFinal: boolean;
  /** False where the index cannot tell whether this one has arrived or another like it: `delivery` is undefined then. */
  readonly isUnambiguous: boolean;
  /** IDs of the other transfers of the same transaction, in log order: of the sending one, or of the delivering one by whose hash it was found. */
  readonly otherTransferIds: readonly string[];
  /** What is there of the two chains. */
  readonly sourceCoverage: IndexCoverage | undefined;
  readonly destinationCoverage: IndexCoverage | undefined;
}

/** The blocks of a chain whose events are in the index without a gap. */
export interface IndexCoverage {
  /** The first one; 0: from the chain's beginning. */
  readonly fromBlock: number;
  /** Time of that block, Unix seconds; 0: from the beginning. What arrived since is in the index. */
  readonly fromTimestamp: number;
  /** The last one. */
  readonly toBlock: number;
  /** When it was known to be the chain's latest, in milliseconds since 1970. */
  readonly observedAtMs: number;
  /** The last block that was read when nothing could undo it any more. */
  readonly finalizedBlock: number;
}

/** Reads the index. Every method is a few local reads that take microseconds. Ids and hashes in any case. */
export interface TransferIndex {
  /** The transfers that a transaction sent, in log order; where it sent none, those that it delivered. */
  findByTransactionHash(hash: string): readonly IndexedTransfer[];
  /**
   * By transfer ID, by the hash of a transaction on L1 (the transfers that it sent from there), or by decimal CCTP nonce:
   * several, where several source chains have it.
   */
  findByTransferId(id: string): readonly IndexedTransfer[];
  /** undefined: nothing of that chain is there yet. */
  getCoverage(slug: string): IndexCoverage | undefined;
  close(): void;
}

export function createTransferIndex(connection: SqliteConnection, network: Network): TransferIndex {
  const read = prepareStatements(connection);
  const chains = new Map([...network.chains.values()].map((chain) => [chain.chainId, chain]));
  const domains = [...network.chains.values()].flatMap((chain) => getCctpDomain(chain) ?? []);

  /** The cursors of all chains, as they are in the same transaction as what is read beside them. */
  type Cursors = ReadonlyMap<number, CursorRow>;
  const readCursors = (): Cursors => new Map(read.cursors().map((row) => [row.chain_id, row]));

  function isBelowFinal(row: SendRow | DeliveryRow, cursors: Cursors): boolean {
    const cursor = cursors.get(row.chain_id);
    return cursor !== undefined && row.block_number <= cursor.final_to;
  }

  /** What became of a transfer. */
  function outcomeOf(send: SendRow, cursors: Cursors): DeliveryOutcome {
    const arrivals = read.deliveriesByKey(send.arrival_key).filter((row) => isDeliveryOf(row, send));
    if (send.kind !== "l1") return { delivery: arrivals[0], isUnambiguous: true };
    const source = cursors.get(send.chain_id);
    const destination = cursors.get(send.destination_chain_id);
    const equal = read.sendsByKey(send.arrival_key).filter(({ kind }) => kind === "l1");
    const own = equal.find((row) => isSamePosition(row, send));
    if (!own || !source || !destination || !isUnambiguous(own, equal, source, destination))
      return { delivery: undefined, isUnambiguous: false };
    // Where nothing is missing at the beginning, order alone tells which completion is whose.
    const isOrdered = hasCompleteHistory(source) && hasCompleteHistory(destination);
    const timed = isOrdered ? arrivals.map((row) => ({ ...row, timestamp: null })) : arrivals;
    return { delivery: matchCompletions(equal, timed).get(own), isUnambiguous: true };
  }

  /** The IDs of the other transfers, for each transfer of a transaction. */
  function othersAmong(all: readonly SendRow[]): (send: SendRow) => readonly string[] {
    const known = all.filter((send) => chains.has(send.destination_chain_id));
    const ids = known.map(toTransferId);
    return (send) =>
      ids.toSpliced(
        known.findIndex((other) => isSamePosition(other, send)),
        1,
      );
  }

  function transferOf(send: SendRow, otherTransferIds: readonly string[], cursors: Cursors): IndexedTransfer[] {
    const source = chains.get(send.chain_id);
    const destination = chains.get(send.destination_chain_id);
    if (source === undefined || destination === undefined) return [];
    const { delivery, isUnambiguous } = outcomeOf(send, cursors);
    const transfer: IndexedTransfer = {
      sent: toSentTransfer(send, source, destination),
      delivery: delivery && toDelivery(delivery),
      isFinal: isBelowFinal(send, cursors) && (delivery === undefined || isBelowFinal(delivery, cursors)),
      isUnambiguous,
      otherTransferIds,
      sourceCoverage: toCoverage(cursors.get(source.chainId)),
      destinationCoverage: toCoverage(cursors.get(destination.chainId)),
    };
    return [transfer];
  }

  /** What a transaction delivered; nothing, unless the sending of all of it is known for sure. */
  function deliveredBy(hash: Buffer, cursors: Cursors): readonly SendRow[] {
    const deliveries = read.deliveriesByHash(hash);
    const sends = deliveries.flatMap((delivery) => {
      const isItsOwn = (send: SendRow): boolean => {
        const { delivery: arrival } = outcomeOf(send, cursors);
        return arrival !== undefined && isSamePosition(arrival, delivery);
      };
      return read.sendsByKey(delivery.arrival_key).find((send) => isDeliveryOf(delivery, send) && isItsOwn(send)) ?? [];
    });
    return sends.length === deliveries.length ? sends : [];
  }

  function sendsById(id: string): readonly SendRow[] {
    if (/^[0-9]{1,20}$/.test(id)) {
      const keys = domains.flatMap((domain) => encodeCctpKey(domain, BigInt(id)) ?? []);
      return keys.flatMap((key) => read.sendsByKey(key));
    }
    if (!isBytes32(id)) return [];
    const key = hexToBytes(id);
    const overL2 = read.sendsByKey(key).filter(({ kind }) => kind === "l2");
    return overL2.length > 0 ? overL2 : read.sendsByHash(key).filter(({ kind }) => kind === "l1");
  }

  return {
    // In a transaction, as each statement alone would be in one of its own: it takes less time.
    findByTransactionHash: connection.transaction((hash: string) => {
      if (!isBytes32(hash)) return [];
      const cursors = readCursors();
      const key = hexToBytes(hash);
      const sent = read.sendsByHash(key);
      const all = sent.length > 0 ? sent : deliveredBy(key, cursors);
      const othersOf = othersAmong(all);
      return all.flatMap((send) => transferOf(send, othersOf(send), cursors));
    }),
    findByTransferId: connection.transaction((id: string) => {
      const cursors = readCursors();
      let last: { readonly hash: Uint8Array; readonly othersOf: (send: SendRow) => readonly string[] } | undefined;
      return sendsById(id).flatMap((send) => {
        const hash = send.transaction_hash;
        // From L1 all that have the ID are of one transaction.
        if (last === undefined || Buffer.compare(last.hash, hash) !== 0)
          last = { hash, othersOf: othersAmong(read.sendsByHash(hash)) };
        return transferOf(send, last.othersOf(send), cursors);
      });
    }),
    getCoverage(slug) {
      const chain: Chain | undefined = network.chains.get(slug);
      return chain && toCoverage(read.cursors().find((row) => row.chain_id === chain.chainId));
    },
    close: () => connection.close(),
  };
}

/** How a transfer arrived, if it did; whether that can be told at all. */
interface DeliveryOutcome {
  readonly delivery: DeliveryRow | undefined;
  readonly isUnambiguous: boolean;
}

function toCoverage(cursor: CursorRow | undefined): IndexCoverage | undefined {
  return cursor === undefined
    ? undefined
    : {
        fromBlock: cursor.from_block,
        fromTimestamp: cursor.from_timestamp,
        toBlock: cursor.to_block,
        observedAtMs: cursor.observed_at,
        finalizedBlock: cursor.final_to,
      };
}

function isSamePosition(a: EventPosition, b: EventPosition): boolean {
  return a.chain_id === b.chain_id && a.block_number === b.block_number && a.log_index === b.log_index;
}

function isDeliveryOf(delivery: DeliveryRow, send: SendRow): boolean {
  return delivery.chain_id === send.destination_chain_id && delivery.token === send.token;
}

/** The statements, whose text is made once: making it takes longer than the read. */
function prepareStatements(connection: SqliteConnection) {
  const db = createQueryBuilder<IndexTables>(connection);
  const value = new Uint8Array();
  const sends = db.selectFrom("sends").selectAll().orderBy("chain_id").orderBy("block_number").orderBy("log_index");
  const deliveries = db
    .selectFrom("deliveries")
    .selectAll()
    .orderBy("chain_id")
    .orderBy("block_number")
    .orderBy("log_index");
  const prepare = <Row>(query: { compile(): { readonly sql: string } }): ((key: Uint8Array) => Row[]) => {
    const statement = connection.prepare<[Uint8Array], Row>(query.compile().sql);
    return (key) => statement.all(key);
  };
  const cursors = connection.prepare<[], CursorRow>(db.selectFrom("cursors").selectAll().compile().sql);
  return {
    sendsByHash: prepare<SendRow>(sends.where("transaction_hash", "=", value)),
    sendsByKey: prepare<SendRow>(sends.where("arrival_key", "=", value)),
    deliveriesByHash: prepare<DeliveryRow>(deliveries.where("transaction_hash", "=", value)),
    deliveriesByKey: prepare<DeliveryRow>(deliveries.where("arrival_key", "=", value)),
    cursors: () => cursors.all(),
  };
}
