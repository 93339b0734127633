import { randomBytes } from "node:crypto";
import { getNetwork } from "../../src/hop/networks.js";
import type { IndexLocation } from "../../src/transfers/index/index-options.js";
import { openTransferIndex, type TransferIndex } from "../../src/transfers/index/transfer-index.js";
import { holdLease } from "../../test/support/index/hold-lease.js";
import { createTransferRows } from "./synthetic-index.js";

/** Beyond every block of the local network, so that no transfer ever becomes final and its watches stay open. */
const BLOCK = 1_000_000_000;
const OPTIMISM_CHAIN_ID = 10;
const ARBITRUM_CHAIN_ID = 42161;
const NUMBER_HEX_DIGITS = 16;

/** One change of a transfer, as the hash of its delivery states it. */
export interface MarkedChange {
  /** Grows by one with each change of the transfer. */
  readonly number: number;
  /** When its transaction began, in milliseconds since 1970, with fractions. */
  readonly changedAtMs: number;
}

/**
 * An index whose transfers change while a gateway reads it, in the place of the process that follows the chains: it holds the
 * leases. Each change gives a transfer another delivery, whose hash says when that was.
 */
export class ChangingIndex {
  readonly transferIds: readonly string[];
  readonly #index: TransferIndex;
  readonly #keys: readonly Buffer[];
  /** Changes of each transfer so far. */
  readonly #counts: number[];
  #next = 0;

  private constructor(index: TransferIndex, keys: readonly Buffer[]) {
    this.#index = index;
    this.#keys = keys;
    this.#counts = keys.map(() => 0);
    this.transferIds = keys.map((key) => `0x${key.toString("hex")}`);
  }

  /** Fills an empty index with delivered transfers from optimism to arbitrum. */
  static async create(location: IndexLocation, transfers: number): Promise<ChangingIndex> {
    const network = getNetwork("mainnet");
    const index = await openTransferIndex(location, network);
    await index.migrate();
    for (const name of ["follow", ...[...network.chains.keys()].map((slug) => `history.${slug}`)])
      await holdLease(index.leases, name);
    const block = { number: BLOCK - 1, hash: `0x${randomBytes(32).toString("hex")}`, timestamp: 1_700_000_000 };
    for (const chainId of [OPTIMISM_CHAIN_ID, ARBITRUM_CHAIN_ID]) await index.store.initializeCursor(chainId, block);
    const rows = Array.from({ length: transfers }, (_, log) => createTransferRows(BLOCK, log, randomBytes(20)));
    await index.database.transact(async (transaction) => {
      for (const { send, delivery } of rows) {
        const transaction_hash = formatMark({ number: 0, changedAtMs: 0 });
        await transaction.insertInto("sends").values(send).execute();
        await transaction
          .insertInto("deliveries")
          .values({ ...delivery, transaction_hash })
          .execute();
      }
    });
    return new ChangingIndex(
      index,
      rows.map(({ send }) => Buffer.from(send.arrival_key)),
    );
  }

  /** Returns the number of the last change of each transfer. */
  get counts(): readonly number[] {
    return this.#counts;
  }

  /** Changes the next transfer in turn. */
  async change(): Promise<void> {
    const position = this.#next++ % this.#keys.length;
    const arrival_key = this.#keys[position] as Buffer;
    const number = (this.#counts[position] ?? 0) + 1;
    const transaction_hash = formatMark({ number, changedAtMs: performance.timeOrigin + performance.now() });
    await this.#index.database.transact(async (transaction) => {
      await transaction
        .updateTable("deliveries")
        .set({ transaction_hash })
        .where("arrival_key", "=", arrival_key)
        .execute();
      const { value } = await transaction
        .updateTable("change_counter")
        .set((eb) => ({ value: eb("value", "+", 1) }))
        .where("id", "=", 1)
        .returning("value")
        .executeTakeFirstOrThrow();
      const row = { sequence: Number(value), arrival_key, transaction_hash, nonce: 1 };
      await transaction
        .insertInto("changes")
        .values({ ...row, kind: null, account: null, recipient: null })
        .execute();
    });
    this.#counts[position] = number;
    this.#index.database.notify();
  }

  /** Makes changes at a rate, evenly, until the returned function is called. */
  startChanging(perSecond: number): () => Promise<void> {
    const began = performance.now();
    let made = 0;
    let last = Promise.resolve();
    const timer = setInterval(() => {
      for (const due = ((performance.now() - began) / 1_000) * perSecond; made < due; made++)
        last = last.then(() => this.change());
    }, 1_000 / perSecond);
    return () => {
      clearInterval(timer);
      return last;
    };
  }

  close(): Promise<void> {
    return this.#index.close();
  }
}

/** Returns a transaction hash that states a change: number and microseconds, then random bytes. */
function formatMark({ number, changedAtMs }: MarkedChange): Buffer {
  const mark = randomBytes(32);
  mark.writeBigUInt64BE(BigInt(number), 0);
  mark.writeBigUInt64BE(BigInt(Math.round(changedAtMs * 1_000)), NUMBER_HEX_DIGITS / 2);
  return mark;
}

/** Parses a hash that a change has given to a delivery. */
export function parseMark(transactionHash: string): MarkedChange {
  const read = (start: number): number => Number(`0x${transactionHash.slice(start, start + NUMBER_HEX_DIGITS)}`);
  return { number: read(2), changedAtMs: read(2 + NUMBER_HEX_DIGITS) / 1_000 };
}
