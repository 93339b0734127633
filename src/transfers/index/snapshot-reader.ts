import { hexToBytes } from "../../chain/hex.js";
import type { Chain } from "../../hop/networks.js";
import type { IndexStatements } from "./compiled-statements.js";
import type { ReadSession } from "./database/index-database.js";
import {
  buildPage,
  type PageRequest,
  type TransferPage,
  toListedSends,
  toPageParameters,
} from "./list/page-statement.js";
import {
  AMBIGUOUS_DELIVERY,
  type DeliveryOutcome,
  getHistoryStarts,
  type IndexedTransfer,
  isSamePosition,
  matchJoinedDelivery,
  matchL1Delivery,
  toIndexedTransfer,
  toSends,
  toTransferId,
} from "./row-mapping.js";
import type { CoverageRow, DeliverySummary, EqualSend, TransferRow } from "./statements.js";

/** What identifies a transfer in the index. */
export interface TransferKeys {
  readonly kind: "l2" | "cctp";
  /** Correlation keys. One of "l2" is the hash of a transaction on L1 as well. */
  readonly keys: readonly Buffer[];
}

/** Transfers from L1 with one correlation key. */
interface EqualTransfers {
  readonly equalSends: readonly EqualSend[];
  readonly deliveries: readonly DeliverySummary[];
}

/** Keys that one statement takes: a power of two. */
const MAX_KEYS_PER_STATEMENT = 128;

/** Reads one state of the index. */
export class SnapshotReader {
  readonly #session: ReadSession;
  readonly #statements: IndexStatements;
  readonly #chains: ReadonlyMap<number, Chain>;
  /** Read once for all sends of a transaction, of which a page may have hundreds. */
  readonly #sendsByHash = new Map<string, Promise<readonly TransferRow[]>>();
  /** Read once for all transfers from L1 that have equal values: anybody can send hundreds of them. */
  readonly #equalTransfersByKey = new Map<string, Promise<EqualTransfers>>();

  /** @param chains those of the network by their IDs */
  constructor(session: ReadSession, statements: IndexStatements, chains: ReadonlyMap<number, Chain>) {
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
    return this.#toTransfers(sends, sends);
  }

  /** @param keys of the transfer, one for each chain that it may come from */
  async findByKeys({ kind, keys }: TransferKeys): Promise<readonly IndexedTransfer[]> {
    const rows = toSends(await this.#session.query(this.#statements.transfersByKeys(keys.length), keys));
    const sends = rows.filter((send) => send.kind === kind);
    if (sends.length > 0 || kind !== "l2") return this.#toTransfers(sends);
    // A transfer from L1 has no ID: its transaction stands for it.
    const sent = toSends(await this.#session.query(this.#statements.transfersByHashes(1), keys));
    return this.#toTransfers(
      sent.filter((send) => send.kind === "l1"),
      sent,
    );
  }

  async readPage(request: PageRequest): Promise<TransferPage> {
    const sends = toListedSends(await this.#session.query(this.#statements.page, toPageParameters(request)));
    await this.#readSiblingsOf(sends);
    const transfers = new Map<TransferRow, readonly IndexedTransfer[]>();
    for (const send of sends) transfers.set(send, await this.#toTransfers([send]));
    return buildPage(request, sends, (send) => transfers.get(send) ?? []);
  }

  /** @param known the sends of the transaction, where they were read */
  async #toTransfers(
    sends: readonly TransferRow[],
    known?: readonly TransferRow[],
  ): Promise<readonly IndexedTransfer[]> {
    const transfers: IndexedTransfer[] = [];
    for (const send of sends) {
      const siblings = known ?? (await this.#readSiblings(send));
      const outcome = await this.#findOutcome(send);
      transfers.push(...toIndexedTransfer(this.#chains, send, outcome, this.#listOtherIds(send, siblings)));
    }
    return transfers;
  }

  async #readSiblings(send: TransferRow): Promise<readonly TransferRow[]> {
    if (send.sends_in_transaction === 1) return [send];
    const hash = send.transaction_hash;
    const siblings = this.#sendsByHash.get(hash) ?? this.#readSends(hash);
    this.#sendsByHash.set(hash, siblings);
    return siblings;
  }

  async #readSends(hash: string): Promise<readonly TransferRow[]> {
    return toSends(await this.#session.query(this.#statements.transfersByHashes(1), [hexToBytes(hash)]));
  }

  #listOtherIds(send: TransferRow, siblings: readonly TransferRow[]): readonly string[] {
    const known = siblings.filter(({ destination_chain_id }) => this.#chains.has(destination_chain_id));
    return known.filter((other) => !isSamePosition(other, send)).map(toTransferId);
  }

  /** Returns the sends that a transaction delivered; none unless the send of every delivery is certain. */
  async #findDeliveredSends(hash: Buffer): Promise<readonly TransferRow[]> {
    const deliveries = await this.#session.query(this.#statements.deliveriesByHash, [hash]);
    const sendsByKey = await this.#readSendsByKey(deliveries.map(({ arrival_key }) => arrival_key));
    const sends: TransferRow[] = [];
    for (const delivery of deliveries) {
      const send = await this.#findDeliveredSend(delivery, sendsByKey.get(delivery.arrival_key) ?? []);
      if (send === undefined) return [];
      sends.push(send);
    }
    return sends;
  }

  /** Reads the sends with correlation keys, by key: a transaction that anybody has sent may deliver hundreds of transfers. */
  async #readSendsByKey(keys: readonly string[]): Promise<ReadonlyMap<string, readonly TransferRow[]>> {
    const sendsByKey = new Map<string, TransferRow[]>();
    for (const values of splitKeys(keys)) {
      const rows = await this.#session.query(this.#statements.transfersByKeys(values.length), values);
      for (const send of toSends(rows)) addToGroup(sendsByKey, send.arrival_key, send);
    }
    return sendsByKey;
  }

  /** Reads the sends of the transactions of several sends, of which each may have another one. */
  async #readSiblingsOf(sends: readonly TransferRow[]): Promise<void> {
    const hashes = sends.filter((send) => send.sends_in_transaction > 1).map((send) => send.transaction_hash);
    const siblings = new Map<string, TransferRow[]>();
    for (const values of splitKeys(hashes)) {
      const rows = await this.#session.query(this.#statements.transfersByHashes(values.length), values);
      for (const send of toSends(rows)) addToGroup(siblings, send.transaction_hash, send);
    }
    for (const [hash, rows] of siblings) this.#sendsByHash.set(hash, Promise.resolve(rows));
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
    const reading = this.#equalTransfersByKey.get(key) ?? this.#readEqualTransfers(key);
    this.#equalTransfersByKey.set(key, reading);
    const { deliveries, equalSends } = await reading;
    // The very object of the list, since the matches are keyed by identity.
    const listed = equalSends.find((row) => isSamePosition(row, send));
    if (listed === undefined) return AMBIGUOUS_DELIVERY;
    const ownDeliveries = deliveries.filter((row) => isDeliveryOf(row, send));
    return matchL1Delivery(listed, { equalSends, deliveries: ownDeliveries, ...getHistoryStarts(send) });
  }

  async #readEqualTransfers(key: string): Promise<EqualTransfers> {
    const values = [hexToBytes(key)];
    const deliveries = await this.#session.query(this.#statements.deliveriesByKey, values);
    return { deliveries, equalSends: await this.#session.query(this.#statements.equalL1Sends, values) };
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

function addToGroup(groups: Map<string, TransferRow[]>, key: string, row: TransferRow): void {
  const group = groups.get(key);
  if (group === undefined) groups.set(key, [row]);
  else group.push(row);
}

function isDeliveryOf(delivery: DeliverySummary, send: TransferRow): boolean {
  return delivery.chain_id === send.destination_chain_id && delivery.token === send.token;
}
