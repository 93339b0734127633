import type { CompiledQuery } from "kysely";
import { hexToBytes, isBytes32 } from "../../chain/hex.js";
import { getCctpDomain } from "../../hop/cctp.js";
import type { Chain, Network } from "../../hop/networks.js";
import { type MaybePromise, mapMaybeAsync } from "../../resilience/maybe-async.js";
import type { IndexStatements } from "./compiled-statements.js";
import { encodeCctpKey } from "./correlation-key.js";
import type { IndexDatabase } from "./database/index-database.js";
import {
  buildPage,
  type PageRequest,
  type TransferPage,
  toListedSends,
  toPageParameters,
} from "./list/page-statement.js";
import {
  type CoverageRow,
  type IndexCoverage,
  type IndexedTransfer,
  matchJoinedDelivery,
  toIndexedTransfer,
} from "./row-mapping.js";
import { SnapshotReader } from "./snapshot-reader.js";
import type { DeliveredRow, TransferRow } from "./statements.js";
import { buildTree, type TransferTree, type TreeQuery, toTreeParameters } from "./transfer-tree.js";

/** Identifies transfers by the hash of a transaction, or otherwise by ID. */
type TransferQuery = { readonly transactionHash: string | undefined; readonly transferId: string | undefined };

/** The largest value of the column of log indexes in PostgreSQL. */
const MAX_LOG_INDEX = 2 ** 31 - 1;
const NO_IDS: readonly string[] = Object.freeze([]);

/**
 * Reads the index. Most lookups are one statement; a file answers them at once, without a promise. What takes several
 * statements reads one state of the index. IDs and hashes may be in upper or lower case.
 */
export class IndexReader {
  readonly #database: IndexDatabase;
  readonly #statements: IndexStatements;
  /** The statements of most lookups. */
  readonly #transfersByKey: CompiledQuery<TransferRow>;
  readonly #transfersByHash: CompiledQuery<TransferRow>;
  readonly #chains: ReadonlyMap<number, Chain>;
  readonly #domains: readonly number[];

  constructor(database: IndexDatabase, statements: IndexStatements, network: Network) {
    this.#database = database;
    this.#statements = statements;
    this.#transfersByKey = statements.transfersByKeys(1);
    this.#transfersByHash = statements.transfersByHashes(1);
    const chains = [...network.chains.values()];
    this.#chains = new Map(chains.map((chain) => [chain.chainId, chain]));
    this.#domains = chains.flatMap((chain) => getCctpDomain(chain) ?? []);
  }

  /** Returns the transfers that a transaction sent, in log order; if it sent none, those that it delivered. */
  findByTransactionHash(hash: string): MaybePromise<readonly IndexedTransfer[]> {
    if (!isBytes32(hash)) return [];
    const key = hexToBytes(hash);
    return mapMaybeAsync(this.#database.query(this.#transfersByHash, [key]), (rows) => {
      if (rows.length === 0) return this.#findByDelivery(key, hash.toLowerCase());
      return this.#toLoneTransfer(rows) ?? this.#readState((state) => state.findByHash(key));
    });
  }

  /**
   * Finds transfers by transfer ID, by the hash of the transaction on L1 that sent them, or by decimal CCTP nonce. Returns
   * several for a nonce that several source chains use.
   */
  findByTransferId(id: string): MaybePromise<readonly IndexedTransfer[]> {
    const search = this.#parseId(id);
    if (search === undefined) return [];
    const { kind, keys } = search;
    const findInState = () => this.#readState((state) => state.findByKeys(kind, keys));
    const statement = keys.length === 1 ? this.#transfersByKey : this.#statements.transfersByKeys(keys.length);
    return mapMaybeAsync(this.#database.query(statement, keys), (found) => {
      const rows = found.filter((row) => row.kind === kind);
      if (rows.length > 0) return this.#toLoneTransfer(rows) ?? findInState();
      if (kind === "cctp") return [];
      return mapMaybeAsync(this.#database.query(this.#transfersByHash, keys), (sent) => {
        const l1Rows = sent.filter((row) => row.kind === "l1");
        return l1Rows.length === 0 ? [] : (this.#toLoneTransfer(l1Rows) ?? findInState());
      });
    });
  }

  /**
   * Finds the transfers of a query by hash or by ID together with what is covered, of one state: what the absence of a
   * transfer means. The coverage is by chain slug, without the chains that are not indexed yet.
   */
  async findCovered(query: TransferQuery) {
    const { transactionHash: hash, transferId } = query;
    const search = transferId === undefined ? undefined : this.#parseId(transferId);
    return this.#readState(async (state) => {
      const coverage = this.#toCoverage(await state.readCursors());
      if (hash !== undefined)
        return { transfers: isBytes32(hash) ? await state.findByHash(hexToBytes(hash)) : [], coverage };
      return { transfers: search === undefined ? [] : await state.findByKeys(search.kind, search.keys), coverage };
    });
  }

  /** Reads the transfers that an address sent or receives, newest first; those to chains that the network does not have are left out. */
  readPage(request: PageRequest): MaybePromise<TransferPage> {
    return mapMaybeAsync(this.#database.query(this.#statements.page, toPageParameters(request)), (rows) => {
      if (!rows.every(isSelfContained)) return this.#readState((state) => state.readPage(request));
      return buildPage(request, toListedSends(rows), (send) => this.#toTransfers(send));
    });
  }

  /**
   * Reads the transfers of which one root is, or will be, made, for one of them. Nothing of it is verified.
   * @returns undefined: the index does not have all of them, or is still being filled
   */
  readTree(query: TreeQuery): MaybePromise<TransferTree | undefined> {
    const rows = this.#database.query(this.#statements.tree, toTreeParameters(query));
    return mapMaybeAsync(rows, (leaves) => buildTree(query, leaves));
  }

  /** Reads the indexed ranges of all chains that are indexed, by their slugs. */
  readCoverage(): MaybePromise<ReadonlyMap<string, IndexCoverage>> {
    return mapMaybeAsync(this.#database.query(this.#statements.cursors), (rows) => this.#toCoverage(rows));
  }

  /** Reads deliveries of a chain before a position, newest first; fewer than `limit` at the end. */
  readDelivered(
    chainId: number,
    { block, logIndex }: { readonly block: number; readonly logIndex: number },
    limit: number,
  ): MaybePromise<readonly DeliveredRow[]> {
    const values = [chainId, block, block, Math.min(logIndex, MAX_LOG_INDEX), limit];
    return this.#database.query(this.#statements.delivered, values);
  }

  /** Finds the transfers that a transaction delivered. */
  #findByDelivery(key: Buffer, hash: string): MaybePromise<readonly IndexedTransfer[]> {
    const findInState = () => this.#readState((state) => state.findByHash(key));
    return mapMaybeAsync(this.#database.query(this.#statements.deliveriesByHash, [key]), ([delivery, ...others]) => {
      if (delivery === undefined) return [];
      if (others.length > 0) return findInState();
      const keys = [hexToBytes(delivery.arrival_key)];
      return mapMaybeAsync(this.#database.query(this.#transfersByKey, keys), (rows) => {
        const transfers = this.#toLoneTransfer(rows);
        return transfers?.[0]?.delivery?.transactionHash === hash ? transfers : findInState();
      });
    });
  }

  /** Returns a transfer that one statement has read completely; undefined if it takes further statements. */
  #toLoneTransfer(rows: readonly TransferRow[]): readonly IndexedTransfer[] | undefined {
    const [send] = rows;
    return send !== undefined && rows.length === 1 && isSelfContained(send) ? this.#toTransfers(send) : undefined;
  }

  #toTransfers(send: TransferRow): readonly IndexedTransfer[] {
    return toIndexedTransfer(this.#chains, send, matchJoinedDelivery(send), NO_IDS);
  }

  #toCoverage(rows: readonly CoverageRow[]): ReadonlyMap<string, IndexCoverage> {
    const coverage = new Map<string, IndexCoverage>();
    for (const { chainId, ...range } of rows) {
      const chain = this.#chains.get(chainId);
      if (chain !== undefined) coverage.set(chain.slug, range);
    }
    return coverage;
  }

  /** Returns what identifies a transfer in the index; undefined for what is no ID of a transfer. */
  #parseId(id: string) {
    if (isBytes32(id)) return { kind: "l2", keys: [hexToBytes(id)] } as const;
    if (!/^[0-9]{1,20}$/.test(id)) return undefined;
    const keys = this.#domains.flatMap((domain) => encodeCctpKey(domain, BigInt(id)) ?? []);
    return keys.length === 0 ? undefined : ({ kind: "cctp", keys } as const);
  }

  #readState<T>(read: (state: SnapshotReader) => Promise<T>): Promise<T> {
    return this.#database.snapshot((session) => read(new SnapshotReader(session, this.#statements, this.#chains)));
  }
}

/** Returns whether a row says everything of its transfer. */
function isSelfContained({ sends_in_transaction, is_alone }: TransferRow): boolean {
  return sends_in_transaction === 1 && is_alone === 1;
}

/** An index as its readers use it: `database` admits each read of a caller. */
export interface ReadableIndex<Member extends keyof IndexReader> {
  readonly database: Pick<IndexDatabase, "admit">;
  readonly reader: Pick<IndexReader, Member>;
}
