import { isBytes32 } from "../../../chain/hex.js";
import { getCctpDomain } from "../../../hop/cctp/cctp.js";
import type { Chain, Network } from "../../../hop/networks.js";
import type { SentTransfer, TransferDelivery } from "../../transfer.js";
import { canMatchCompletions, hasCompleteHistory, matchCompletions } from "./completion-matching.js";
import { encodeCctpKey } from "./correlation-key.js";
import { hexToBytes } from "./hex.js";
import { toDelivery, toSentTransfer, toTransferId } from "./row-mapping.js";
import type { CursorRow, DeliveryRow, EventPosition, IndexTables, SendRow } from "./schema.js";
import { createKysely, type SqliteConnection } from "./sqlite.js";

/** An indexed transfer with its delivery. */
export interface IndexedTransfer {
  readonly sent: SentTransfer;
  readonly delivery: TransferDelivery | undefined;
  /** Whether the sending block and, if there is one, the delivering block are final. */
  readonly isFinal: boolean;
  /** False when a delivery may belong to this transfer or to an equal one: `delivery` is undefined then. */
  readonly isUnambiguous: boolean;
  /**
   * IDs of the other transfers of the same transaction, in log order: of the delivering transaction if the transfer was found
   * by its hash, otherwise of the sending one.
   */
  readonly otherTransferIds: readonly string[];
  /** undefined when the source chain is not indexed. */
  readonly sourceCoverage: IndexCoverage | undefined;
  /** undefined when the destination chain is not indexed. */
  readonly destinationCoverage: IndexCoverage | undefined;
}

/** The contiguous range of a chain's blocks whose events are indexed. */
export interface IndexCoverage {
  /** The first block; 0 for the chain's beginning. */
  readonly fromBlock: number;
  /** Time of that block, Unix seconds; 0 for the chain's beginning. All later deliveries are indexed. */
  readonly fromTimestamp: number;
  /** The last block. */
  readonly toBlock: number;
  /** When that block was observed as the chain's latest, in milliseconds since 1970. */
  readonly observedAtMs: number;
  /** The last block that was read when it was final. */
  readonly finalizedBlock: number;
}

/** Reads the index. Every method is a few local reads of microseconds. IDs and hashes may be in upper or lower case. */
export interface TransferIndexReader {
  /** Returns the transfers that a transaction sent, in log order; if it sent none, those that it delivered. */
  findByTransactionHash(hash: string): readonly IndexedTransfer[];
  /**
   * Finds transfers by transfer ID, by the hash of the transaction on L1 that sent them, or by decimal CCTP nonce. Returns
   * several for a nonce that several source chains use.
   */
  findByTransferId(id: string): readonly IndexedTransfer[];
  /** Returns the indexed range of a chain; undefined when it is not indexed yet. */
  getCoverage(slug: string): IndexCoverage | undefined;
  close(): void;
}

export function createTransferIndex(connection: SqliteConnection, network: Network): TransferIndexReader {
  const statements = prepareStatements(connection);
  const chains = new Map([...network.chains.values()].map((chain) => [chain.chainId, chain]));
  const domains = [...network.chains.values()].flatMap((chain) => getCctpDomain(chain) ?? []);

  /** The cursors of all chains, by chain ID. */
  type Cursors = ReadonlyMap<number, CursorRow>;
  const readCursors = (): Cursors => new Map(statements.cursors().map((row) => [row.chain_id, row]));

  function isRowFinal(row: SendRow | DeliveryRow, cursors: Cursors): boolean {
    const cursor = cursors.get(row.chain_id);
    return cursor !== undefined && row.block_number <= cursor.final_to;
  }

  /** Finds the delivery of a transfer. */
  function findOutcome(send: SendRow, cursors: Cursors): DeliveryOutcome {
    const deliveries = statements.deliveriesByKey(send.arrival_key).filter((row) => isDeliveryOf(row, send));
    if (send.kind !== "l1") return { delivery: deliveries[0], isUnambiguous: true };
    const source = cursors.get(send.chain_id);
    const destination = cursors.get(send.destination_chain_id);
    const equalSends = statements.sendsByKey(send.arrival_key).filter(({ kind }) => kind === "l1");
    // The very object of the list, since the matches are keyed by identity.
    const listed = equalSends.find((row) => isSamePosition(row, send));
    if (!listed || !source || !destination || !canMatchCompletions(listed, equalSends, source, destination))
      return { delivery: undefined, isUnambiguous: false };
    // With the complete history of both chains the order alone decides, whatever the clocks say.
    const isComplete = hasCompleteHistory(source) && hasCompleteHistory(destination);
    const completions = isComplete ? deliveries.map((row) => ({ ...row, timestamp: null })) : deliveries;
    return { delivery: matchCompletions(equalSends, completions).get(listed), isUnambiguous: true };
  }

  /** Creates a function that returns the IDs of the siblings of a send among the sends of a transaction. */
  function createSiblingLookup(sends: readonly SendRow[]): (send: SendRow) => readonly string[] {
    const knownSends = sends.filter((send) => chains.has(send.destination_chain_id));
    const ids = knownSends.map(toTransferId);
    return (send) =>
      ids.toSpliced(
        knownSends.findIndex((other) => isSamePosition(other, send)),
        1,
      );
  }

  function toIndexedTransfer(send: SendRow, otherTransferIds: readonly string[], cursors: Cursors): IndexedTransfer[] {
    const source = chains.get(send.chain_id);
    const destination = chains.get(send.destination_chain_id);
    if (source === undefined || destination === undefined) return [];
    const { delivery, isUnambiguous } = findOutcome(send, cursors);
    const transfer: IndexedTransfer = {
      sent: toSentTransfer(send, source, destination),
      delivery: delivery && toDelivery(delivery),
      isFinal: isRowFinal(send, cursors) && (delivery === undefined || isRowFinal(delivery, cursors)),
      isUnambiguous,
      otherTransferIds,
      sourceCoverage: toCoverage(cursors.get(source.chainId)),
      destinationCoverage: toCoverage(cursors.get(destination.chainId)),
    };
    return [transfer];
  }

  /** Returns the sends that a transaction delivered; none unless the send of every delivery is certain. */
  function findDeliveredSends(hash: Buffer, cursors: Cursors): readonly SendRow[] {
    const deliveries = statements.deliveriesByHash(hash);
    const sends = deliveries.flatMap((delivery) => {
      const isDeliveredHere = (send: SendRow): boolean => {
        const outcome = findOutcome(send, cursors);
        return outcome.delivery !== undefined && isSamePosition(outcome.delivery, delivery);
      };
      return (
        statements
          .sendsByKey(delivery.arrival_key)
          .find((send) => isDeliveryOf(delivery, send) && isDeliveredHere(send)) ?? []
      );
    });
    return sends.length === deliveries.length ? sends : [];
  }

  function findSendsById(id: string): readonly SendRow[] {
    if (/^[0-9]{1,20}$/.test(id)) {
      const keys = domains.flatMap((domain) => encodeCctpKey(domain, BigInt(id)) ?? []);
      return keys.flatMap((key) => statements.sendsByKey(key));
    }
    if (!isBytes32(id)) return [];
    const key = hexToBytes(id);
    const l2Sends = statements.sendsByKey(key).filter(({ kind }) => kind === "l2");
    return l2Sends.length > 0 ? l2Sends : statements.sendsByHash(key).filter(({ kind }) => kind === "l1");
  }

  return {
    // One transaction for all statements is faster than one for each, and reads a consistent state.
    findByTransactionHash: connection.transaction((hash: string) => {
      if (!isBytes32(hash)) return [];
      const cursors = readCursors();
      const key = hexToBytes(hash);
      const sent = statements.sendsByHash(key);
      const sends = sent.length > 0 ? sent : findDeliveredSends(key, cursors);
      const getSiblingIds = createSiblingLookup(sends);
      return sends.flatMap((send) => toIndexedTransfer(send, getSiblingIds(send), cursors));
    }),
    findByTransferId: connection.transaction((id: string) => {
      const cursors = readCursors();
      let last: { readonly hash: Uint8Array; readonly getSiblingIds: (send: SendRow) => readonly string[] } | undefined;
      return findSendsById(id).flatMap((send) => {
        const hash = send.transaction_hash;
        // All transfers from L1 with one ID belong to one transaction.
        if (last === undefined || Buffer.compare(last.hash, hash) !== 0)
          last = { hash, getSiblingIds: createSiblingLookup(statements.sendsByHash(hash)) };
        return toIndexedTransfer(send, last.getSiblingIds(send), cursors);
      });
    }),
    getCoverage(slug) {
      const chain: Chain | undefined = network.chains.get(slug);
      return chain && toCoverage(statements.cursors().find((row) => row.chain_id === chain.chainId));
    },
    close: () => connection.close(),
  };
}

/** The delivery of a transfer, if there is one, and whether the index can tell. */
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

/** Prepares the statements once, because building their SQL takes longer than running them. */
function prepareStatements(connection: SqliteConnection) {
  const db = createKysely<IndexTables>(connection);
  const placeholder = new Uint8Array();
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
    sendsByHash: prepare<SendRow>(sends.where("transaction_hash", "=", placeholder)),
    sendsByKey: prepare<SendRow>(sends.where("arrival_key", "=", placeholder)),
    deliveriesByHash: prepare<DeliveryRow>(deliveries.where("transaction_hash", "=", placeholder)),
    deliveriesByKey: prepare<DeliveryRow>(deliveries.where("arrival_key", "=", placeholder)),
    cursors: () => cursors.all(),
  };
}
