import { setImmediate } from "node:timers/promises";
import { ServiceError } from "../../../errors.js";
import type { Chain, Network } from "../../../hop/networks.js";
import { FairSemaphore } from "../../../resilience/fair-semaphore.js";
import { catchMaybeAsync, type MaybePromise, mapMaybeAsync } from "../../../resilience/maybe-async.js";
import type { Requester } from "../../../resilience/waiters.js";
import { buildTransferStatus, type TransferState, type TransferStatus } from "../../status.js";
import type { ReadableIndex } from "../index-reader.js";
import type { IndexCoverage, IndexedTransfer } from "../row-mapping.js";
import type { ListPosition, PageRequest, TransferPage } from "./page-statement.js";

/** The place before the newest transfer. */
export const LIST_START: ListPosition = {
  timestamp: Number.MAX_SAFE_INTEGER,
  transactionHash: "0x",
  correlationKey: "0x",
  logIndex: 0,
};

/** Which transfers to list; undefined: any. */
export interface TransferFilter {
  /** Address of the sender or the recipient, lower-case hex. */
  readonly account: string;
  readonly state: TransferState | undefined;
  /** Symbol of the token. */
  readonly token: string | undefined;
  readonly source: Chain | undefined;
  readonly destination: Chain | undefined;
}

/** A page of a list. */
export interface TransferList {
  /** Newest first; fewer than requested where many transfers do not match the filter. */
  readonly transfers: readonly TransferStatus[];
  /** Where the next page begins; undefined: there are no more transfers. */
  readonly next: ListPosition | undefined;
}

/** Between which times the transfers of a list are indexed, Unix seconds. */
export interface ListCoverage {
  readonly fromSeconds: number;
  readonly untilSeconds: number;
}

/** Sends that a read returns: some three milliseconds in which the event loop serves nobody else. */
const ROWS_PER_READ = 100;
/** Sends that a page considers at most: those of pages that a filter leaves nearly empty. */
const MAX_ROWS_PER_PAGE = 1_000;
/** A page ends after as many IDs of other transfers, of which a transaction may have hundreds: some 700 KB. */
const MAX_OTHER_IDS_PER_PAGE = 10_000;
/** Pages of several reads in progress for one caller; twice as many for all. Each takes up to 3 MB. */
const LARGE_PAGES_PER_CALLER = 2;

/**
 * 17 June 2021, block 12,650,032 of ethereum: Hop has no older contract. Earlier versions of the index kept no time for a chain
 * whose whole history they had read.
 */
const FIRST_CONTRACT_SECONDS = 1_623_888_000;

type ListedIndex = ReadableIndex<"findByTransferId" | "readPage" | "readCoverage">;

/** Lists the transfers of an account from the index. */
export class TransferLister {
  readonly #index: ListedIndex;
  readonly #network: Network;
  readonly #largePages = new FairSemaphore(LARGE_PAGES_PER_CALLER);

  /** @param network the network that is indexed */
  constructor(index: ListedIndex, network: Network) {
    this.#index = index;
    this.#network = network;
  }

  /** Returns whether the transfers of a network are indexed. */
  isIndexed(network: Network): boolean {
    return network === this.#network;
  }

  /**
   * Returns the transfers of one transaction that have an ID, as `list` does: from Ethereum there may be several.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the index cannot be read
   */
  find(transferId: string, transactionHash: string, requester: Requester): MaybePromise<readonly TransferStatus[]> {
    return mapMaybeAsync(
      this.#read((reader) => reader.findByTransferId(transferId), requester),
      (transfers) => transfers.filter(({ sent }) => sent.transactionHash === transactionHash).map(toStatus),
    );
  }

  /**
   * Returns what is indexed of the chains that a filter can touch, synchronously if a file holds the index.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the index cannot be read, or has read no block of one of them yet
   */
  readCoverage(filter: TransferFilter, requester: Requester): MaybePromise<ListCoverage> {
    return mapMaybeAsync(
      this.#read((reader) => reader.readCoverage(), requester),
      (coverages) => combineCoverages(this.#listTouchedChains(filter), coverages),
    );
  }

  /**
   * Returns a page, synchronously if a file holds the index and one statement reads it. Every transfer that is indexed all the
   * time is in exactly one page, however many are added meanwhile, and wherever a reorg moves it.
   * @param after undefined for the first page
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the index cannot be read
   */
  list(
    filter: TransferFilter,
    after: ListPosition | undefined,
    pageSize: number,
    requester: Requester,
  ): MaybePromise<TransferList> {
    const page = new PageBuilder(filter, pageSize, after ?? LIST_START);
    const finish = (): TransferList => ({ transfers: page.transfers, next: page.isAtEnd ? undefined : page.position });
    const readMore = (): MaybePromise<void> => {
      const part = this.#read((reader) => reader.readPage(page.nextRequest()), requester);
      return mapMaybeAsync(part, (transfers) => page.add(transfers));
    };
    if (page.takesOneRead()) return mapMaybeAsync(readMore(), finish);
    // Nothing is read before there is a slot: what waits takes no memory.
    const { caller, waiters = caller, signal } = requester;
    return this.#largePages.acquire(waiters, signal, async () => {
      for (await readMore(); !page.isComplete(); await readMore()) {
        await setImmediate();
        signal.throwIfAborted();
      }
      return finish();
    });
  }

  #read<T>(query: (reader: ListedIndex["reader"]) => MaybePromise<T>, requester: Requester): MaybePromise<T> {
    const { database, reader } = this.#index;
    const fail = (cause: unknown): never => {
      throw new ServiceError("UPSTREAM_UNAVAILABLE", "the index cannot be read", { cause });
    };
    try {
      return catchMaybeAsync(
        database.admit(requester, () => query(reader)),
        fail,
      );
    } catch (error) {
      return fail(error);
    }
  }

  /** Returns the slugs of the chains on which a transfer that matches a filter can be sent or delivered. */
  #listTouchedChains({ token, source, destination }: TransferFilter): readonly string[] {
    const given = [source, destination].flatMap((chain) => chain?.slug ?? []);
    if (given.length === 2) return given;
    const slugs = (token === undefined ? undefined : this.#network.contracts.get(token)) ?? this.#network.chains;
    return [...new Set([...given, ...slugs.keys()])];
  }
}

/** @throws ServiceError UPSTREAM_UNAVAILABLE when no block of a chain was read yet */
function combineCoverages(slugs: readonly string[], coverages: ReadonlyMap<string, IndexCoverage>): ListCoverage {
  const isRead = (coverage: IndexCoverage | undefined): coverage is IndexCoverage =>
    coverage !== undefined && coverage.toBlock >= coverage.fromBlock;
  const unread = slugs.filter((slug) => !isRead(coverages.get(slug)));
  if (unread.length > 0)
    throw new ServiceError(
      "UPSTREAM_UNAVAILABLE",
      `the index has not read ${unread.join(", ")} yet; fromChain and toChain narrow the list to chains that it has read`,
    );
  const touched = slugs.map((slug) => coverages.get(slug)).filter(isRead);
  return {
    // A chain of which everything was read limits nothing, however young it is.
    fromSeconds: Math.max(
      FIRST_CONTRACT_SECONDS,
      ...touched.map(({ fromBlock, fromTimestamp }) => (fromBlock === 0 ? 0 : fromTimestamp)),
    ),
    untilSeconds: Math.min(...touched.map(({ toTimestamp }) => toTimestamp)),
  };
}

/** A page while it is read. */
class PageBuilder {
  readonly transfers: TransferStatus[] = [];
  isAtEnd = false;
  private readonly isFiltered: boolean;
  private rowsRead = 0;
  private otherIds = 0;

  constructor(
    private readonly filter: TransferFilter,
    private readonly pageSize: number,
    /** Position of the last send that was considered. */
    public position: ListPosition,
  ) {
    const { account: _, ...conditions } = filter;
    this.isFiltered = Object.values(conditions).some((condition) => condition !== undefined);
  }

  /** Returns whether one read certainly completes the page. */
  takesOneRead(): boolean {
    return !this.isFiltered && this.pageSize < ROWS_PER_READ;
  }

  isComplete(): boolean {
    return (
      this.isAtEnd ||
      this.transfers.length >= this.pageSize ||
      this.rowsRead >= MAX_ROWS_PER_PAGE ||
      this.otherIds >= MAX_OTHER_IDS_PER_PAGE
    );
  }

  /** With a filter, the first read considers few sends: often enough of them match. */
  nextRequest(): PageRequest {
    const { account, state, token, source, destination } = this.filter;
    // One more than the page takes, so that a full page knows whether it is the last.
    const limit = Math.min(ROWS_PER_READ, this.pageSize - this.transfers.length + 1);
    const filteredRows = this.rowsRead === 0 ? ROWS_PER_READ : MAX_ROWS_PER_PAGE - this.rowsRead;
    return {
      account,
      after: this.position,
      rows: this.isFiltered ? filteredRows : limit,
      limit,
      filter: {
        token,
        sourceChainId: source?.chainId,
        destinationChainId: destination?.chainId,
        isDelivered: state && state === "BONDED",
      },
    };
  }

  add({ entries, next, rows }: TransferPage): void {
    this.rowsRead += rows;
    for (const { transfer, position } of entries) {
      if (this.transfers.length >= this.pageSize || this.otherIds >= MAX_OTHER_IDS_PER_PAGE) return;
      this.position = position;
      const status = toStatus(transfer);
      if (!isMatch(status, this.filter)) continue;
      this.transfers.push(status);
      this.otherIds += status.otherTransferIds.length;
    }
    if (next === undefined) this.isAtEnd = true;
    else this.position = next;
  }
}

/** Builds a status of what the index knows: a transfer is pending until its delivery is indexed. */
function toStatus({ sent, delivery, isFinal, otherTransferIds, destinationCoverage }: IndexedTransfer): TransferStatus {
  const observedAtMs = destinationCoverage?.observedAtMs ?? 0;
  const source = "index";
  return buildTransferStatus(sent, delivery, { source, observedAtMs, isFinal, otherTransferIds, priceUsd: undefined });
}

function isMatch({ sent, state }: TransferStatus, filter: TransferFilter): boolean {
  return (
    (filter.state === undefined || state === filter.state) &&
    (filter.token === undefined || sent.token === filter.token) &&
    (filter.source === undefined || sent.source === filter.source) &&
    (filter.destination === undefined || sent.destination === filter.destination)
  );
}
