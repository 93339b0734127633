import type { CompiledQuery } from "kysely";
import { hexToBytes } from "../../chain/hex.js";
import type { Chain } from "../../hop/networks.js";
import type { IndexStatements } from "./compiled-statements.js";
import type { SqlReadSession } from "./database/index-database.js";
import {
  buildPage,
  type PageRequest,
  type TransferPage,
  toListedSends,
  toPageParameters,
} from "./list/page-statement.js";
import {
  AMBIGUOUS_DELIVERY,
  type CoverageRow,
  type DeliveryOutcome,
  getCoverages,
  type IndexedTransfer,
  isSamePosition,
  matchJoinedDelivery,
  matchL1Delivery,
  toIndexedTransfer,
  toSends,
  toTransferId,
} from "./row-mapping.js";
import type { DeliverySummary, EqualSend, TransferRow } from "./statements.js";

/** Transfers from L1 with one correlation key. */
interface EqualTransfers {
  readonly equalSends: readonly EqualSend[];
  readonly deliveries: readonly DeliverySummary[];
}

/** Keys that one statement takes: a power of two. */
const MAX_KEYS_PER_STATEMENT = 128;

/** Reads one state of the index. */
export class SnapshotReader {
  readonly #session: SqlReadSession;
  readonly #statements: IndexStatements;
  readonly #chains: ReadonlyMap<number, Chain>;
  /** Read once for all transfers from L1 that have equal values: anybody can send hundreds of them. */
  readonly #equalTransfersByKey = new Map<string, EqualTransfers>();

  /** @param chains those of the network by their IDs */
  constructor(session: SqlReadSession, statements: IndexStatements, chains: ReadonlyMap<number, Chain>) {
    this.#session = session;
    this.#statements = statements;
    this.#chains = chains;
  }

  /** Reads the indexed ranges of the chains. */
  async readCursors(): Promise<readonly CoverageRow[]> {
    return this.#session.query(this.#statements.cursors);
  }

  /** @param hash of the sending or of the delivering transaction */
  async findByHash(hash: Buffer): Promise<readonly IndexedTransfer[]> {
    const sent = toSends(await this.#session.query(this.#statements.transfersByHashes(1), [hash]));
    const sends = sent.length > 0 ? sent : await this.#findDeliveredSends(hash);
    return [...(await this.#toTransfers(sends, sends)).values()].flat();
  }

  /**
   * Finds the transfers that an ID names.
   * @param keys correlation keys, one for each chain that it may come from; one of "l2" is the hash of a transaction on L1
   *   as well
   */
  async findByKeys(kind: "l2" | "cctp", keys: readonly Buffer[]): Promise<readonly IndexedTransfer[]> {
    const read = async (statement: CompiledQuery<TransferRow>): Promise<readonly TransferRow[]> =>
      toSends(await this.#session.query(statement, keys));
    let siblings: readonly TransferRow[] | undefined;
    let sends = (await read(this.#statements.transfersByKeys(keys.length))).filter((send) => send.kind === kind);
    if (sends.length === 0 && kind === "l2") {
      // A transfer from L1 has no ID: its transaction stands for it.
      siblings = await read(this.#statements.transfersByHashes(1));
      sends = siblings.filter((send) => send.kind === "l1");
    }
    return [...(await this.#toTransfers(sends, siblings)).values()].flat();
  }

  async readPage(request: PageRequest): Promise<TransferPage> {
    const sends = toListedSends(await this.#session.query(this.#statements.page, toPageParameters(request)));
    const transfers = await this.#toTransfers(sends);
    return buildPage(request, sends, (send) => transfers.get(send) ?? []);
  }

  /**
   * Converts sends with their deliveries.
   * @param siblings those of one transaction, where they were read
   */
  async #toTransfers(
    sends: readonly TransferRow[],
    siblings?: readonly TransferRow[],
  ): Promise<ReadonlyMap<TransferRow, readonly IndexedTransfer[]>> {
    const shared = siblings === undefined ? sends.filter((send) => send.sends_in_transaction > 1) : [];
    const sendsByHash = await this.#readSends("transaction_hash", shared);
    const transfers = new Map<TransferRow, readonly IndexedTransfer[]>();
    for (const send of sends) {
      const otherIds = this.#listOtherIds(send, siblings ?? sendsByHash.get(send.transaction_hash) ?? []);
      transfers.set(send, toIndexedTransfer(this.#chains, send, await this.#findOutcome(send), otherIds));
    }
    return transfers;
  }

  #listOtherIds(send: TransferRow, siblings: readonly TransferRow[]): readonly string[] {
    const known = siblings.filter(({ destination_chain_id }) => this.#chains.has(destination_chain_id));
    return known.filter((other) => !isSamePosition(other, send)).map(toTransferId);
  }

  /** Returns the sends that a transaction delivered; none unless the send of every delivery is certain. */
  async #findDeliveredSends(hash: Buffer): Promise<readonly TransferRow[]> {
    const deliveries = await this.#session.query(this.#statements.deliveriesByHash, [hash]);
    const sendsByKey = await this.#readSends("arrival_key", deliveries);
    const sends: TransferRow[] = [];
    for (const delivery of deliveries) {
      const send = await this.#findDeliveredSend(delivery, sendsByKey.get(delivery.arrival_key) ?? []);
      if (send === undefined) return [];
      sends.push(send);
    }
    return sends;
  }

  /**
   * Reads the sends that have a value of these rows in a column, by that value. There may be hundreds: anybody can send as many
   * transfers in one transaction, or deliver them.
   */
  async #readSends<Column extends "arrival_key" | "transaction_hash">(
    column: Column,
    rows: readonly Readonly<Record<Column, string>>[],
  ): Promise<ReadonlyMap<string, readonly TransferRow[]>> {
    const { transfersByKeys, transfersByHashes } = this.#statements;
    const statement = column === "arrival_key" ? transfersByKeys : transfersByHashes;
    const groups = new Map<string, TransferRow[]>();
    for (const keys of splitKeys(rows.map((row) => row[column]))) {
      for (const send of toSends(await this.#session.query(statement(keys.length), keys))) {
        const group = groups.get(send[column]) ?? [];
        groups.set(send[column], group);
        group.push(send);
      }
    }
    return groups;
  }

  async #findDeliveredSend(delivery: DeliverySummary, sends: readonly TransferRow[]): Promise<TransferRow | undefined> {
    for (const send of sends) {
      if (!isDeliveryOf(delivery, send)) continue;
      const outcome = await this.#findOutcome(send);
      if (outcome.delivery !== undefined && isSamePosition(outcome.delivery, delivery)) return send;
    }
    return undefined;
  }

  /** Matches the delivery of a send to it; reads nothing unless there are equal ones. */
  async #findOutcome(send: TransferRow): Promise<DeliveryOutcome> {
    return send.is_alone === 0 ? this.#findEqualOutcome(send) : matchJoinedDelivery(send);
  }

  /** Reads the equal transfers from L1 and their deliveries, and matches them by their order. */
  async #findEqualOutcome(send: TransferRow): Promise<DeliveryOutcome> {
    const key = send.arrival_key;
    const { deliveries, equalSends } = this.#equalTransfersByKey.get(key) ?? (await this.#readEqualTransfers(key));
    // The very object of the list, since the matches are keyed by identity.
    const listed = equalSends.find((row) => isSamePosition(row, send));
    if (listed === undefined) return AMBIGUOUS_DELIVERY;
    const ownDeliveries = deliveries.filter((row) => isDeliveryOf(row, send));
    return matchL1Delivery(listed, { equalSends, deliveries: ownDeliveries, ...getCoverages(send) });
  }

  async #readEqualTransfers(key: string): Promise<EqualTransfers> {
    const values = [hexToBytes(key)];
    const deliveries = await this.#session.query(this.#statements.deliveriesByKey, values);
    const equalSends = await this.#session.query(this.#statements.equalL1Sends, values);
    const transfers = { deliveries, equalSends };
    this.#equalTransfersByKey.set(key, transfers);
    return transfers;
  }
}

/** Returns the distinct keys as the values of statements, whose numbers of values are powers of two. */
function splitKeys(keys: readonly string[]): readonly Buffer[][] {
  const unique = [...new Set(keys)].map(hexToBytes);
  const parts: Buffer[][] = [];
  for (let start = 0; start < unique.length; start += MAX_KEYS_PER_STATEMENT) {
    const part = unique.slice(start, start + MAX_KEYS_PER_STATEMENT);
    // The last key again and again: there are few statements, and each is compiled once.
    const last = part.at(-1) ?? Buffer.alloc(0);
    const padding = 2 ** Math.ceil(Math.log2(part.length)) - part.length;
    parts.push([...part, ...Array.from({ length: padding }, () => last)]);
  }
  return parts;
}

function isDeliveryOf(delivery: DeliverySummary, send: TransferRow): boolean {
  return delivery.chain_id === send.destination_chain_id && delivery.token === send.token;
}
